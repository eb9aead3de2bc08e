"""Spans as bytes: the same as OpenTelemetry's own encoder, and what that one cannot encode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from holodeck.telemetry.spool.encoding import crashed, encode, request_of, resource_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
SCALARS = st.one_of(TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
VALUES = st.one_of(SCALARS, st.lists(TEXT, max_size=3), st.lists(st.integers(-9, 9), max_size=3), st.binary(max_size=9), st.none())
ATTRIBUTES = st.dictionaries(TEXT.filter(bool), VALUES, max_size=6)
ELSEWHERE = SpanContext(2**127 + 1, 2**63 + 1, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("a", "b")]))
PROVIDER = TracerProvider(resource=Resource({"service.name": "x", "n": 3}, "https://example.invalid/schema"))


def make_span(attributes: dict[str, Any], *, name: str = "work", status: Status | None = None) -> Any:
    """A finished span with an event and a link."""
    tracer = PROVIDER.get_tracer("scope", "1", "https://example.invalid/scope", {"k": "v"})
    span = tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes, links=[Link(ELSEWHERE, {"l": 1})])
    span.add_event("seen", attributes, 1)
    span.set_status(status or Status(StatusCode.ERROR, "broken"))
    span.end()
    return span


@given(ATTRIBUTES, st.sampled_from(list(StatusCode)))
def test_the_encoding_is_opentelemetrys(attributes: dict[str, Any], code: StatusCode) -> None:
    """Resource and span together are what encode_spans makes of the same span."""
    span = make_span(attributes, status=Status(code))
    assert ExportTraceServiceRequest.FromString(request_of(resource_of(span), [encode(span)])) == encode_spans([span])


def test_a_child_of_another_process_keeps_its_parent() -> None:
    """Parent, trace state and the flag for a remote parent are encoded."""
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    span = PROVIDER.get_tracer("s").start_span("child", context=set_span_in_context(NonRecordingSpan(ELSEWHERE)))
    span.end()
    assert ExportTraceServiceRequest.FromString(request_of(resource_of(span), [encode(span)])) == encode_spans([span])


@pytest.mark.parametrize("value", ["\ud83e", "a" * 100 + "\ud83e"])
def test_a_lone_surrogate_is_replaced_wherever_it_stands(value: str) -> None:
    """Name, status text, attribute names and values, events: the span is exportable."""
    span = make_span({value: value}, name=value, status=Status(StatusCode.ERROR, value))
    encoded = ScopeSpans.FromString(encode(span)).spans[0]
    replaced = value.replace("\ud83e", "\ufffd")
    assert (encoded.name, encoded.status.message) == (replaced, replaced)
    assert (encoded.attributes[0].key, encoded.attributes[0].value.string_value) == (replaced, replaced)
    assert encoded.events[0].attributes[0].value.string_value == replaced


def test_an_integer_over_64_bits_is_text() -> None:
    """What OTLP has no type for is exported as text, not left out."""
    span = PROVIDER.get_tracer("s").start_span("big")
    span.set_attribute("n", 2**70)
    span.end()
    assert ScopeSpans.FromString(encode(span)).spans[0].attributes[0].value.string_value == str(2**70)


def test_several_spans_make_one_request() -> None:
    """Spans keep their order and share the resource."""
    spans = [make_span({"i": i}) for i in range(3)]
    request = ExportTraceServiceRequest.FromString(request_of(resource_of(spans[0]), [encode(span) for span in spans]))
    (resource,) = request.resource_spans
    assert [s.spans[0].attributes[0].value.int_value for s in resource.scope_spans] == [0, 1, 2]
    assert request_of(b"", []) == b"\x0a\x00"


def test_an_open_span_is_ended_as_crashed() -> None:
    """ERROR, error.type and the time are added; what cannot be read is None."""
    span = PROVIDER.get_tracer("s").start_span("open", attributes={"k": "v"})
    ended = ScopeSpans.FromString(crashed(encode(span), 2**62) or b"").spans[0]
    assert (ended.end_time_unix_nano, ended.status.code) == (2**62, 2)
    assert ended.status.message == "the process ended before this span"
    assert {a.key: a.value.string_value for a in ended.attributes} == {"k": "v", "error.type": "process_crashed"}
    early = ScopeSpans.FromString(crashed(encode(span), 5) or b"").spans[0]
    assert early.end_time_unix_nano == early.start_time_unix_nano
    assert crashed(b"\xff\xff", 1) is None
    assert crashed(b"", 1) is None


@pytest.mark.parametrize(
    ("start", "end", "written"),
    [(-5, -1, (0, 0)), (2**70, 2**71, (2**64 - 1, 2**64 - 1)), (1.5e18, 1.6e18, (15 * 10**17, 16 * 10**17)), (10**18, 5, (10**18, 5))],
)
def test_any_time_can_be_encoded(start: float, end: float, written: tuple[int, int]) -> None:
    """User code may give a span times that no clock has: it is sent with the nearest that OTLP can carry."""
    span = PROVIDER.get_tracer("user").start_span("odd", start_time=start)  # type: ignore[arg-type]
    span.end(end_time=end)  # type: ignore[arg-type]
    (encoded,) = ScopeSpans.FromString(encode(span)).spans  # type: ignore[arg-type]
    assert (encoded.start_time_unix_nano, encoded.end_time_unix_nano) == written
