"""From the SDK into the queue."""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from holodeck.telemetry.semconv import SCOPE
from holodeck.telemetry.spool.queue import SpanQueue

__all__ = ["SpoolProcessor"]

_SHUTDOWN_SECONDS: Final = 1.5


class SpoolProcessor(SpanProcessor):
    """Writes each sampled span to ``queue`` when it starts and when it ends.

    Spans of HoloDeck's own scope are noted by their recorders: only then do they have their first attributes.
    """

    def __init__(self, queue: SpanQueue) -> None:
        self._queue = queue

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        """Note a span of user code."""
        scope = span.instrumentation_scope
        if _sampled(span) and (scope is None or scope.name != SCOPE):
            self._queue.started(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span."""
        if _sampled(span):
            self._queue.ended(span)

    def shutdown(self) -> None:
        """Send what is left, bounded."""
        self._queue.shutdown(_SHUTDOWN_SECONDS)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits; True if nothing is left."""
        return self._queue.flush(timeout_millis / 1000)


def _sampled(span: ReadableSpan) -> bool:
    return span.context is not None and span.context.trace_flags.sampled
