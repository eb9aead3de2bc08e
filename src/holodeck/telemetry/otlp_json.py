"""Spans as OTLP/JSON: hexadecimal ids, integer enums, one ``ExportTraceServiceRequest`` a value or line.

The encoding is protobuf's own; only the ids are rewritten, since OTLP/JSON wants them in hexadecimal where protobuf writes base64
(OTLP specification, "JSON Protobuf Encoding").
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

__all__ = ["LinesExporter", "to_json"]

_IDS = ("traceId", "spanId", "parentSpanId")


def to_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """``spans`` as one export request."""
    request: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in request.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                _hex_ids(span)
                for link in span.get("links", []):
                    _hex_ids(link)
    return request


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

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write ``spans`` as one line."""
        line = json.dumps(to_json(spans), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        try:
            self._out.write(line)
            self._out.flush()
        except (OSError, ValueError) as error:  # full disk, closed pipe or file: the chat goes on, and the user is told
            reason = error.strerror if isinstance(error, OSError) else error
            self._on_failure(f"spans are missing in {self._name}: it cannot be written ({reason})")
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file."""
        if self._close:
            self._out.close()
