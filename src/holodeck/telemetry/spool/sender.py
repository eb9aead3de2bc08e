"""The thread that empties the queue. It starts with the first span, sleeps while nothing waits, and never holds anybody up."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from random import uniform
from time import monotonic
from typing import Final

from holodeck.telemetry.spool.courier import Courier
from holodeck.telemetry.spool.journal import Journal
from holodeck.telemetry.spool.outcome import Fate, Outcome

__all__ = ["Sender"]

_BEAT: Final = 1.0
_SHORTEST_BACKOFF: Final = 0.5
_LONGEST_BACKOFF: Final = 30.0
_UNTIL_PUT_RIGHT: Final = 60.0
_ADOPTION: Final = 60.0
_TRIES: Final = 3
_HANGING_UP: Final = 0.2


class Sender:
    """Sends what the journals hold: regularly, when a batch is full, and when asked to.

    Args:
        courier: Sends a batch.
        delay: Seconds between two requests.
        most_spans: Spans that make a batch full.
        adopt: Yields the journals of ended processes, each adopted when it is asked for.
        limit: Keeps all queues within their limits.
        on_error: Called with what must not have happened.
    """

    def __init__(
        self,
        courier: Courier,
        *,
        delay: float,
        most_spans: int,
        adopt: Callable[[], Iterator[Journal]],
        limit: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._courier, self._delay, self._most_spans = courier, delay, most_spans
        self._adopt, self._limit, self._on_error = adopt, limit, on_error
        self.own: Journal | None = None
        self.adopted: list[Journal] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due = self._until = math.inf
        self._retry_at = self._not_before = self._next_adoption = 0.0
        self._asked = self._answered = self._failures = 0
        self._stopping = self._dormant = False
        self._rolled = 0

    @property
    def journals(self) -> list[Journal]:
        """Our own journal, then those of ended processes."""
        return [*([self.own] if self.own is not None else []), *self.adopted]

    def start(self) -> None:
        """Start the thread if it does not run."""
        with self._changed:
            if self._thread is None and not self._stopping:
                thread = threading.Thread(target=self._run, name="holodeck-spool", daemon=True)
                thread.start()
                self._thread = thread

    def opened(self) -> None:
        """A span has started: from now on the thread notes that the process lives."""
        with self._changed:
            if self._dormant:
                self._dormant = False
                self._changed.notify_all()

    def added(self) -> None:
        """A span waits."""
        with self._changed:
            due = monotonic() + self._delay
            if self.own is not None and len(self.own) >= self._most_spans:
                due = 0.0
            if due < self._due:
                self._due = due
                self._changed.notify_all()

    def flush(self, seconds: float, *, stop: bool = False) -> bool:
        """Send what waits, at once and for at most ``seconds``; True if nothing is left. ``stop``: the thread ends then."""
        with self._changed:
            self._stopping = self._stopping or stop  # with the request, or the thread could end between the two
            if self._thread is None:
                return True
            self._until = monotonic() + seconds
            self._asked += 1
            asked = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._answered >= asked, seconds)
            if not self._stopping:
                self._until = math.inf
        return not any(len(journal) for journal in self.journals)

    def stop(self, seconds: float, hang_up: Callable[[], None]) -> None:
        """Send what waits and end the thread, for at most ``seconds``; a request that is waiting is ended by ``hang_up``.

        A thread that cannot be ended (it looks a host up) goes on alone: what has no other place than memory is given up then.
        """
        end = monotonic() + seconds
        self.flush(seconds, stop=True)
        if self._thread is None:
            return
        self._thread.join(max(end - monotonic(), 0.02))
        hang_up()
        self._thread.join(_HANGING_UP)
        if self._thread.is_alive():
            for journal in self.journals:
                journal.give_memory_up()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._wanted():
                    self._changed.wait(self._patience())
                    self._dormant = False
                asked, stopping = self._asked, self._stopping
            try:
                self._once(flush=asked != self._answered)
            except Exception as error:  # noqa: BLE001 - a thread that dies would leave every later span waiting
                self._on_error(error)
                self._retry_at = monotonic() + _UNTIL_PUT_RIGHT
            with self._changed:
                self._answered = asked
                self._changed.notify_all()
                if stopping and self._asked == asked:
                    break
        for journal in self.journals:
            journal.close()

    def _wanted(self) -> bool:
        return self._asked != self._answered or self._stopping or monotonic() >= max(self._due, self._retry_at)

    def _patience(self) -> float | None:
        wait = max(self._due, self._retry_at) - monotonic()
        if any(journal.open_spans or journal.in_memory for journal in self.journals):
            return max(min(wait, _BEAT), 0.0)
        self._dormant = wait == math.inf
        return None if self._dormant else max(wait, 0.0)

    def _once(self, *, flush: bool) -> None:
        for journal in self.journals:
            journal.beat()
        rolled = sum(journal.rolled for journal in self.journals)
        if rolled != self._rolled:
            self._rolled = rolled
            self._limit()
        if flush:
            self._flush()
        elif monotonic() >= max(self._due, self._retry_at):
            self._work(adopt=False)

    def _flush(self) -> None:
        """A server that answers, but is too busy, is asked again; one that is not there is not waited for."""
        if monotonic() < self._not_before:
            return
        for turn in range(_TRIES):
            outcome = self._work(adopt=True)
            pause = 0.2 * 2**turn
            again = outcome is not None and outcome.fate is Fate.LATER and outcome.answered and not outcome.retry_after
            if not again or self._until - monotonic() < pause:
                return
            threading.Event().wait(pause)

    def _work(self, *, adopt: bool) -> Outcome | None:
        """Send everything; the outcome that ended it early, or None."""
        try:
            if self.own is not None and (failed := self._drain(self.own)) is not None:
                return failed
            for journal in list(self.adopted):
                if (failed := self._drain_adopted(journal)) is not None:
                    return failed
            return self._drain_others() if adopt or monotonic() >= self._next_adoption else None
        finally:
            with self._changed:
                waiting = any(len(journal) for journal in self.journals)
                self._due = monotonic() + self._delay if waiting else math.inf

    def _drain_others(self) -> Outcome | None:
        self._next_adoption = monotonic() + _ADOPTION
        self._limit()
        for journal in self._adopt():
            self.adopted.append(journal)
            if (failed := self._drain_adopted(journal)) is not None:
                return failed
            if monotonic() > self._until:
                break
        return None

    def _drain_adopted(self, journal: Journal) -> Outcome | None:
        failed = self._drain(journal)
        if failed is None:
            journal.close()
            self.adopted.remove(journal)
        return failed

    def _drain(self, journal: Journal) -> Outcome | None:
        while (outcome := self._courier.deliver(journal, lambda: self._until)) is not None:
            if outcome.fate is not Fate.DELIVERED:
                self._back_off(outcome)
                return outcome
            self._failures, self._retry_at, self._not_before = 0, 0.0, 0.0
        return None

    def _back_off(self, outcome: Outcome) -> None:
        now = monotonic()
        self._failures += 1
        wait = min(2.0 ** min(self._failures - 1, 10), _LONGEST_BACKOFF) if outcome.fate is Fate.LATER else _UNTIL_PUT_RIGHT
        self._retry_at = now + wait * uniform(0.75, 1.0)  # noqa: S311 - spreads requests, guards nothing
        if outcome.retry_after:
            self._not_before = now + outcome.retry_after
            self._retry_at = max(self._not_before, now + _SHORTEST_BACKOFF)
