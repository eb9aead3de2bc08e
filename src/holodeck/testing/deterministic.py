"""Ids and times that are the same in every run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace, TracebackType
from typing import Any, Final, Self

from opentelemetry.sdk.trace.id_generator import IdGenerator

__all__ = ["FakeClock", "SequentialIds"]

_START: Final = 1_700_000_000_000_000_000
_TICK: Final = 1_000_000


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
    """While it is entered, each look at a clock of spans, turns and tools is one tick later than the one before.

    Wall-clock times of spans and durations that are measured elsewhere (``holodeck.tool.execution_time``, time to first chunk) are
    counted apart. Time itself goes on: a delay takes as long as ever.

    Args:
        start: First time, in nanoseconds since 1970.
        tick: Nanoseconds between two looks.
    """

    def __init__(self, start: int = _START, tick: int = _TICK) -> None:
        self.start, self.tick, self._now = start, tick, start
        self._seconds = 0.0
        self._undo: list[tuple[Any, str, Any]] = []

    def __call__(self) -> int:
        """The next time in nanoseconds."""
        now, self._now = self._now, self._now + self.tick
        return now

    def seconds(self) -> float:
        """The next time of a stop watch, in seconds."""
        self._seconds += self.tick / 1e9
        return self._seconds

    def __enter__(self) -> Self:
        # Neither the SDK nor the helper library takes a clock: their own look at the clock is replaced.
        self._replace("opentelemetry.sdk.trace", "time_ns", self)
        for module in ("_invocation", "_tool_invocation", "_agent_invocation"):
            self._replace(f"opentelemetry.util.genai.{module}", "timeit", SimpleNamespace(default_timer=self.seconds))
        self._replace("holodeck.chat.turn", "perf_counter", self.seconds)
        return self

    def _replace(self, module: str, name: str, value: Callable[[], float] | SimpleNamespace) -> None:
        owner = import_module(module)
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._undo:
            setattr(*self._undo.pop())
