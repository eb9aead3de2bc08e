"""Variables of OpenTelemetry that do not configure HoloDeck: those that would break it, and those that somebody may count on in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holodeck.config.environment import setting_error
from holodeck.lib.problems import one_line

if TYPE_CHECKING:
    from holodeck.config.environment import Environment

__all__ = ["check_providers", "check_switches", "without_effect"]

_PROVIDERS: Final = ("tracer_provider", "meter_provider")
_W3C: Final = frozenset({"tracecontext", "baggage"})
_UNUSED: Final = {
    "OTEL_CONFIG_FILE": "HoloDeck reads no configuration file of OpenTelemetry",
    "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "write the attributes into OTEL_RESOURCE_ATTRIBUTES",
    **{
        f"OTEL_PYTHON_EXPORTER_OTLP_{protocol}_{signal}CREDENTIAL_PROVIDER": "write what authenticates into OTEL_EXPORTER_OTLP_HEADERS"
        for protocol in ("HTTP", "GRPC")
        for signal in ("", "TRACES_", "METRICS_", "LOGS_")
    },
}


def check_providers(environment: Environment) -> None:
    """Refuse a provider that is not installed: Semantic Kernel asks OpenTelemetry for it when it is imported, and that never returns.

    Raises:
        SettingError: ``OTEL_PYTHON_TRACER_PROVIDER`` or ``OTEL_PYTHON_METER_PROVIDER`` names none.
    """
    for kind in _PROVIDERS:
        name = f"OTEL_PYTHON_{kind.upper()}"
        if not environment.is_there(name):
            continue
        from importlib.metadata import entry_points  # noqa: PLC0415 - only where somebody names one

        provider = environment.text(name)[1] or ""
        if not entry_points(group=f"opentelemetry_{kind}", name=provider):
            said = f"'{one_line(provider, 40)}' is not installed" if provider else "is empty, which OpenTelemetry takes for a name"
            raise setting_error(f"env {name}", f"{said}: unset it, HoloDeck brings its own")


def check_switches(*, metrics: Environment, logs: Environment) -> None:
    """Look at the switches that OpenTelemetry's libraries read by themselves, and that cannot be handed to them.

    Raises:
        SettingError: One is neither true nor false, and that matters to its signal.
    """
    metrics.choice("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", known=("true", "false"))
    logs.choice("OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT", known=("true", "false"))


def without_effect(environment: Environment) -> list[str]:
    """One line for each variable that is set and changes nothing."""
    lines = [f"{name} has no effect: {why}" for name, why in _UNUSED.items() if environment.text(name)[1] is not None]
    said = environment.text("OTEL_PROPAGATORS")[1]
    if said is not None and not {each.strip().lower() for each in said.split(",")} <= _W3C:
        lines.append("OTEL_PROPAGATORS has no effect: MCP servers get a W3C traceparent")
    return lines
