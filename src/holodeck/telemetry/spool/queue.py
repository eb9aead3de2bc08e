"""The durable queue of one process: what the span processor writes to, and what the rest of HoloDeck asks and flushes."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, time

from opentelemetry.sdk.trace import ReadableSpan

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.spool.aside import Aside
from holodeck.telemetry.spool.courier import Courier
from holodeck.telemetry.spool.directories import Destination, Meta, SpoolSettings, make_directory
from holodeck.telemetry.spool.encoding import encode, key_of, resource_of
from holodeck.telemetry.spool.files import SegmentFiles
from holodeck.telemetry.spool.journal import Journal
from holodeck.telemetry.spool.limits import enforce
from holodeck.telemetry.spool.recovery import adopt_all, adoptable
from holodeck.telemetry.spool.sender import Sender
from holodeck.telemetry.spool.transport import make_transport

__all__ = ["SpanQueue"]


class SpanQueue:
    """Takes spans and brings them to ``target``, now or with a later run. Nothing of it is on disk before the first span.

    Args:
        target: Where the spans go.
        settings: Where they are kept until then.
        counters: Counts them.
        on_notice: Called with one line about something that the user should know; from any thread.
        delay: Seconds between two requests.
        most_spans: Most spans in a request.
        memory_spans: Most spans in memory while nothing can be written.
    """

    def __init__(
        self,
        target: OtlpTarget,
        settings: SpoolSettings,
        counters: Counters,
        on_notice: Callable[[str], None],
        *,
        delay: float = 5.0,
        most_spans: int = 512,
        memory_spans: int = 2048,
    ) -> None:
        self._target, self._settings, self.counters, self._on_notice = target, settings, counters, on_notice
        self._delay, self._most_spans, self._memory_spans = delay, most_spans, memory_spans
        self._destination = Destination.of(target)
        self._reset()
        reference = weakref.ref(self)  # a queue must not live for ever because a process may fork
        os.register_at_fork(after_in_child=lambda: queue.after_fork() if (queue := reference()) is not None else None)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._stopped = False
        self._transport = make_transport(self._target)
        courier = Courier(self._transport, self._target.timeout, self._most_spans, self.counters, Aside(self._settings))
        self._sender = Sender(
            courier, delay=self._delay, most_spans=self._most_spans, adopt=self._adopt, limit=self._limit, on_error=self._failed
        )

    def after_fork(self) -> None:
        """The child has neither the parent's thread nor its lock: it begins with a queue of its own."""
        for journal in self._sender.journals:
            journal.abandon()
        self.counters.reset()
        self._reset()

    @property
    def queued(self) -> int:
        """Spans that wait, those that were taken over from ended processes included."""
        return sum(len(journal) for journal in self._sender.journals)

    @property
    def kept(self) -> int:
        """Spans that wait on disk."""
        return sum(len(journal) - journal.in_memory for journal in self._sender.journals)

    @property
    def unfinished(self) -> int:
        """Spans of our own on disk that have started and not ended."""
        return self._sender.own.open_on_disk if self._sender.own is not None else 0

    @property
    def held(self) -> dict[Path, int]:
        """The directories that are ours, with the spans that wait in them."""
        return {journal.directory: len(journal) for journal in self._sender.journals if journal.directory is not None}

    @property
    def path(self) -> Path:
        """The directory of all queues."""
        return self._settings.root

    def opened(self, span: object) -> None:
        """A recorder has started ``span`` and set its first attributes."""
        if isinstance(span, ReadableSpan) and span.context is not None and span.context.trace_flags.sampled:
            self.started(span)

    def started(self, span: ReadableSpan) -> None:
        """Note that ``span`` has started."""
        try:
            self._journal(span).started(key_of(span), encode(span))
            self._sender.opened()
        except Exception as error:  # noqa: BLE001 - what records must never hurt what is recorded
            self._failed(error)

    def ended(self, span: ReadableSpan) -> None:
        """Keep a finished span."""
        self.counters.made(span.dropped_attributes + span.dropped_events + span.dropped_links)
        try:
            if not self._journal(span).ended(key_of(span), encode(span)):
                self.counters.dropped(1, "already_shutdown")
            self._sender.added()
        except Exception as error:  # noqa: BLE001 - as above
            self.counters.dropped(1, "not_encodable")
            self._failed(error)

    def _journal(self, span: ReadableSpan) -> Journal:
        if self._sender.own is None:
            with self._mutex:
                if self._sender.own is None:
                    self._sender.own = self._make_journal(span)
            self._sender.start()
        return self._sender.own

    def _make_journal(self, span: ReadableSpan) -> Journal:
        meta = Meta(self._destination, resource_of(span), time())
        try:
            directory, lock = make_directory(self._settings.root, meta)
        except OSError as error:
            self._on_notice(f"spans stay in memory: {self._settings.root} cannot be written ({error.strerror or error})")
            return Journal(meta, memory_spans=self._memory_spans, on_drop=self.counters.dropped, on_notice=self._on_notice)
        return Journal(
            meta,
            directory=directory,
            lock=lock,
            files=SegmentFiles(directory, self._settings.segment_bytes),
            memory_spans=self._memory_spans,
            on_drop=self.counters.dropped,
            on_notice=self._on_notice,
        )

    def _adopt(self) -> Iterator[Journal]:
        for journal in adopt_all(self._settings, self._destination, self.counters.dropped, self._on_notice):
            self.counters.recovered(len(journal))
            yield journal

    def _limit(self) -> None:
        held = [journal for journal in self._sender.journals if journal.directory is not None]
        enforce(self._settings, held, self._dropped_of_others)

    def _dropped_of_others(self, spans: int, reason: str) -> None:
        self.counters.recovered(spans)
        self.counters.dropped(spans, reason)

    def _failed(self, error: Exception) -> None:
        self._on_notice(f"a span could not be queued or sent ({type(error).__name__}): the chat goes on")

    def flush(self, seconds: float) -> bool:
        """Send what waits, for at most ``seconds``; True if nothing is left. After :meth:`shutdown` nothing is sent any more."""
        if self._stopped:
            return self.queued == 0
        if self._sender.own is None and adoptable(self._settings, self._destination):
            self._sender.start()
        return self._sender.flush(seconds)

    def shutdown(self, seconds: float) -> None:
        """Send what waits, for at most ``seconds``, and let go of the directory. Idempotent."""
        with self._mutex:
            if self._stopped:
                return
            self._stopped = True
        end = monotonic() + seconds
        if self._sender.own is None and adoptable(self._settings, self._destination):
            self._sender.start()
        self._sender.stop(max(end - monotonic(), 0.0), self._transport.close)
