"""Brings the spans of a queue to their destination, one request after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final, Protocol

from holodeck.telemetry.spool.aside import Aside
from holodeck.telemetry.spool.encoding import request_of
from holodeck.telemetry.spool.journal import Entry, Journal
from holodeck.telemetry.spool.outcome import DELIVERED, Fate, Outcome
from holodeck.telemetry.spool.transport import Transport

__all__ = ["MOST_BYTES", "Courier", "Tally"]

MOST_BYTES: Final = int(3.5 * 1024 * 1024)
"""Most bytes of spans in a request: collectors take 4 MiB over gRPC by default."""
_SHORTEST: Final = 0.05  # seconds; a request that is given up half-way may have arrived, and is sent again
_UNPROVEN: Final = 32
"""How many spans are suspected before a collector that takes nothing is taken for the fault itself."""


class Tally(Protocol):
    """Counts what becomes of spans."""

    def delivered(self, spans: int) -> None:
        """So many were taken."""

    def rejected(self, spans: int, reason: str) -> None:
        """So many were not taken, and never will be."""

    def dropped(self, spans: int, reason: str) -> None:
        """So many were given up before they could be sent."""

    def failed(self, outcome: Outcome) -> None:
        """A request failed; its spans stay."""


@dataclass
class _Division:
    """The search for what a collector does not accept.

    Attributes:
        trusted: The collector has accepted something, so that it is the span's fault.
        suspects: Spans that were refused before that was known.
    """

    trusted: bool
    suspects: list[tuple[Entry, bytes, Outcome]] = field(default_factory=list)


class Courier:
    """Sends batches and settles them.

    Args:
        transport: The way to the destination.
        timeout: Seconds for a request.
        most_spans: Most spans in a request.
        tally: Counts.
        aside: Where refused spans are kept.
    """

    def __init__(self, transport: Transport, timeout: float, most_spans: int, tally: Tally, aside: Aside) -> None:
        self._transport, self._timeout, self._most_spans = transport, timeout, most_spans
        self._tally, self._aside = tally, aside

    def deliver(self, journal: Journal, until: Callable[[], float]) -> Outcome | None:
        """Send the next batch of ``journal``; None if there is none.

        Args:
            journal: Whose.
            until: The monotonic time at which the request has to be over; asked before each.
        """
        entries = journal.batch(self._most_spans, MOST_BYTES)
        if not entries:
            return None
        outcome = self._send(journal, entries, until, None)
        if outcome.fate is not Fate.DELIVERED:
            self._tally.failed(outcome)
            if outcome.fate is not Fate.LATER:
                journal.refused()
        return outcome

    def _send(self, journal: Journal, entries: Sequence[Entry], until: Callable[[], float], division: _Division | None) -> Outcome:
        timeout = min(self._timeout, until() - monotonic())
        if timeout < _SHORTEST:
            return Outcome(Fate.LATER, "no answer in time", "timeout", answered=False)
        journal.sending(entries)  # first: from now on nothing of it is given up for want of room
        read = [(entry, span) for entry in entries if (span := journal.read(entry)) is not None]
        if not read:
            if division is None or not division.suspects:  # who is suspected must not be settled with what is lost
                self._settle(journal, entries, DELIVERED, 0)
            return DELIVERED
        outcome = self._transport.send(request_of(journal.meta.resource, [span for _, span in read]), timeout)
        if outcome.fate is Fate.DELIVERED:
            self._accepted(journal, division)
            self._settle(journal, entries, outcome, len(read))
            return outcome
        if outcome.fate in (Fate.INVALID, Fate.TOO_LARGE):
            return self._divide(journal, entries, read, until, outcome, division)
        return outcome

    def _settle(self, journal: Journal, entries: Sequence[Entry], outcome: Outcome, sent: int) -> None:
        rejected = min(outcome.rejected, sent)
        if (lost := journal.settle(entries[-1].number) - sent) > 0:
            self._tally.dropped(lost, "queue_damaged")
        if rejected:
            self._tally.rejected(rejected, outcome.reason)
        if sent - rejected:
            self._tally.delivered(sent - rejected)

    def _divide(
        self,
        journal: Journal,
        entries: Sequence[Entry],
        read: list[tuple[Entry, bytes]],
        until: Callable[[], float],
        outcome: Outcome,
        division: _Division | None,
    ) -> Outcome:
        first = division is None
        if division is None:
            division = _Division(self._takes_nothing(until))
        if len(entries) == 1:
            division.suspects.append((*read[0], outcome))
            ended = self._blame(journal, division)
        else:
            ended = self._halves(journal, entries, until, division)
        unproven = first and ended.fate is Fate.DELIVERED and division.suspects
        return replace(outcome, fate=Fate.KEPT) if unproven else ended

    def _halves(self, journal: Journal, entries: Sequence[Entry], until: Callable[[], float], division: _Division) -> Outcome:
        middle = len(entries) // 2
        ended = self._send(journal, entries[:middle], until, division)
        return ended if ended.fate is not Fate.DELIVERED else self._send(journal, entries[middle:], until, division)

    def _takes_nothing(self, until: Callable[[], float]) -> bool:
        """Whether the collector accepts a request without spans: then what it refused is a span, and not the way that leads there."""
        timeout = min(self._timeout, until() - monotonic())
        return timeout > 0 and self._transport.send(b"", timeout).fate is Fate.DELIVERED

    def _accepted(self, journal: Journal, division: _Division | None) -> None:
        if division is not None:
            division.trusted = True
            self._blame(journal, division)

    def _blame(self, journal: Journal, division: _Division) -> Outcome:
        if not division.trusted:
            too_many = len(division.suspects) > _UNPROVEN
            return replace(division.suspects[-1][2], fate=Fate.KEPT) if too_many else DELIVERED
        for entry, span, outcome in division.suspects:
            self._aside.put(span)
            self._tally.rejected(1, outcome.reason)
            journal.settle(entry.number)
        division.suspects.clear()
        return DELIVERED
