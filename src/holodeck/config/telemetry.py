"""Telemetry settings: command line, environment and agent file become one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from holodeck.config.environment import Environment, Named, Precedence, setting_error
from holodeck.config.jaeger import resolve_jaeger
from holodeck.config.otlp import SIGNALS, Signal, TargetResolver
from holodeck.config.problems import KeyedError
from holodeck.config.python_sdk import check_providers, check_switches, without_effect
from holodeck.config.recording import RecordingResolver
from holodeck.config.resource import resolve_resource
from holodeck.errors import SettingError
from holodeck.lib.problems import choices, one_line
from holodeck.models.observability import ObservabilityConfig, OtlpTarget, TelemetrySettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import BaseModel

__all__ = ["resolve_telemetry"]

T = TypeVar("T")
_FILE: Final = "agent file"
_SAMPLERS: Final = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
_OTHER_SAMPLERS: Final = ("jaeger_remote", "parentbased_jaeger_remote", "xray")
_OTHER_EXPORTERS: Final = {"traces": ("zipkin", "jaeger", "logging"), "metrics": ("prometheus", "logging"), "logs": ("logging",)}
"""Names of the specification, today's and earlier ones, that mean nothing here."""
_CAPTURE: Final = {
    "true": True, "span_only": True, "event_only": True, "span_and_event": True, "false": False, "no_content": False,
}  # fmt: skip
_CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def resolve_telemetry(
    config: ObservabilityConfig,
    environ: Mapping[str, str],
    *,
    observability: bool | None = None,
    capture_content: bool | None = None,
    trace_file: Path | None = None,
) -> TelemetrySettings:
    """Every telemetry setting, by one rule: **command line > environment > agent file > default**.

    ``OTEL_SDK_DISABLED=true`` beats everything. The switch is ``--observability``, then ``OTEL_TRACES_EXPORTER`` (``otlp``, ``console``,
    ``none``), then ``observability.enabled``; an endpoint alone turns nothing on. While the switch is off, variables of OTLP are not
    read, and of the other variables a value that means nothing is a warning; while it is on, that is an error, because it could lose
    data silently. ``OTEL_METRICS_EXPORTER`` and ``OTEL_LOGS_EXPORTER`` leave out one signal. ``traces.enabled: false`` in the agent file
    leaves no spans to read in the terminal either. ``sources`` of the result says for each setting who decided.

    Args:
        config: The ``observability`` section of the agent file.
        environ: Environment variables; empty ones count as unset.
        observability: ``--observability`` / ``--no-observability``; None if neither is given.
        capture_content: ``--capture-content``; None if it is not given.
        trace_file: ``--trace-file``.

    Raises:
        SettingError: A variable or a flag means nothing, and something depends on it.
        ConfigError: The agent file does; the message names the key.
    """
    _check_patterns(config.traces.redaction_patterns)
    resolver = _Resolver(config, Environment(environ))
    if resolver.disabled():
        return resolver.nothing(trace_file)
    return resolver.settings(observability, capture_content, trace_file)


def _exporter_problem(names: set[str], signal: Signal, known: tuple[str, ...]) -> str:
    """What is wrong with a list of exporters; "" if nothing is."""
    if unknown := sorted(names.difference(known)):
        why = "not supported by HoloDeck" if unknown[0] in _OTHER_EXPORTERS[signal] else "unknown"
        return f"'{one_line(unknown[0], 40)}' is {why}: use {choices(known)}"
    return "none cannot stand beside other exporters" if "none" in names and len(names) > 1 else ""


def _check_patterns(patterns: list[str]) -> None:
    if not patterns:
        return
    from holodeck.lib.patterns import compile_pattern  # noqa: PLC0415 - RE2 is loaded only where there are patterns

    for index, pattern in enumerate(patterns):
        path = ("observability", "traces", "redaction_patterns", index)
        try:
            compiled = compile_pattern(pattern)
        except ValueError as error:
            raise KeyedError(path, one_line(str(error))) from error
        if compiled.search(""):
            raise KeyedError(path, f"'{one_line(pattern, 80)}' matches the empty text, and so everywhere: make it match something")


