"""OTLP requests as plain values that compare and print well."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.json_format import MessageToDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.message import Message

__all__ = ["Event", "Link", "Log", "Metric", "Point", "Span", "json_line", "read_logs", "read_metrics", "read_spans", "tree_of"]

_ID_KEYS = {"traceId", "spanId", "parentSpanId"}
_TEMPORALITY = {0: "unspecified", 1: "delta", 2: "cumulative"}

Tree = tuple[str, list["Tree"]]
"""A span's name and its children in the order in which they started."""


class Event(NamedTuple):
    """A span event."""

    name: str
    time: int
    attributes: dict[str, Any]


class Link(NamedTuple):
    """A link to another span."""

    trace_id: str
    span_id: str
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A span. Ids are lower-case hex, a root's ``parent_id`` is empty; times are nanoseconds since the epoch.

    ``kind`` and ``status_code`` are OTLP's numbers (1 internal, 3 client; 0 unset, 1 ok, 2 error).
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    status_code: int
    status_message: str
    events: list[Event]
    links: list[Link]
    resource: dict[str, Any] = field(repr=False)
    scope: str = field(repr=False)


@dataclass(frozen=True)
class Point:
    """A data point. What its kind does not have is None; ``temporality`` is ``delta``, ``cumulative`` or empty."""

    attributes: dict[str, Any]
    start: int
    time: int
    temporality: str
    value: float | None = None
    count: int | None = None
    sum: float | None = None
    bounds: list[float] | None = None
    bucket_counts: list[int] | None = None


@dataclass(frozen=True)
class Metric:
    """A metric; ``kind`` is OTLP's field name: ``sum``, ``gauge``, ``histogram``, ``exponential_histogram`` or ``summary``."""

    name: str
    description: str
    unit: str
    kind: str
    points: list[Point]
    resource: dict[str, Any] = field(repr=False)
    scope: str = field(repr=False)


@dataclass(frozen=True)
class Log:
    """A log record; ``severity`` is its text (``INFO``), ids are empty outside a span."""

    body: Any
    severity: str
    severity_number: int
    event_name: str
    time: int
    attributes: dict[str, Any]
    trace_id: str
    span_id: str
    resource: dict[str, Any] = field(repr=False)
    scope: str = field(repr=False)


def read_spans(request: Any) -> Iterator[Span]:
    """The spans of an ``ExportTraceServiceRequest``."""
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _span(span, _attributes(resource.resource.attributes), scope.scope.name)


def read_metrics(request: Any) -> Iterator[Metric]:
    """The metrics of an ``ExportMetricsServiceRequest``."""
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield _metric(metric, _attributes(resource.resource.attributes), scope.scope.name)


def read_logs(request: Any) -> Iterator[Log]:
    """The records of an ``ExportLogsServiceRequest``."""
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield _log(record, _attributes(resource.resource.attributes), scope.scope.name)


def tree_of(spans: Iterable[Span]) -> Tree:
    """The one tree that ``spans`` make.

    Raises:
        AssertionError: They make none, or several.
    """
    by_start = sorted(spans, key=lambda span: span.start)
    known = {span.span_id for span in by_start}
    roots = [span for span in by_start if span.parent_id not in known]
    assert len(roots) == 1, f"one root was expected: {[(span.name, span.parent_id or '-') for span in roots]}"
    return _branch(roots[0], by_start)


def json_line(request: Message) -> str:
    """A request in OTLP/JSON, in one line: ids in hex, enums as numbers."""
    return json.dumps(_hex_ids(MessageToDict(request, use_integers_for_enums=True)))


def _branch(span: Span, spans: list[Span]) -> Tree:
    return span.name, [_branch(child, spans) for child in spans if child.parent_id == span.span_id]


def _span(span: Any, resource: dict[str, Any], scope: str) -> Span:
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
        status_code=span.status.code,
        status_message=span.status.message,
        events=[Event(event.name, event.time_unix_nano, _attributes(event.attributes)) for event in span.events],
        links=[Link(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes)) for link in span.links],
        resource=resource,
        scope=scope,
    )


def _metric(metric: Any, resource: dict[str, Any], scope: str) -> Metric:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    temporality = _TEMPORALITY[data.aggregation_temporality] if hasattr(data, "aggregation_temporality") else ""
    points = [_point(point, temporality) for point in data.data_points]
    return Metric(metric.name, metric.description, metric.unit, kind, points, resource, scope)


def _point(point: Any, temporality: str) -> Point:
    has = point.DESCRIPTOR.fields_by_name
    value = getattr(point, point.WhichOneof("value") or "as_int") if "as_int" in has else None
    return Point(
        attributes=_attributes(point.attributes),
        start=point.start_time_unix_nano,
        time=point.time_unix_nano,
        temporality=temporality,
        value=value,
        count=point.count if "count" in has else None,
        sum=point.sum if "sum" in has else None,
        bounds=list(point.explicit_bounds) if "explicit_bounds" in has else None,
        bucket_counts=list(point.bucket_counts) if "bucket_counts" in has else None,
    )


def _log(record: Any, resource: dict[str, Any], scope: str) -> Log:
    return Log(
        body=_value(record.body),
        severity=record.severity_text,
        severity_number=record.severity_number,
        event_name=record.event_name,
        time=record.time_unix_nano,
        attributes=_attributes(record.attributes),
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex(),
        resource=resource,
        scope=scope,
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_value(item) for item in value.array_value.values]
        case "kvlist_value":
            return _attributes(value.kvlist_value.values)
        case plain:
            return getattr(value, plain)


def _hex_ids(node: Any) -> Any:
    if isinstance(node, list):
        return [_hex_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: base64.b64decode(value).hex() if key in _ID_KEYS else _hex_ids(value) for key, value in node.items()}
