from __future__ import annotations

import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import holodeck
from holodeck.config import resolve_telemetry
from holodeck.errors import ConfigError, SettingError
from holodeck.models.observability import ObservabilityConfig, TelemetrySettings

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def resolve(section: dict[str, Any] | None = None, environ: dict[str, str] | None = None, **flags: Any) -> TelemetrySettings:
    """Settings of this ``observability`` section, environment and flags."""
    return resolve_telemetry(ObservabilityConfig.model_validate(section or {}), environ or {}, **flags)


def sent(settings: TelemetrySettings) -> set[str]:
    """The signals that have a target."""
    return {signal for signal in ("traces", "metrics", "logs") if getattr(settings, signal)}


ALL = {"traces", "metrics", "logs"}


def test_by_default_nothing_leaves_the_process() -> None:
    """The terminal reads, nothing is sent, content is shut, and every source is the default."""
    settings = resolve()
    assert (settings.otlp, settings.console, settings.capture_content, settings.disabled) == (False, True, False, False)
    assert sent(settings) == set()
    assert set(settings.sources.values()) == {"default"}
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("flag", "exporter", "written", "otlp", "source"),
    [
        (None, None, None, False, "default"),
        (None, None, True, True, "agent file"),
        (None, None, False, False, "agent file"),
        (None, "otlp", False, True, "env OTEL_TRACES_EXPORTER"),
        (None, "console", True, False, "env OTEL_TRACES_EXPORTER"),
        (None, "none", True, False, "env OTEL_TRACES_EXPORTER"),
        (None, " ", True, True, "agent file"),
        (None, "console, OTLP", None, True, "env OTEL_TRACES_EXPORTER"),
        (True, "none", False, True, "flag --observability"),
        (True, "nonsense", False, True, "flag --observability"),
        (False, "otlp", True, False, "flag --no-observability"),
    ],
)
def test_the_switch_is_flag_then_environment_then_file(
    flag: bool | None, exporter: str | None, written: bool | None, otlp: bool, source: str
) -> None:
    """Each source beats those below it, in both directions, and is named."""
    environ = {} if exporter is None else {"OTEL_TRACES_EXPORTER": exporter}
    settings = resolve({} if written is None else {"enabled": written}, environ, observability=flag)
    assert (settings.otlp, settings.sources["otlp"]) == (otlp, source)
    assert sent(settings) == (ALL if otlp else set())


@pytest.mark.parametrize(
    ("exporter", "written", "console"),
    [
        ("none", {}, False),
        ("otlp", {}, True),
        ("otlp", {"enabled": False}, False),
        ("console", {"enabled": False}, True),
        ("otlp,console", {"enabled": False}, True),
        ("", {"enabled": False}, False),
    ],
)
def test_the_reader_in_the_terminal_follows_the_environment(exporter: str, written: dict[str, bool], console: bool) -> None:
    """``none`` silences it, ``console`` brings it back, ``otlp`` leaves it as the file says."""
    assert resolve({"exporters": {"console": written}}, {"OTEL_TRACES_EXPORTER": exporter}).console is console


@pytest.mark.parametrize(
    ("exporter", "enabled", "words"),
    [
        ("otlp,jaeger", None, "'jaeger' is not supported by HoloDeck: use otlp, console or none"),
        ("otpl,otlp", None, "'otpl' is unknown"),
        ("none,otlp", None, "none cannot stand beside other exporters"),
        ("zipkin", True, "'zipkin' is not supported by HoloDeck"),
    ],
)
def test_who_wants_spans_to_be_sent_is_told_that_they_are_not(exporter: str, enabled: bool | None, words: str) -> None:
    """A name that means nothing here is one error where OTLP is asked for."""
    with pytest.raises(SettingError, match=rf"^OTEL_TRACES_EXPORTER: {words}"):
        resolve({} if enabled is None else {"enabled": enabled}, {"OTEL_TRACES_EXPORTER": exporter})


