"""The last turns, kept in memory for ``/trace`` and the tree in the terminal."""

from __future__ import annotations

import threading
from collections import OrderedDict

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import format_trace_id

__all__ = ["RecentTraces"]


class RecentTraces(SpanProcessor):
    """Keeps the finished spans of the last ``limit`` traces; also of those that sampling does not export."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, threading.Lock()
        self._traces: OrderedDict[str, list[ReadableSpan]] = OrderedDict()

    def on_end(self, span: ReadableSpan) -> None:
        """Keep ``span``; the oldest trace goes when there are too many."""
        if span.context is None:
            return
        with self._lock:
            self._traces.setdefault(format_trace_id(span.context.trace_id), []).append(span)
            while len(self._traces) > self._limit:
                self._traces.popitem(last=False)

    def spans(self, trace_id: str) -> list[ReadableSpan]:
        """The finished spans of one trace; empty if it is not kept."""
        with self._lock:
            return list(self._traces.get(trace_id, ()))