class _Resolver:
    """Resolves group after group, keeping sources and warnings."""

    def __init__(self, config: ObservabilityConfig, environment: Environment) -> None:
        self._config, self._environment = config, environment
        self._precedence = Precedence()
        self._warnings: list[str] = []
        self._doubtful = environment.doubting(self._warnings)

    def disabled(self) -> bool:
        """``OTEL_SDK_DISABLED``: only ``true`` counts, in any case."""
        source, said = self._environment.text("OTEL_SDK_DISABLED")
        value = None if said is None else said.lower() == "true"
        if said is not None and said.lower() not in ("true", "false"):
            self._warnings.append(f"OTEL_SDK_DISABLED='{one_line(said, 40)}' counts as false: write true to switch telemetry off")
        return self._precedence.pick("disabled", (source, value), default=False)

    def nothing(self, trace_file: Path | None) -> TelemetrySettings:
        if trace_file is not None:
            self._warnings.append("--trace-file writes nothing: OTEL_SDK_DISABLED=true switches telemetry off")
        sources, warnings = self._precedence.sources, tuple(self._warnings)
        return TelemetrySettings(disabled=True, console=False, sources=sources, warnings=warnings)

    def settings(self, observability: bool | None, capture_content: bool | None, trace_file: Path | None) -> TelemetrySettings:
        check_providers(self._environment)
        outputs = self._outputs(observability)
        seen_by = {signal: self._environment if outputs[signal] is not None else self._doubtful for signal in SIGNALS}
        sent = self._environment if any(outputs[signal] is not None for signal in SIGNALS) else self._doubtful
        recording = RecordingResolver(
            self._config, self._precedence, spans=seen_by["traces"], metrics=seen_by["metrics"], logs=seen_by["logs"]
        )
        values: dict[str, Any] = {
            **outputs,
            **self._console_form(),
            **self._sampling(seen_by["traces"]),
            **recording.settings(),
            "resource": resolve_resource(self._config, sent, self._precedence),
            "capture_content": self._capture(capture_content),
            "redaction_patterns": self._patterns(),
            "log_level": self._pick("log_level", self._written(self._config.logs, "level"), default="INFO"),
            "trace_file": self._trace_file(trace_file),
        }
        check_switches(metrics=seen_by["metrics"], logs=seen_by["logs"])
        if sent is self._environment:
            self._warnings += without_effect(sent)
        values["jaeger_url"] = resolve_jaeger(self._config.jaeger_url, values["traces"], self._environment, self._precedence)
        return TelemetrySettings(**values, sources=self._precedence.sources, warnings=tuple(self._warnings))

    def _pick(self, setting: str, *said: tuple[str, T | None], default: T) -> T:
        return self._precedence.pick(setting, *said, default=default)

    @staticmethod
    def _written(section: BaseModel, key: str) -> tuple[str, Any]:
        """What the agent file says; None where it says nothing and the model has its default."""
        return _FILE, getattr(section, key) if key in section.model_fields_set else None

    def _outputs(self, flag: bool | None) -> dict[str, Any]:
        source, names = self._traces_exporters() if flag is None else ("", None)
        switch = ("flag --observability" if flag else "flag --no-observability", flag)
        by_env = (source, None if names is None else "otlp" in names)
        otlp = self._pick("otlp", switch, by_env, (_FILE, self._config.enabled), default=False)
        reader = None if names is None or names == {"otlp"} else "console" in names
        console = self._pick("console", (source, reader), self._console_written(), default=True)
        return {"otlp": otlp, "console": console, **self._targets(otlp, (source, True if otlp and names else None))}

    def _console_written(self) -> tuple[str, bool | None]:
        if not self._config.traces.enabled:
            return _FILE, False
        return self._written(self._config.exporters.console, "enabled")

    def _traces_exporters(self) -> Named[set[str]]:
        source, said = self._environment.text("OTEL_TRACES_EXPORTER")
        if said is None:
            return source, None
        names = {name.strip().lower() for name in said.split(",") if name.strip()}
        problem = _exporter_problem(names, "traces", ("otlp", "console", "none"))
        if not problem:
            return source, names
        # Who wants spans to be sent must know that they are not; for everybody else nothing depends on it.
        wanted = "otlp" in names or (self._config.enabled and self._config.exporters.otlp.enabled)
        (self._environment if wanted else self._doubtful).refuse(source, problem)
        return source, None

    def _targets(self, otlp: bool, traces_said: tuple[str, bool | None]) -> dict[str, OtlpTarget | None]:
        if otlp and not self._config.exporters.otlp.enabled:
            self._warnings.append("nothing goes out over OTLP: the agent file says exporters.otlp.enabled: false; remove it")
        if not otlp or not self._config.exporters.otlp.enabled:
            return dict.fromkeys(SIGNALS)
        said = {"traces": traces_said, "metrics": self._exporter("metrics"), "logs": self._exporter("logs")}
        resolver = TargetResolver(self._config.exporters.otlp, self._environment, self._precedence, self._warnings)
        return {signal: resolver.target(signal) if self._is_on(signal, said[signal]) else None for signal in SIGNALS}

    def _is_on(self, signal: Signal, said: tuple[str, bool | None]) -> bool:
        enabled: bool = self._pick(f"{signal}.enabled", said, self._written(getattr(self._config, signal), "enabled"), default=True)
        return enabled

    def _exporter(self, signal: Signal) -> tuple[str, bool | None]:
        name = f"OTEL_{signal.upper()}_EXPORTER"
        source, said = self._environment.choice(name, known=("otlp", "none", "console"), elsewhere=_OTHER_EXPORTERS[signal])
        if said == "console":
            self._warnings.append(f"{name}=console: {signal} are not shown in the terminal, and not sent")
        return source, None if said is None else said == "otlp"

    def _console_form(self) -> dict[str, bool]:
        console = self._config.exporters.console
        defaults = {"pretty_print": True, "include_timestamps": False}
        return {key: self._pick(key, self._written(console, key), default=default) for key, default in defaults.items()}

    def _sampling(self, environment: Environment) -> dict[str, Any]:
        source, sampler = environment.choice("OTEL_TRACES_SAMPLER", known=_SAMPLERS, elsewhere=_OTHER_SAMPLERS)
        rate = self._config.traces.sample_rate
        by_rate = (_FILE, None if rate is None else "parentbased_traceidratio")
        chosen = self._pick("sampler", (source, sampler), by_rate, default="parentbased_always_on")
        if sampler is not None and sampler.endswith("traceidratio"):
            argument = environment.number("OTEL_TRACES_SAMPLER_ARG", low=0, high=1)
            return {"sampler": chosen, "sampler_arg": self._pick("sampler_arg", argument, default=1.0)}
        if environment.text("OTEL_TRACES_SAMPLER_ARG")[1] is not None:
            self._warnings.append(
                "OTEL_TRACES_SAMPLER_ARG has no effect: it needs OTEL_TRACES_SAMPLER=traceidratio or parentbased_traceidratio"
            )
        value = rate if sampler is None else None
        return {"sampler": chosen, "sampler_arg": self._pick("sampler_arg", (_FILE, value), default=None)}

    def _capture(self, flag: bool | None) -> bool:
        source, said = self._environment.text(_CAPTURE_VARIABLE)
        if said is not None and said.lower() not in _CAPTURE:
            raise setting_error(source, f"'{one_line(said, 40)}' is unknown: use {choices(tuple(_CAPTURE))}")
        by_env = None if said is None else _CAPTURE[said.lower()]
        written = (_FILE, self._config.traces.capture_content)
        return self._pick("capture_content", ("flag --capture-content", flag), (source, by_env), written, default=False)

    def _patterns(self) -> tuple[str, ...]:
        patterns = tuple(self._config.traces.redaction_patterns)
        return self._pick("redaction_patterns", (_FILE, patterns or None), default=())

    def _trace_file(self, trace_file: Path | None) -> Path | None:
        if trace_file is not None and trace_file.is_dir():
            raise SettingError(f"--trace-file {one_line(str(trace_file))}: this is a directory: name a file")
        if trace_file is not None and not trace_file.absolute().parent.is_dir():
            raise SettingError(f"--trace-file {one_line(str(trace_file))}: the directory does not exist: make it first")
        return self._pick("trace_file", ("flag --trace-file", trace_file), default=None)
