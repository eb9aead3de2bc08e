"""Spans as OTLP bytes, one ``ScopeSpans`` a span, and requests put together from such bytes.

A request is never encoded again: protobuf messages can be put together from encoded parts, which is why a batch that is sent a second time
is the same byte for byte.

Spans are encoded twice each, when they start and when they end, on the thread that the chat runs on. OpenTelemetry's ``encode_spans`` takes
four times as long (it encodes the resource with each span and remembers nothing), raises on a lone surrogate in a name, and leaves out an
attribute that does not fit, such as an integer over 64 bits. The result is the same otherwise, which a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags, Status
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from holodeck.lib.validation import exportable

__all__ = ["crashed", "encode", "key_of", "request_of", "resource_of"]

CRASHED_TYPE: Final = "process_crashed"
CRASHED_TEXT: Final = "the process ended before this span"
_LABEL: Final = 64  # longest text that is likely to come again
_FIRST_FIELD: Final = b"\x0a"  # ExportTraceServiceRequest.resource_spans
_SECOND_FIELD: Final = b"\x12"  # ResourceSpans.scope_spans


def key_of(span: ReadableSpan) -> bytes:
    """Trace id and span id, 24 bytes."""
    context = span.context
    assert context is not None
    key: bytes = context.trace_id.to_bytes(16, "big") + context.span_id.to_bytes(8, "big")
    return key


def encode(span: ReadableSpan) -> bytes:
    """``span`` as one ``ScopeSpans``; one that is still open has no end."""
    scope = span.instrumentation_scope
    encoded = ScopeSpans(
        scope=_scope(scope.name, scope.version) if scope else InstrumentationScope(),
        spans=[_span(span)],
        schema_url=(scope.schema_url if scope else None) or "",
    )
    if scope and scope.attributes:
        encoded.scope.attributes.extend(_attributes(scope.attributes))
    data: bytes = encoded.SerializeToString()
    return data


def resource_of(span: ReadableSpan) -> bytes:
    """The resource of ``span`` as ``ResourceSpans`` without spans."""
    resource = span.resource
    encoded = ResourceSpans(resource=Resource(attributes=_attributes(resource.attributes)), schema_url=resource.schema_url)
    data: bytes = encoded.SerializeToString()
    return data


@lru_cache(maxsize=64)
def _scope(name: str, version: str | None) -> InstrumentationScope:
    return InstrumentationScope(name=exportable(name), version=exportable(version or ""))


def _span(span: ReadableSpan) -> Span:
    context, parent, status = span.context, span.parent, span.status
    assert context is not None
    return Span(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        trace_state=context.trace_state.to_header() if context.trace_state else "",
        parent_span_id=parent.span_id.to_bytes(8, "big") if parent else b"",
        name=exportable(span.name),
        kind=_KINDS[span.kind],
        start_time_unix_nano=_time(span.start_time),
        end_time_unix_nano=_time(span.end_time),
        attributes=_attributes(span.attributes),
        events=[_event(e.name, e.timestamp, e.attributes, e.dropped_attributes) for e in span.events],
        links=[_link(link.context, link.attributes, link.dropped_attributes) for link in span.links],
        status=Status(code=_CODES[status.status_code], message=exportable(status.description or "")),
        dropped_attributes_count=span.dropped_attributes,
        dropped_events_count=span.dropped_events,
        dropped_links_count=span.dropped_links,
        flags=_flags(parent),
    )


_KINDS: Final = {
    SpanKind.INTERNAL: Span.SPAN_KIND_INTERNAL,
    SpanKind.SERVER: Span.SPAN_KIND_SERVER,
    SpanKind.CLIENT: Span.SPAN_KIND_CLIENT,
    SpanKind.PRODUCER: Span.SPAN_KIND_PRODUCER,
    SpanKind.CONSUMER: Span.SPAN_KIND_CONSUMER,
}

_CODES: Final = {
    StatusCode.UNSET: Status.STATUS_CODE_UNSET,
    StatusCode.OK: Status.STATUS_CODE_OK,
    StatusCode.ERROR: Status.STATUS_CODE_ERROR,
}


def _time(nanoseconds: float | None) -> int:
    """A time as OTLP can carry it: user code may give a span any."""
    return min(max(int(nanoseconds or 0), 0), 2**64 - 1)


def _flags(context: SpanContext | None) -> int:
    """Whether the other span is in another process, and that this is known (OTLP, ``Span.flags``)."""
    remote = SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK if context is not None and context.is_remote else 0
    return SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | remote


def _event(name: str, time: int, attributes: Mapping[str, Any] | None, dropped: int) -> Span.Event:
    return Span.Event(
        name=exportable(name), time_unix_nano=_time(time), attributes=_attributes(attributes), dropped_attributes_count=dropped
    )


def _link(context: SpanContext, attributes: Mapping[str, Any] | None, dropped: int) -> Span.Link:
    return Span.Link(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        attributes=_attributes(attributes),
        dropped_attributes_count=dropped,
        flags=_flags(context),
    )


def _attributes(attributes: Mapping[str, Any] | None) -> list[KeyValue]:
    return [_label(k, v) if type(v) is str and len(v) <= _LABEL else _pair(k, v) for k, v in attributes.items()] if attributes else []


@lru_cache(maxsize=512)
def _label(key: str, value: str) -> KeyValue:
    return _pair(key, value)


def _pair(key: str, value: Any) -> KeyValue:
    return KeyValue(key=exportable(str(key)), value=_value(value))


def _value(value: Any) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=exportable(value))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value) if -(2**63) <= value < 2**63 else AnyValue(string_value=str(value))
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    return _composed(value)


def _composed(value: Any) -> AnyValue:
    if value is None:
        return AnyValue()
    if isinstance(value, Mapping):
        return AnyValue(kvlist_value=KeyValueList(values=[_pair(k, v) for k, v in value.items()]))
    if isinstance(value, Iterable):
        return AnyValue(array_value=ArrayValue(values=[_value(v) for v in value]))
    return AnyValue(string_value=exportable(str(value)))


def request_of(resource: bytes, spans: Sequence[bytes]) -> bytes:
    """An ``ExportTraceServiceRequest`` of encoded parts."""
    parts = [resource]
    for span in spans:
        parts += [_SECOND_FIELD, _varint(len(span)), span]
    inside = b"".join(parts)
    return _FIRST_FIELD + _varint(len(inside)) + inside


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def crashed(started: bytes, end: int) -> bytes | None:
    """A span that was noted at its start, as ended by the crash of its process at ``end`` (nanoseconds); None if it cannot be read."""
    try:
        scope = ScopeSpans.FromString(started)
    except DecodeError:
        return None
    if not scope.spans:
        return None
    span = scope.spans[0]
    span.end_time_unix_nano = max(end, span.start_time_unix_nano)
    span.status.code, span.status.message = span.status.STATUS_CODE_ERROR, CRASHED_TEXT
    span.attributes.add(key="error.type").value.string_value = CRASHED_TYPE
    return scope.SerializeToString()
