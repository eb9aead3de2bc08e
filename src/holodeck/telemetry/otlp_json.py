"""Spans as OTLP/JSON: hexadecimal ids, integer enums, one ``ExportTraceServiceRequest`` a value or line.

The encoding is protobuf's own; only the ids are rewritten, since OTLP/JSON wants them in hexadecimal where protobuf writes base64
(OTLP specification, "JSON Protobuf Encoding").
"""

from __future__ import annotations

import base64
import errno
import json
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from holodeck.telemetry.spool.encoding import encode, request_of, resource_of

__all__ = ["LinesExporter", "to_json"]

_IDS = ("traceId", "spanId", "parentSpanId")
_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""What JSON may hold as it is, and what others take for the end of a line."""


def to_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """``spans`` as one export request, whatever values they have: those of a tool's own spans have passed no gate."""
    requests = [ExportTraceServiceRequest.FromString(request_of(resource_of(span), [encode(span)])) for span in spans]
    resources: list[dict[str, Any]] = []
    for request in requests:
        for resource in MessageToDict(request, use_integers_for_enums=True)["resourceSpans"]:
            scopes = _joined(resources, resource, "scopeSpans")
            for scope in resource["scopeSpans"]:
                _joined(scopes, scope, "spans").extend(scope["spans"])
    for span in (span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]):
        _hex_ids(span)
        for link in span.get("links", []):
            _hex_ids(link)
    return {"resourceSpans": resources} if resources else {}


def _joined(known: list[dict[str, Any]], entry: dict[str, Any], inner: str) -> list[dict[str, Any]]:
    """What stands in ``inner`` of the known entry that is as ``entry`` otherwise; a new one, if there is none."""
    head = {key: value for key, value in entry.items() if key != inner}
    for other in known:
        if {key: value for key, value in other.items() if key != inner} == head:
            break
    else:
        other = {**head, inner: []}
        known.append(other)
    found: list[dict[str, Any]] = other[inner]
    return found


def _hex_ids(holder: dict[str, Any]) -> None:
    for key in _IDS:
        if key in holder:
            holder[key] = base64.b64decode(holder[key]).hex()


class LinesExporter(SpanExporter):
    """Appends one line for each export, in one write, so that two processes can share a file.

    Args:
        out: Binary file; closed at shutdown if ``close`` is set.
        close: Whether ``out`` is ours to close.
        name: What the user knows ``out`` as.
        on_failure: Told in one line that spans could not be written.
    """

    def __init__(
        self, out: BinaryIO, *, close: bool = True, name: str = "stderr", on_failure: Callable[[str], None] = lambda _: None
    ) -> None:
        self._out, self._close, self._name, self._on_failure = out, close, name, on_failure
        self._torn = False  # the file ends with a part of a line

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write ``spans`` as one line."""
        text = json.dumps(to_json(spans), ensure_ascii=False, separators=(",", ":")).translate(_LINE_ENDS)
        line = text.encode("utf-8", "replace") + b"\n"
        try:
            self._write(b"\n" + line if self._torn else line)
        except (OSError, ValueError) as error:  # full disk, closed pipe or file: the chat goes on, and the user is told
            reason = error.strerror if isinstance(error, OSError) else error
            self._on_failure(f"spans are missing in {self._name}: it cannot be written ({reason})")
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:  # an unbuffered file on a full disk takes a part, and says why with the next
                written: int | None = self._out.write(left)
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, "nobody reads it")
                left = left[written:]
            self._out.flush()
        finally:
            self._torn = bool(left) and (self._torn or len(left) < len(line))

    def shutdown(self) -> None:
        """Close the file."""
        if self._close:
            self._out.close()
