"""Ids and times that are the same in every run."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace.id_generator import IdGenerator

__all__ = ["FakeClock", "SequentialIds"]

_START = 1_700_000_000_000_000_000
_TICK = 1_000_000


class SequentialIds(IdGenerator):
    """Trace and span ids that count up from 1."""

    def __init__(self) -> None:
        self._traces = self._spans = 0

    def generate_trace_id(self) -> int:
        """The next trace id."""
        self._traces += 1
        return self._traces

    def generate_span_id(self) -> int:
        """The next span id."""
        self._spans += 1
        return self._spans

    def is_trace_id_random(self) -> bool:
        """They are not."""
        return False


class FakeClock:
    """While it is entered, each look at the clock of the SDK's spans is one tick later than the one before.

    Args:
        start: First time, in nanoseconds since 1970.
        tick: Nanoseconds between two looks.
    """

    def __init__(self, start: int = _START, tick: int = _TICK) -> None:
        self.start, self.tick, self._now = start, tick, start

    def __call__(self) -> int:
        """The next time in nanoseconds."""
        now, self._now = self._now, self._now + self.tick
        return now

    def __enter__(self) -> Self:
        # The SDK takes no clock; the helper library starts and ends spans without times. Its own look at the clock is replaced.
        self._real, sdk_trace.time_ns = sdk_trace.time_ns, self  # type: ignore[attr-defined]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        sdk_trace.time_ns = self._real  # type: ignore[attr-defined]
