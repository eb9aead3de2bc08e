"""Turns as OTLP requests, without an SDK: what is sent is exactly what a test says."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

ERROR = 2


def span(trace: int, number: int, parent: int = 0, **changes: Any) -> Span:
    """A span of a turn; ``number`` is its id, ``parent`` its parent's (0: it is the root)."""
    began = changes.pop("began", time.time_ns())
    made = Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=changes.pop("name", "chat m" if parent else "invoke_agent a"),
        kind=Span.SPAN_KIND_CLIENT if parent else Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=began,
        end_time_unix_nano=began + changes.pop("nanoseconds", 1_000_000),
        attributes=pairs(changes.pop("attributes", {})),
    )
    made.status.code = changes.pop("status", 0)
    made.status.message = changes.pop("message", "")
    for name, attributes in changes.pop("events", {}).items():
        made.events.add(name=name, time_unix_nano=began, attributes=pairs(attributes))
    assert not changes, f"what is that: {changes}"
    return made


def pairs(values: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as OTLP has them."""
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return [KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value})) for key, value in values.items()]


def spans_request(service: str, spans: Sequence[Span], **resource: Any) -> ExportTraceServiceRequest:
    """A request with these spans."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.extend(pairs({"service.name": service, **resource}))
    group.scope_spans.add(spans=spans).scope.name = "test"
    return request


def log_request(service: str, body: str, **attributes: Any) -> ExportLogsServiceRequest:
    """A request with one log record."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    group.resource.attributes.extend(pairs({"service.name": service}))
    record = group.scope_logs.add().log_records.add(attributes=pairs(attributes), time_unix_nano=time.time_ns())
    record.body.string_value = body
    return request


def post(base: str, request: Any) -> bool:
    """Send a request over HTTP; whether it was accepted."""
    signal = "logs" if isinstance(request, ExportLogsServiceRequest) else "traces"
    headers = {"content-type": "application/x-protobuf"}
    try:
        call = urllib.request.Request(f"{base}/v1/{signal}", request.SerializeToString(), headers)
        with urllib.request.urlopen(call, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