@pytest.mark.parametrize(
    ("exporter", "words"), [("zipkin", "not supported by HoloDeck"), ("nonsense", "unknown"), ("none,console", "none cannot stand")]
)
def test_an_unknown_exporter_alone_is_a_warning(exporter: str, words: str) -> None:
    """Where nothing is to be sent over OTLP the chat goes on, as if the variable were not there."""
    settings = resolve({}, {"OTEL_TRACES_EXPORTER": exporter})
    assert (settings.otlp, settings.console, sent(settings)) == (False, True, set())
    (line,) = settings.warnings
    assert line.startswith("OTEL_TRACES_EXPORTER: ")
    assert words in line


def test_an_endpoint_alone_turns_nothing_on() -> None:
    """Variables of OTLP are not even read while the switch is off."""
    settings = resolve({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense", "OTEL_METRICS_EXPORTER": "prometheus"})
    assert (settings.otlp, sent(settings)) == (False, set())


@pytest.mark.parametrize("value", ["true", "TRUE", " True "])
def test_disabled_beats_everything(value: str) -> None:
    """Nothing is set up, whatever flag, environment and file say; a trace file is said to stay empty."""
    settings = resolve(
        {"enabled": True}, {"OTEL_SDK_DISABLED": value, "OTEL_TRACES_EXPORTER": "x"}, observability=True, trace_file=Path("t")
    )
    assert (settings.disabled, settings.otlp, settings.console, sent(settings), settings.trace_file) == (True, False, False, set(), None)
    assert settings.sources["disabled"] == "env OTEL_SDK_DISABLED"
    assert settings.warnings == ("--trace-file writes nothing: OTEL_SDK_DISABLED=true switches telemetry off",)


@pytest.mark.parametrize(("value", "warned"), [("1", True), ("yes", True), ("false", False), ("False", False), ("", False)])
def test_only_true_disables(value: str, warned: bool) -> None:
    """Anything else counts as false, with a warning unless it says so."""
    settings = resolve({}, {"OTEL_SDK_DISABLED": value})
    assert settings.disabled is False
    assert bool(settings.warnings) is warned


def test_single_signals_can_be_left_out() -> None:
    """The environment and the file switch signals off; the environment wins."""
    assert sent(resolve({"enabled": True, "metrics": {"enabled": False}})) == {"traces", "logs"}
    assert sent(
        resolve({"enabled": True, "logs": {"enabled": False}}, {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "otlp"})
    ) == {"traces", "logs"}
    settings = resolve({"enabled": True}, {"OTEL_METRICS_EXPORTER": "console"})
    assert sent(settings) == {"traces", "logs"}
    assert settings.warnings == ("OTEL_METRICS_EXPORTER=console: metrics are not shown in the terminal, and not sent",)
    with pytest.raises(SettingError, match=r"^OTEL_LOGS_EXPORTER: 'loki' is unknown"):
        resolve({"enabled": True}, {"OTEL_LOGS_EXPORTER": "loki"})
    with pytest.raises(SettingError, match=r"^OTEL_METRICS_EXPORTER: 'prometheus' is not supported by HoloDeck: use otlp, none"):
        resolve({"enabled": True}, {"OTEL_METRICS_EXPORTER": "prometheus"})


def test_without_traces_there_is_nothing_to_read_or_send() -> None:
    """``traces.enabled: false`` stops spans on both ways; the environment brings them back."""
    section = {"enabled": True, "traces": {"enabled": False}}
    assert (sent(resolve(section)), resolve(section).console) == ({"metrics", "logs"}, False)
    assert sent(resolve(section, {"OTEL_TRACES_EXPORTER": "otlp"})) == ALL


def test_a_closed_otlp_exporter_is_said() -> None:
    """The switch is on and nothing goes out: a warning with the reason."""
    settings = resolve({"exporters": {"otlp": {"enabled": False}}}, observability=True)
    assert (settings.otlp, sent(settings)) == (True, set())
    assert "exporters.otlp.enabled: false" in settings.warnings[0]


def test_the_form_of_the_console_is_the_files() -> None:
    """Lines for programs and timestamps are asked for in the file."""
    settings = resolve({"exporters": {"console": {"pretty_print": False, "include_timestamps": True}}})
    assert (settings.pretty_print, settings.include_timestamps) == (False, True)
    assert settings.sources["pretty_print"] == "agent file"


@pytest.mark.parametrize(
    ("section", "environ", "name", "source"),
    [
        ({}, {}, "holodeck", "default"),
        ({"resource_attributes": {"service.name": "a"}}, {}, "a", "agent file"),
        ({"resource_attributes": {"service.name": "a"}, "service_name": "weather bot/é"}, {}, "weather bot/é", "agent file"),
        ({"service_name": "b"}, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=c%20d"}, "c d", "env OTEL_RESOURCE_ATTRIBUTES"),
        ({"service_name": "b"}, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=c", "OTEL_SERVICE_NAME": " d "}, "d", "env OTEL_SERVICE_NAME"),
        ({"service_name": "b"}, {"OTEL_SERVICE_NAME": ""}, "b", "agent file"),
        ({"service_name": " "}, {}, "holodeck", "default"),
    ],
)
def test_the_service_name_has_one_precedence(section: dict[str, Any], environ: dict[str, str], name: str, source: str) -> None:
    """Default < resource_attributes < service_name < OTEL_RESOURCE_ATTRIBUTES < OTEL_SERVICE_NAME."""
    settings = resolve(section, environ)
    assert settings.resource["service.name"] == name
    assert settings.sources["resource.service.name"] == source


def test_the_resource_says_which_process_it_is() -> None:
    """Version and a new instance id are always there; the user's own win; types of the file stay."""
    first, second = resolve().resource, resolve().resource
    assert first["service.version"] == holodeck.__version__
    assert UUID(first["service.instance.id"]).version == 4
    assert first["service.instance.id"] != second["service.instance.id"]
    own = resolve(
        {"resource_attributes": {"service.instance.id": "me", "team": 7, "ok": True}}, {"OTEL_RESOURCE_ATTRIBUTES": "team=%C3%A9+1"}
    ).resource
    assert (own["service.instance.id"], own["team"], own["ok"]) == ("me", "é+1", True)


@pytest.mark.parametrize("text", ["nonsense", "a=b,c", "=x"])
def test_resource_attributes_are_pairs(text: str) -> None:
    """An entry that is no pair is refused; where nothing is sent, the whole variable is left out with a warning."""
    with pytest.raises(SettingError, match=r"^OTEL_RESOURCE_ATTRIBUTES: entry"):
        resolve({}, {"OTEL_RESOURCE_ATTRIBUTES": text}, observability=True)
    settings = resolve({}, {"OTEL_RESOURCE_ATTRIBUTES": text})
    assert "a" not in settings.resource
    assert settings.warnings[0].startswith("OTEL_RESOURCE_ATTRIBUTES: entry")


@pytest.mark.parametrize(
    ("rate", "environ", "sampler", "argument"),
    [
        (None, {}, "parentbased_always_on", None),
        (0.25, {}, "parentbased_traceidratio", 0.25),
        (0.0, {}, "parentbased_traceidratio", 0.0),
        (0.25, {"OTEL_TRACES_SAMPLER": "always_off"}, "always_off", None),
        (0.25, {"OTEL_TRACES_SAMPLER": "TraceIdRatio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, "traceidratio", 0.5),
        (0.25, {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, "parentbased_traceidratio", 1.0),
    ],
)
def test_sampling_is_the_environments_or_the_files(
    rate: float | None, environ: dict[str, str], sampler: str, argument: float | None
) -> None:
    """A sampler of the environment brings its own argument; the file's rate is a ratio."""
    settings = resolve({"traces": {"sample_rate": rate}}, environ)
    assert (settings.sampler, settings.sampler_arg) == (sampler, argument)


def test_a_sampler_argument_without_use_is_said() -> None:
    """An argument that nothing reads is a warning; one out of range is an error."""
    assert "has no effect" in resolve({}, {"OTEL_TRACES_SAMPLER_ARG": "0.5"}).warnings[0]
    assert "has no effect" in resolve({}, {"OTEL_TRACES_SAMPLER_ARG": "0.5", "OTEL_TRACES_SAMPLER": "always_on"}).warnings[0]
    with pytest.raises(SettingError, match=r"^OTEL_TRACES_SAMPLER_ARG: '2' is not a number from 0 to 1"):
        resolve({"enabled": True}, {"OTEL_TRACES_SAMPLER_ARG": "2", "OTEL_TRACES_SAMPLER": "traceidratio"})


@pytest.mark.parametrize(
    ("sampler", "words"), [("jaeger_remote", "is not supported by HoloDeck: use "), ("allways_on", "is unknown: use ")]
)
def test_a_sampler_that_is_not_there_matters_where_spans_are_sent(sampler: str, words: str) -> None:
    """It is an error with OTLP and a warning without; its argument, which nothing reads, is never an error."""
    environ = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": "endpoint=http://h:1"}
    with pytest.raises(SettingError, match=rf"^OTEL_TRACES_SAMPLER: '{sampler}' {words}"):
        resolve({}, environ, observability=True)
    settings = resolve({"traces": {"sample_rate": 0.5}}, environ)
    assert (settings.sampler, settings.sampler_arg) == ("parentbased_traceidratio", 0.5)
    assert words in settings.warnings[0]
    assert "has no effect" in settings.warnings[1]


NUMBERS = [
    ("max_queue_size", "OTEL_BSP_MAX_QUEUE_SIZE", {"traces": {"max_queue_size": 700}}, 700, 2048),
    ("max_export_batch_size", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", {"traces": {"max_export_batch_size": 300}}, 300, 512),
    ("schedule_delay_millis", "OTEL_BSP_SCHEDULE_DELAY", {"traces": {"schedule_delay_millis": 40}}, 40, 5000),
    ("export_interval_ms", "OTEL_METRIC_EXPORT_INTERVAL", {"metrics": {"export_interval_ms": 50}}, 50, 60_000),
    ("attribute_length_limit", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", {}, None, 65_536),
    ("attribute_length_limit", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", {}, None, 65_536),
    ("log_max_queue_size", "OTEL_BLRP_MAX_QUEUE_SIZE", {}, None, 2048),
    ("log_max_export_batch_size", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", {}, None, 512),
    ("log_schedule_delay_millis", "OTEL_BLRP_SCHEDULE_DELAY", {}, None, 1000),
    ("limits.span_attributes", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", {}, None, 256),
    ("limits.span_attributes", "OTEL_ATTRIBUTE_COUNT_LIMIT", {}, None, 256),
    ("limits.events", "OTEL_SPAN_EVENT_COUNT_LIMIT", {}, None, 128),
    ("limits.links", "OTEL_SPAN_LINK_COUNT_LIMIT", {}, None, 128),
    ("limits.event_attributes", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.event_attributes", "OTEL_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.link_attributes", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.link_attributes", "OTEL_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.attribute_length", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", {}, None, 65_536),
    ("limits.log_attributes", "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.log_attributes", "OTEL_ATTRIBUTE_COUNT_LIMIT", {}, None, 128),
    ("limits.log_attribute_length", "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", {}, None, 65_536),
    ("limits.log_attribute_length", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", {}, None, 65_536),
]


@pytest.mark.parametrize(("setting", "variable", "section", "written", "default"), NUMBERS)
def test_numbers_come_from_environment_file_or_default(
    setting: str, variable: str, section: dict[str, Any], written: int | None, default: int
) -> None:
    """Each number has its variable, its key where it has one, and its default; garbage is refused by name, or a warning without OTLP."""
    value = attrgetter(setting)
    assert value(resolve()) == default
    if written is not None:
        assert value(resolve(section)) == written
    settings = resolve(section, {variable: "60"}, observability=True)
    assert (value(settings), settings.sources[setting]) == (60, f"env {variable}")
    for garbage in ("many", "-3", "1.5"):
        with pytest.raises(SettingError, match=rf"^{variable}: '{garbage}' is not a whole number"):
            resolve(section, {variable: garbage}, observability=True)
        without = resolve(section, {variable: garbage})
        assert value(without) == (default if written is None else written)
        assert [line.partition(":")[0] for line in without.warnings] == [variable]


WORDS = [
    ("metric_temporality", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "LowMemory", "lowmemory", "cumulative"),
    (
        "metric_histogram",
        "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
        "base2_exponential_bucket_histogram",
        "base2_exponential_bucket_histogram",
        "explicit_bucket_histogram",
    ),
    ("exemplar_filter", "OTEL_METRICS_EXEMPLAR_FILTER", "Always_Off", "always_off", "trace_based"),
]


@pytest.mark.parametrize(("setting", "variable", "said", "value", "default"), WORDS)
def test_the_form_of_metrics_is_the_environments(setting: str, variable: str, said: str, value: str, default: str) -> None:
    """Each is one of a few words in any case; another one matters only where metrics are sent."""
    assert getattr(resolve(), setting) == default
    settings = resolve({}, {variable: said}, observability=True)
    assert (getattr(settings, setting), settings.sources[setting]) == (value, f"env {variable}")
    with pytest.raises(SettingError, match=rf"^{variable}: 'bogus' is unknown: use "):
        resolve({}, {variable: "bogus"}, observability=True)
    for section, flag in (({}, False), ({"metrics": {"enabled": False}}, True)):
        without = resolve(section, {variable: "bogus"}, observability=flag)
        assert getattr(without, setting) == default
        assert without.warnings == (next(line for line in without.warnings if line.startswith(f"{variable}: ")),)


@pytest.mark.parametrize("variable", ["OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER"])
def test_a_provider_that_is_not_installed_is_refused(variable: str) -> None:
    """OpenTelemetry would look for it while a library is imported, and the chat would never begin; an empty name is one, too."""
    for value, words in (("bogus", "'bogus' is not installed"), ("", "is empty")):
        with pytest.raises(SettingError, match=rf"^{variable}: {words}.*: unset it"):
            resolve({}, {variable: value})
    assert resolve({}, {variable: f"default_{variable.removeprefix('OTEL_PYTHON_').lower()}"}).warnings == ()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_CONFIG_FILE", "otel.yaml"),
        ("OTEL_PROPAGATORS", "tracecontext,b3"),
        ("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "process"),
        ("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "gcp"),
        ("OTEL_PYTHON_EXPORTER_OTLP_GRPC_METRICS_CREDENTIAL_PROVIDER", "gcp"),
    ],
)
def test_what_changes_nothing_is_said_where_something_is_sent(variable: str, value: str) -> None:
    """Who sets a variable that HoloDeck does not read gets a line, and only where telemetry leaves the process."""
    (line,) = resolve({}, {variable: value}, observability=True).warnings
    assert line.startswith(f"{variable} has no effect: ")
    assert resolve({}, {variable: value}).warnings == ()
    assert resolve({}, {"OTEL_PROPAGATORS": "baggage, TraceContext"}, observability=True).warnings == ()


@pytest.mark.parametrize("variable", ["OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"])
def test_switches_of_the_libraries_are_true_or_false(variable: str) -> None:
    """They are read by the libraries themselves: a word that means nothing is found before."""
    for word in ("true", "FALSE"):
        assert resolve({}, {variable: word}, observability=True).warnings == ()
    with pytest.raises(SettingError, match=rf"^{variable}: '1' is unknown: use true or false"):
        resolve({}, {variable: "1"}, observability=True)


@pytest.mark.parametrize(("variable", "setting"), [("OTEL_BSP_SCHEDULE_DELAY", "schedule_delay_millis")])
def test_no_time_is_longer_than_a_process_can_wait(variable: str, setting: str) -> None:
    """What a clock cannot hold is refused, in the environment and in the file."""
    with pytest.raises(SettingError, match=rf"^{variable}: '2147483648' is not a whole number from 1 to 2,147,483,647"):
        resolve({}, {variable: str(2**31)}, observability=True)
    with pytest.raises(ValueError, match=setting):
        ObservabilityConfig.model_validate({"traces": {setting: 2**31}})


def test_the_limit_for_spans_wins() -> None:
    """The more specific limit counts."""
    environ = {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "10", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "20"}
    settings = resolve({}, environ)
    assert (settings.attribute_length_limit, settings.limits.attribute_length, settings.limits.log_attribute_length) == (20, 10, 10)


def test_a_batch_fits_into_the_queue() -> None:
    """A larger batch is an error of who asked for it; the default shrinks with the queue."""
    assert resolve({"traces": {"max_queue_size": 100}}).max_export_batch_size == 100
    section, environ = {"traces": {"max_queue_size": 100}}, {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "101"}
    with pytest.raises(SettingError, match=r"^OTEL_BSP_MAX_EXPORT_BATCH_SIZE: 101 is more than the queue holds"):
        resolve(section, environ, observability=True)
    assert (resolve(section, environ).max_export_batch_size, len(resolve(section, environ).warnings)) == (100, 1)
    with pytest.raises(SettingError, match=r"^OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: 99999 is more than the queue holds \(2048\)"):
        resolve({}, {"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE": "99999"}, observability=True)
    assert resolve({}, {"OTEL_BLRP_MAX_QUEUE_SIZE": "7"}).log_max_export_batch_size == 7
    with pytest.raises(ConfigError, match=r"traces\.max_export_batch_size: 101 is more"):
        resolve({"traces": {"max_export_batch_size": 101}}, {"OTEL_BSP_MAX_QUEUE_SIZE": "100"})


@pytest.mark.parametrize(
    ("flag", "said", "written", "is_open", "source"),
    [
        (None, None, None, False, "default"),
        (None, None, True, True, "agent file"),
        (None, "NO_CONTENT", True, False, f"env {CAPTURE}"),
        (None, "false", True, False, f"env {CAPTURE}"),
        (None, "True", False, True, f"env {CAPTURE}"),
        (None, "span_only", None, True, f"env {CAPTURE}"),
        (None, "EVENT_ONLY", None, True, f"env {CAPTURE}"),
        (None, "SPAN_AND_EVENT", None, True, f"env {CAPTURE}"),
        (True, "false", False, True, "flag --capture-content"),
        (False, "true", True, False, "flag --capture-content"),
    ],
)
def test_the_content_gate_is_flag_then_environment_then_file(
    flag: bool | None, said: str | None, written: bool | None, is_open: bool, source: str
) -> None:
    """Content is shut unless the highest source that speaks opens it."""
    settings = resolve({"traces": {"capture_content": written}}, {} if said is None else {CAPTURE: said}, capture_content=flag)
    assert (settings.capture_content, settings.sources["capture_content"]) == (is_open, source)


def test_an_unclear_content_gate_is_refused() -> None:
    """A word that is neither open nor shut is an error, not a guess."""
    with pytest.raises(SettingError, match=rf"^{CAPTURE}: '1' is unknown"):
        resolve({}, {CAPTURE: "1"})


def test_redaction_patterns_are_tried_by_re2() -> None:
    """Good patterns arrive; those RE2 cannot do, and those that match everywhere, are named, in no time for any pattern."""
    patterns = [r"sk-\w+", r"(a+)+$"]
    assert resolve({"traces": {"redaction_patterns": patterns}}).redaction_patterns == tuple(patterns)
    for bad in (r"(?<=x)y", r"(a)\1", "(", "x*", ""):
        with pytest.raises(
            ConfigError, match=r"observability\.traces\.redaction_patterns\[1\]: (not a pattern of RE2|.* matches the empty text)"
        ):
            resolve({"traces": {"redaction_patterns": ["ok", bad]}})


def test_log_level_is_the_files() -> None:
    """The lowest level that is exported is written in the file, in any case."""
    assert resolve().log_level == "INFO"
    assert resolve({"logs": {"level": "critical"}}).log_level == "CRITICAL"


def test_a_trace_file_needs_a_directory(tmp_path: Path) -> None:
    """A path that cannot be written to is found before the first turn."""
    assert resolve(trace_file=tmp_path / "t.jsonl").trace_file == tmp_path / "t.jsonl"
    for bad in (tmp_path, tmp_path / "no" / "t.jsonl"):
        with pytest.raises(SettingError, match=r"^--trace-file "):
            resolve(trace_file=bad)


def test_resolving_imports_no_opentelemetry() -> None:
    """Settings are data: neither the SDK nor RE2 is loaded for them."""
    code = (
        "import sys; from holodeck.config import resolve_telemetry; from holodeck.models.observability import ObservabilityConfig as C;"
        "resolve_telemetry(C(), {}, observability=True); print({'opentelemetry', 're2'} & {m.partition('.')[0] for m in sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
