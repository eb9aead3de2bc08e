"""OTLP/JSON to span records.

Strict about what the format is (one export request a line), tolerant about how writers fill it in: names of enums, ids in base64,
numbers as text, the proto's own field names, fields that are missing or null.
Format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding and https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import base64
import binascii
import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import Any, Final

from pydantic_core import from_json

from holodeck.errors import TraceReadError
from holodeck.traces.records import EventRecord, LinkRecord, SpanRecord

__all__ = ["hex_id", "read_requests", "read_spans", "spans_of"]

_REQUESTS: Final = frozenset(("resourceSpans", "resource_spans", "resourceMetrics", "resource_metrics", "resourceLogs", "resource_logs"))


def _enum(prefix: str, *values: str) -> dict[Any, int]:
    """Every way in which writers put an enum value: its number, the number as text, its name."""
    return {key: number for number, value in enumerate(values) for key in (number, str(number), prefix + value)}


_KINDS: Final = _enum("SPAN_KIND_", "UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATUSES: Final = _enum("STATUS_CODE_", "UNSET", "OK", "ERROR")
_BASE64_IDS: Final = {24: "==", 12: "="}  # length of a base64 trace or span id → its padding
_MAX_TIME: Final = 2**64
_MAX_DEPTH: Final = 32
_NO_STATUS: Final[dict[str, Any]] = {}

_Object = dict[str, Any]


def spans_of(request: Mapping[str, Any]) -> list[SpanRecord]:
    """The spans of one ``ExportTraceServiceRequest``, in the order in which they stand there.

    Args:
        request: The request as decoded JSON. Requests that carry only metrics or logs have no spans.

    Raises:
        TraceReadError: It is not an export request.
    """
    return _Decoder().request(dict(request) if isinstance(request, Mapping) else request)


def read_spans(lines: Iterable[str | bytes]) -> Iterator[SpanRecord]:
    """The spans of OTLP/JSON lines, one export request a line; empty lines and lines with metrics or logs are passed over.

    Args:
        lines: For example an open file. Nothing is read ahead of what is asked for.

    Yields:
        Spans in the order of the input.

    Raises:
        TraceReadError: A line is not an export request; names the line. What stood before it has been yielded by then.
    """
    for spans in read_requests(lines):
        yield from spans


def read_requests(lines: Iterable[str | bytes]) -> Iterator[list[SpanRecord]]:
    """The same a line at a time: a list for each line, empty where it has no spans."""
    decoder = _Decoder()
    for number, line in enumerate(lines, 1):
        try:
            spans = _read_line(decoder, line)
        except TraceReadError as error:
            raise TraceReadError(error.message, line=number) from error
        yield spans


def _read_line(decoder: _Decoder, line: str | bytes) -> list[SpanRecord]:
    # As collector_at_rest() does, written out: a context manager for each line takes as long as a fifth of the reading.
    collecting = gc.isenabled()
    gc.disable()
    try:
        request = _parse(line)
        return [] if request is None else decoder.request(request)
    finally:
        if collecting:
            gc.enable()


def _parse(line: str | bytes) -> Any:
    """The line as decoded JSON, None if it is blank."""
    try:
        return from_json(line)  # three times as fast as json, which says more of what is wrong, and takes more
    except ValueError:
        return _parse_carefully(line)


def _parse_carefully(line: str | bytes) -> Any:
    try:
        text = line.decode() if isinstance(line, bytes) else line
        text = text.strip("\ufeff \t\r\n")
        return json.loads(text) if text else None
    except json.JSONDecodeError as error:
        raise TraceReadError(f"not a JSON object on one line ({error.msg}, column {error.colno})") from error
    except UnicodeDecodeError as error:
        raise TraceReadError("not UTF-8 text") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; nesting without end
        raise TraceReadError("JSON that is nested too deeply, or holds a number that is too long") from error


class _Decoder:
    """Turns requests into records; remembers the last resource, which writers repeat with every request."""

    def __init__(self) -> None:
        self._raw_resource: Any = None
        self._resource: dict[str, Any] = {}

    def request(self, request: Any) -> list[SpanRecord]:
        if isinstance(request, dict) and isinstance(request.get("result"), dict):
            request = request["result"]  # Jaeger's query API wraps its answer
        if not isinstance(request, dict) or (request and not _REQUESTS & request.keys()):
            raise TraceReadError("not an OTLP export request: an object with resourceSpans is expected")
        return [
            record
            for resource_spans in _objects(request, "resourceSpans", "resource_spans")
            for scope_spans in _objects(resource_spans, "scopeSpans", "scope_spans")
            for record in self._spans(resource_spans, scope_spans)
        ]

    def _spans(self, resource_spans: _Object, scope_spans: _Object) -> Iterator[SpanRecord]:
        resource = self._resource_of(resource_spans.get("resource"))
        scope = scope_spans.get("scope")
        name = intern(_text(scope.get("name"))) if isinstance(scope, dict) else ""
        for span in _objects(scope_spans, "spans"):
            yield _span(span, resource, name)

    def _resource_of(self, raw: Any) -> dict[str, Any]:
        if raw != self._raw_resource:
            self._raw_resource = raw
            self._resource = _attributes(raw) if isinstance(raw, dict) else {}
        return self._resource


def _span(span: _Object, resource: dict[str, Any], scope: str) -> SpanRecord:
    get = span.get
    status, events, links = get("status"), get("events"), get("links")
    if not isinstance(status, dict):
        status = _NO_STATUS
    return SpanRecord(  # in the order of its fields: names cost a tenth of the reading
        intern(hex_id(get("traceId") or get("trace_id"))),
        hex_id(get("spanId") or get("span_id")),
        hex_id(get("parentSpanId") or get("parent_span_id")),
        intern(_text(get("name"))),
        _known(get("kind"), _KINDS),
        _nanos(get("startTimeUnixNano") or get("start_time_unix_nano")),
        _nanos(get("endTimeUnixNano") or get("end_time_unix_nano")),
        _attributes(span),
        _known(status.get("code"), _STATUSES),
        _text(status.get("message")),
        tuple(map(_event, _objects(span, "events"))) if events else (),
        tuple(map(_link, _objects(span, "links"))) if links else (),
        resource,
        scope,
    )


def _event(event: _Object) -> EventRecord:
    return EventRecord(intern(_text(event.get("name"))), _nanos(_field(event, "timeUnixNano", "time_unix_nano")), _attributes(event))


def _link(link: _Object) -> LinkRecord:
    return LinkRecord(hex_id(_field(link, "traceId", "trace_id")), hex_id(_field(link, "spanId", "span_id")), _attributes(link))


def _field(holder: _Object, name: str, proto_name: str) -> Any:
    """A field by its JSON name, or by the name that it has in the proto files."""
    value = holder.get(name)
    return holder.get(proto_name) if value is None else value


def _objects(holder: _Object, name: str, proto_name: str = "") -> list[_Object]:
    """A list of objects; missing is empty, and nulls in it are passed over."""
    found = holder.get(name)
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict):  # as in nearly every line
        return found
    found = _field(holder, name, proto_name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise TraceReadError(f"not an OTLP export request: {name} must be a list")
    objects = [item for item in found if isinstance(item, dict)]
    if len(objects) + found.count(None) < len(found):
        raise TraceReadError(f"not an OTLP export request: {name} must hold objects")
    return objects


def _attributes(holder: _Object) -> dict[str, Any]:
    raw = holder.get("attributes")
    if not raw:
        return {}
    try:  # most of the time spent on reading goes by here, and nearly all of it on texts in well-formed attributes
        return {intern(item["key"]): value["stringValue"] if "stringValue" in (value := item["value"]) else _value(value) for item in raw}
    except (KeyError, TypeError, AttributeError):
        return {_text(item.get("key")): _value(item.get("value")) for item in _objects(holder, "attributes")}


def _value(value: Any, depth: int = 0) -> Any:
    """An ``AnyValue`` as a plain Python value; what is nested deeper than 32 levels is cut."""
    if not isinstance(value, dict):
        return value
    if type(whole := value.get("intValue")) is int or (isinstance(whole, str) and whole.isdecimal() and len(whole) < 20):
        return int(whole)
    if depth > _MAX_DEPTH:
        return "… [cut: too deep]"
    for name, raw in value.items():
        if raw is not None and (convert := _VALUES.get(name)):
            return convert(raw, depth + 1)
    return None


def _array(raw: Any, depth: int) -> list[Any]:
    values = raw.get("values") if isinstance(raw, dict) else raw
    return [_value(item, depth) for item in values] if isinstance(values, list) else []


def _map(raw: Any, depth: int) -> dict[str, Any]:
    values = raw.get("values") if isinstance(raw, dict) else raw
    pairs = [item for item in values if isinstance(item, dict)] if isinstance(values, list) else []
    return {_text(item.get("key")): _value(item.get("value"), depth) for item in pairs}


def _integer(raw: Any, _: int) -> Any:
    try:
        return int(raw)
    except (TypeError, ValueError, OverflowError):
        return raw


def _double(raw: Any, _: int) -> Any:
    try:
        return float(raw)  # "NaN" and "Infinity" come as text
    except (TypeError, ValueError, OverflowError):
        return raw


def _bytes(raw: Any, _: int) -> Any:
    try:
        return base64.b64decode(raw, validate=True)
    except (TypeError, ValueError):
        return raw


_VALUES: Final[dict[str, Callable[[Any, int], Any]]] = {
    "stringValue": lambda raw, _: _text(raw),
    "boolValue": lambda raw, _: raw,
    "intValue": _integer,
    "doubleValue": _double,
    "arrayValue": _array,
    "kvlistValue": _map,
    "bytesValue": _bytes,
}
_VALUES.update({"".join(f"_{c.lower()}" if c.isupper() else c for c in name): convert for name, convert in list(_VALUES.items())})


def _text(raw: Any) -> str:
    """A text field; a number or a boolean in its place is shown as it stands."""
    if isinstance(raw, str):
        return raw
    return "" if raw is None or isinstance(raw, dict | list) else str(raw)


def hex_id(raw: Any) -> str:
    """A trace or span id as lower-case hex; all zeros mean that there is none. Base64 (plain protobuf JSON) becomes hex."""
    if not raw:
        return ""
    text = raw if isinstance(raw, str) else _text(raw)
    if (padding := _BASE64_IDS.get(len(text))) and text.endswith(padding):
        try:
            text = base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text
    return text.lower() if text.strip("0") else ""


def _known(raw: Any, values: Mapping[Any, int]) -> int:
    """The number of an enum value, 0 for what is not known."""
    if raw is None:
        return 0
    return 0 if isinstance(raw, dict | list) else values.get(raw, 0)


def _nanos(raw: Any) -> int:
    """A time in nanoseconds; 0 for what is missing or no time."""
    try:
        time = int(raw)
    except (TypeError, ValueError, OverflowError):
        return 0
    return time if 0 < time < _MAX_TIME else 0
