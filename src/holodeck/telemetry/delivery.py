"""How many spans were made and delivered, and why the others were not.

The SDK's own answer cannot be used: ``force_flush`` returns True although the export failed. What counts is what the exporter returned.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from holodeck.lib.validation import shorten, terminal_safe

__all__ = ["Counters", "CountingExporter", "DeliveryReport", "SpanCounter", "run_bounded"]

EXPORTER_LOG = "opentelemetry"

_REASONS = (
    (re.compile(r"refused|UNAVAILABLE.*connect|failed to connect", re.IGNORECASE), "connection refused: is a collector running there?"),
    (
        re.compile(r"name or service not known|nodename nor servname|getaddrinfo|resolution|Name resolution|DNS", re.IGNORECASE),
        "the host name is unknown",
    ),
    (
        re.compile(r"certificate|SSL|TLS|wrong version number|handshake", re.IGNORECASE),
        "TLS failed: check the scheme (http or https) and the certificate",
    ),
    (re.compile(r"timed out|timeout|DEADLINE", re.IGNORECASE), "no answer in time"),
    (re.compile(r"\b401\b|\b403\b|UNAUTHENTICATED|PERMISSION_DENIED"), "refused by the collector: check the headers (authorization)"),
    (re.compile(r"\b404\b|UNIMPLEMENTED"), "the server has no OTLP there: check the port and the path"),
    (re.compile(r"\b(4\d\d|5\d\d)\b"), "refused by the collector"),
)


def plain_reason(text: str) -> str:
    """An exporter's log message as a few plain words."""
    return next((words for pattern, words in _REASONS if pattern.search(text)), shorten(terminal_safe(text).replace("\n", " "), 120))


@dataclass
class Counters:
    """What happened to the spans of one process.

    Attributes:
        made: Finished spans, sampled ones.
        delivered: Accepted by the OTLP endpoint.
        failed: Given up by the exporter.
        reason: Why the last failure failed, in plain words.
    """

    made: int = 0
    delivered: int = 0
    failed: int = 0
    reason: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


class SpanCounter(SpanProcessor):
    """Counts finished spans that are meant to be exported."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def on_end(self, span: ReadableSpan) -> None:
        """Count ``span`` if it is sampled."""
        if span.context is not None and span.context.trace_flags.sampled:
            with self._counters.lock:
                self._counters.made += 1


class _Listener(logging.Handler):
    """Remembers, for each thread, the last thing that an exporter said: its return value has no reason in it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        self._said.text = record.getMessage()

    def take(self) -> str:
        text: str = getattr(self._said, "text", "")
        self._said.text = ""
        return text


class CountingExporter(SpanExporter):
    """Passes spans on to ``inner`` and counts what became of them."""

    def __init__(self, inner: SpanExporter, counters: Counters) -> None:
        self._inner, self._counters = inner, counters
        self._listener = _Listener()
        logging.getLogger(EXPORTER_LOG).addHandler(self._listener)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export ``spans``; the result is the inner exporter's."""
        self._listener.take()
        result = self._inner.export(spans)
        with self._counters.lock:
            if result is SpanExportResult.SUCCESS:
                self._counters.delivered += len(spans)
            else:
                self._counters.failed += len(spans)
                self._counters.reason = plain_reason(self._listener.take())
        return result

    def shutdown(self) -> None:
        """Shut the inner exporter down."""
        logging.getLogger(EXPORTER_LOG).removeHandler(self._listener)
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the inner exporter."""
        return self._inner.force_flush(timeout_millis)


@dataclass(frozen=True)
class DeliveryReport:
    """What became of the spans when telemetry was shut down.

    Attributes:
        made: Finished spans that were to be exported.
        delivered: Spans that the endpoint accepted.
        url: Where they went; "" if OTLP was off.
        reason: Why some were not delivered; "" if all were.
    """

    made: int = 0
    delivered: int = 0
    url: str = ""
    reason: str = ""

    @property
    def lost(self) -> int:
        """Spans that were not delivered."""
        return max(self.made - self.delivered, 0) if self.url else 0

    def sentence(self) -> str:
        """One plain line for the user; "" if there is nothing to say."""
        if not self.lost:
            return ""
        return f"{self.lost} of {self.made} spans not delivered to {self.url}: {self.reason or 'no answer in time'}"


def run_bounded(actions: Sequence[Callable[[], object]], seconds: float) -> bool:
    """Run ``actions`` side by side in daemon threads for at most ``seconds``; True if all ended in time.

    The SDK's own shutdown waits 7 to 30 s for a collector that does not answer.
    """
    threads = [threading.Thread(target=action, daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    deadline = monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - monotonic(), 0))
    return not any(thread.is_alive() for thread in threads)
