"""What the SDK is given, so that it reads nothing by itself: settings take effect, and the environment of the process does not."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk._logs import ReadWriteLogRecord
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext

from holodeck.config import resolve_telemetry
from holodeck.models.observability import ObservabilityConfig, OtlpTarget, RecordLimits, TelemetrySettings
from holodeck.telemetry import create_telemetry
from holodeck.testing.memory import LogCollector
from support.otlp_receiver import OtlpReceiver
from support.telemetry import RESOURCE, memory_telemetry, record_turn

NAMES = (
    *("OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"),
    *("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", "OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT"),
    *("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    *("OTEL_BLRP_MAX_QUEUE_SIZE", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "OTEL_BLRP_SCHEDULE_DELAY", "OTEL_BLRP_EXPORT_TIMEOUT"),
    *("OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"),
    *("OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT", "OTEL_METRICS_EXEMPLAR_FILTER", "OTEL_TRACES_SAMPLER"),
    *("OTEL_TRACES_SAMPLER_ARG", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "OTEL_PYTHON_ID_GENERATOR"),
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
    "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED",
    "OTEL_PYTHON_METER_PROVIDER",
    "OTEL_PYTHON_TRACER_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_GRPC_RETRYABLE_ERROR_CODES",
    *(f"OTEL_PYTHON_EXPORTER_OTLP_{p}_{s}CREDENTIAL_PROVIDER" for p in ("HTTP", "GRPC") for s in ("", "METRICS_", "LOGS_")),
    *(
        f"OTEL_EXPORTER_OTLP_{s}{name}"
        for s in ("", "TRACES_", "METRICS_", "LOGS_")
        for name in (
            *("ENDPOINT", "PROTOCOL", "TIMEOUT", "COMPRESSION", "INSECURE"),
            *("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"),
        )
    ),
)
GARBAGE = dict.fromkeys(NAMES, "bogus") | {
    "OTEL_SDK_DISABLED": "true",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-stray=secret",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-stray=secret",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-stray=secret",
}
SIGNALS = ("traces", "metrics", "logs")


@pytest.mark.parametrize("value", ["garbage", "empty"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_environment_of_the_process_changes_nothing(protocol: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are all that counts: every variable that the SDK and its exporters know may hold anything, and no header strays in."""
    for name, garbage in GARBAGE.items():
        monkeypatch.setenv(name, garbage if value == "garbage" else "")
    with OtlpReceiver() as receiver:
        url = receiver.grpc_url if protocol == "grpc" else ""
        where = {s: OtlpTarget(url=url or f"{receiver.http_url}/v1/{s}", protocol=protocol) for s in SIGNALS}
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **where))
        record_turn(made)
        made.shutdown()
        assert {arrival.signal for arrival in receiver.raw} == set(SIGNALS)
        assert len(receiver.spans) == 3
        assert not any("x-stray" in arrival.headers for arrival in receiver.raw)
        assert {m.kind for m in receiver.metrics if m.name == "gen_ai.client.token.usage"} == {"histogram"}


def test_limits_of_the_environment_hold_for_spans() -> None:
    """Attributes, events and links of a span, and what is in them, are cut at the limits."""
    environ = {
        "OTEL_ATTRIBUTE_COUNT_LIMIT": "5",
        "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": "1",
        "OTEL_SPAN_EVENT_COUNT_LIMIT": "2",
        "OTEL_SPAN_LINK_COUNT_LIMIT": "3",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "10",
        "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "20",
    }
    exporter = InMemorySpanExporter()
    made = create_telemetry(resolve_telemetry(ObservabilityConfig(), environ), span_processors=[SimpleSpanProcessor(exporter)])
    many: dict[str, Any] = {f"a{n}": "x" * 50 for n in range(9)}
    tracer = made._providers[0].get_tracer("test")
    with tracer.start_as_current_span(
        "s", attributes=many, links=[Link(SpanContext(n, n, is_remote=False), many) for n in range(1, 9)]
    ) as s:
        for _ in range(9):
            s.add_event("e", many)
    made.shutdown()
    (span,) = exporter.get_finished_spans()
    assert (len(span.attributes), len(span.events), len(span.links)) == (5, 2, 3)
    assert (len(span.events[0].attributes), len(span.links[0].attributes)) == (5, 1)
    assert {len(v) for v in span.attributes.values()} == {20}
    assert {len(v) for v in span.events[0].attributes.values()} == {10}


def test_limits_of_zero_leave_a_turn_whole() -> None:
    """Nothing is left on the spans, and the chat goes on."""
    limits = RecordLimits(span_attributes=0, events=0, links=0, event_attributes=0, link_attributes=0, log_attributes=0)
    with memory_telemetry(limits=limits, attribute_length_limit=0) as memory:
        record_turn(memory.telemetry)
        assert [len(span.attributes) for span in memory.spans] == [0, 0, 0]


def test_limits_of_the_environment_hold_for_log_records() -> None:
    """Attributes of a log record and their length have limits of their own."""
    environ = {"OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT": "2", "OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3"}
    collector = LogCollector()
    made = create_telemetry(resolve_telemetry(ObservabilityConfig(), environ), log_processors=[collector])
    record_turn(made)
    made.shutdown()
    (record,) = collector.records
    assert isinstance(record, ReadWriteLogRecord)
    limits = record.limits
    assert (limits.max_log_record_attributes, limits.max_log_record_attribute_length) == (2, 3)


@pytest.mark.parametrize(("choice", "kept"), [("trace_based", True), ("always_on", True), ("always_off", False)])
def test_the_exemplar_filter_decides_what_is_an_exemplar(choice: Any, kept: bool) -> None:
    """Measurements of a turn carry its trace id as exemplars, unless they are switched off."""
    with memory_telemetry(exemplar_filter=choice) as memory:
        record_turn(memory.telemetry)
        points = memory.metrics()["gen_ai.client.token.usage"]
    assert any(point.exemplars for point in points) is kept
