"""How many spans were made and delivered, and why the others were not.

The SDK's own answer cannot be used: ``force_flush`` returns True although the export failed. What counts is what the collector answered.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

from holodeck.models.observability import TelemetryStatistics

__all__ = ["Counters", "DeliveryReport", "drop_reasons", "in_background", "wait_for"]


_WAY: Final = "they go out with the next run, or with: holodeck trace spool flush"
_DROPPED: Final = {
    "queue_full": "the queue was full",
    "expired": "they were too old",
    "queue_damaged": "the queue on disk is damaged",
    "not_kept": "they could not be written to disk",
    "not_encodable": "they could not be encoded",
    "already_shutdown": "they came after the end",
}


class _Failure(Protocol):
    @property
    def reason(self) -> str: ...


class Counters:
    """What became of the spans, metrics and log records of one process; thread-safe."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin at nothing."""
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._reason = ""

    def made(self, left_out: int = 0) -> None:
        """A sampled span has ended; ``left_out`` of its attributes, events and links were over the limits."""
        with self._lock:
            self._counts["made"] += 1
            if left_out:
                self._counts["left_out"] += left_out

    def recovered(self, spans: int) -> None:
        """Spans of earlier runs were taken over."""
        self._add("recovered", spans)

    def delivered(self, spans: int) -> None:
        """The endpoint took ``spans``."""
        self._add("delivered", spans)

    def rejected(self, spans: int, reason: str) -> None:
        """The endpoint did not take ``spans``, and never will."""
        with self._lock:
            self._counts["rejected"] += spans
            self._reason = reason

    def dropped(self, spans: int, reason: str) -> None:
        """``spans`` were given up before they could be sent."""
        with self._lock:
            self._dropped[reason] += spans

    def failed(self, outcome: _Failure) -> None:
        """A request failed; its spans stay."""
        with self._lock:
            self._reason = outcome.reason

    def exported(self, signal: str, records: int, *, success: bool) -> None:
        """An export of ``metrics`` or ``logs`` has ended."""
        self._add(f"{signal}_{'exported' if success else 'failed'}", records)

    def _add(self, name: str, number: int) -> None:
        with self._lock:
            self._counts[name] += number

    def statistics(self, queued: int) -> TelemetryStatistics:
        """All of it, with ``queued`` spans waiting."""
        with self._lock:
            counts = self._counts
            return TelemetryStatistics(
                made=counts["made"],
                recovered=counts["recovered"],
                delivered=counts["delivered"],
                queued=queued,
                rejected=counts["rejected"],
                dropped=dict(self._dropped),
                left_out=counts["left_out"],
                metrics_exported=counts["metrics_exported"],
                metrics_failed=counts["metrics_failed"],
                logs_exported=counts["logs_exported"],
                logs_failed=counts["logs_failed"],
                reason=self._reason,
            )


@dataclass(frozen=True)
class DeliveryReport:
    """What became of the spans when telemetry was shut down.

    Attributes:
        made: Finished spans that were to be exported.
        delivered: Spans that the endpoint took, those of earlier runs among them.
        kept: Spans that wait on disk for the next run.
        unfinished: Spans of our own that have not ended; the next run ends them, and sends them.
        rejected: Spans that the endpoint refused for good.
        dropped: Spans that were given up.
        url: Where they went; "" if OTLP was off.
        reason: Why some were not delivered; "" if all were.
        drop_reason: Why some were given up; "" if none were.
        path: Directory in which they are kept; "" if OTLP was off.
    """

    made: int = 0
    delivered: int = 0
    kept: int = 0
    unfinished: int = 0
    rejected: int = 0
    dropped: int = 0
    url: str = ""
    reason: str = ""
    drop_reason: str = ""
    path: str = ""

    @property
    def lost(self) -> int:
        """Spans that will never be delivered."""
        return self.rejected + self.dropped

    def sentence(self) -> str:
        """One plain line for the user; "" if everything was delivered."""
        if not (self.kept or self.unfinished or self.lost):
            return ""
        parts = [f"{_spans(self.delivered)} delivered"]
        why = f"{self.reason} at {self.url}"
        if self.rejected:
            parts.append(f"{self.rejected} rejected" + ("" if self.kept else f" ({why})"))
        if self.dropped:
            said = not self.reason or self.kept or self.rejected
            parts.append(f"{self.dropped} dropped ({self.drop_reason if said else f'{self.drop_reason}, {why}'})")
        if self.unfinished:
            parts.append(f"{self.unfinished} not ended" + ("" if self.kept else f", kept for later: {_WAY}"))
        if self.kept:
            parts.append(f"{self.kept} kept for later ({why}): {_WAY}")
        return ", ".join(parts)


def drop_reasons(dropped: Mapping[str, int]) -> str:
    """Why spans were given up, in words; "" if none were."""
    return ", ".join(_DROPPED.get(reason, reason) for reason, spans in dropped.items() if spans)


def _spans(number: int) -> str:
    return "1 span" if number == 1 else f"{number or 'no'} spans"


def in_background(actions: Sequence[Callable[[], object]]) -> list[threading.Thread]:
    """Start ``actions`` side by side, in daemon threads that do not keep the process alive; none of those that cannot be started."""
    threads: list[threading.Thread] = []
    for action in actions:
        thread = threading.Thread(target=action, name="holodeck-shutdown", daemon=True)
        with suppress(RuntimeError):  # the system has no room for another: what it would have sent stays where it is
            thread.start()
            threads.append(thread)
    return threads


def wait_for(threads: Sequence[threading.Thread], seconds: float) -> bool:
    """Wait for ``threads`` for at most ``seconds`` in all; True if all ended in time."""
    deadline = monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - monotonic(), 0))
    return not any(thread.is_alive() for thread in threads)
