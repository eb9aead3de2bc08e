"""Telemetry that stays in memory: spans, metrics and log records of the agents under test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator

from holodeck.testing.spans import record_of, trace_id_of
from holodeck.traces import Node, SpanRecord, WaterfallOptions, build_trees, plain, waterfall

__all__ = ["LogCollector", "MemoryTelemetry", "SpanCollector", "drawn"]


class SpanCollector(SpanProcessor):
    """Keeps finished spans, and knows those that are still open. May serve several providers.

    Args:
        on_begin: Called with each span that begins.
    """

    def __init__(self, on_begin: Callable[[Span], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._traces: dict[str, list[ReadableSpan]] = {}
        self._open: dict[tuple[int, int], str] = {}
        self._on_begin = on_begin

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A span begins."""
        del parent_context
        with self._lock:
            self._open[_key(span)] = span.name
        if self._on_begin is not None:
            self._on_begin(span)

    def on_end(self, span: ReadableSpan) -> None:
        """A span has ended."""
        with self._lock:
            self._open.pop(_key(span), None)
            self._traces.setdefault(trace_id_of(span), []).append(span)

    @property
    def unfinished(self) -> list[str]:
        """Names of the spans that have begun and not ended."""
        with self._lock:
            return list(self._open.values())

    def spans(self, trace_id: str | None = None) -> list[ReadableSpan]:
        """The finished spans of one trace, or of all, in the order of their ends."""
        with self._lock:
            if trace_id is not None:
                return list(self._traces.get(trace_id, ()))
            return [span for spans in self._traces.values() for span in spans]

    def forget(self, trace_id: str) -> None:
        """Let go of the spans of one trace."""
        with self._lock:
            self._traces.pop(trace_id, None)


def _key(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


class LogCollector(LogRecordProcessor):
    """Keeps log records."""

    def __init__(self) -> None:
        self.records: list[ReadWriteLogRecord] = []

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Keep a record."""
        self.records.append(log_record)

    def shutdown(self) -> None:
        """Nothing is to be closed."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back."""
        del timeout_millis
        return True


class MemoryTelemetry:
    """What agents record, in memory. Its providers are its own: OpenTelemetry's globals and other plugins are not touched.

    For an agent of your own::

        agent = load_agent("agent.yaml", observability=False, telemetry_options=telemetry.options())

    Args:
        ids: Makes trace and span ids for all agents; random by default.
    """

    def __init__(self, ids: IdGenerator | None = None) -> None:
        self._ids, self._spans, self._logs = ids, SpanCollector(), LogCollector()
        self._readers: list[InMemoryMetricReader] = []

    def options(self) -> dict[str, Any]:
        """The ``telemetry_options`` of :func:`holodeck.load_agent` for one more agent that records here."""
        self._readers.append(InMemoryMetricReader())
        return {
            "id_generator": self._ids,
            "span_processors": [self._spans],
            "metric_readers": self._readers[-1:],
            "log_processors": [self._logs],
        }

    @property
    def spans(self) -> list[SpanRecord]:
        """All finished spans, in the order of their ends."""
        return [record_of(span) for span in self._spans.spans()]

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """The finished spans of one trace."""
        return [record_of(span) for span in self._spans.spans(trace_id)]

    @property
    def trees(self) -> list[Node]:
        """All traces as trees, by the start of their roots."""
        return build_trees(self.spans)

    @property
    def unfinished(self) -> list[str]:
        """Names of spans that have begun and not ended."""
        return self._spans.unfinished

    @property
    def metrics(self) -> dict[str, list[Any]]:
        """The SDK's data points by the metric's name."""
        found: dict[str, list[Any]] = {}
        for data in filter(None, (reader.get_metrics_data() for reader in self._readers)):
            for metric in (m for resource in data.resource_metrics for scope in resource.scope_metrics for m in scope.metrics):
                found.setdefault(metric.name, []).extend(metric.data.data_points)
        return found

    @property
    def logs(self) -> list[Any]:
        """The SDK's log records, in order; each once, though the log handlers of all open agents see it."""
        once = {(r.log_record.timestamp, r.log_record.span_id, r.log_record.body): r.log_record for r in self._logs.records}
        return list(once.values())

    def waterfall(self, width: int = 100) -> str:
        """All traces as text."""
        return "\n\n".join(drawn(root, width) for root in self.trees)


def drawn(root: Node, width: int = 100) -> str:
    """A trace as text."""
    return plain(waterfall(root, WaterfallOptions(width=width)))
