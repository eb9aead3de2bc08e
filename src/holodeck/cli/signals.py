"""Signals, as the event loop sees them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Signals", "Stop", "Stopped"]

_T = TypeVar("_T")


class Stopped(Exception):
    """What was waited for will not come: the chat ends."""


class Stop:
    """That the chat has to end, and with which exit code.

    Attributes:
        code: The exit code; None while nothing ends.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._event = asyncio.Event()

    def set(self, code: int) -> None:
        """End the chat; the first code counts."""
        if self.code is None:
            self.code = code
            self._event.set()

    async def or_result(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What ``work`` returns.

        Raises:
            Stopped: The chat ends first; ``work`` is cancelled.
        """
        if self.code is not None:
            work.close()
            raise Stopped
        task, stop = asyncio.create_task(work), asyncio.create_task(self._event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Stopped
            return task.result()
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


class Signals:
    """What SIGINT, SIGTERM and SIGHUP do while a chat runs. One that was ignored from the start (``nohup``) stays so.

    Args:
        on_end: Called with the signal's number for SIGTERM and SIGHUP.
        on_interrupt: Called for SIGINT, unless :meth:`interrupting` says otherwise.
    """

    def __init__(self, on_end: Callable[[int], None], on_interrupt: Callable[[], None]) -> None:
        self._on_end, self._on_interrupt = on_end, on_interrupt
        self._ignored = {n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_IGN}

    def install(self) -> None:
        """Let the running loop handle the signals. To be called again after something else has handled SIGINT, as a prompt does."""
        loop = asyncio.get_running_loop()
        if signal.SIGINT not in self._ignored:
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in {signal.SIGTERM, signal.SIGHUP} - self._ignored:
            loop.add_signal_handler(number, self._on_end, number)

    def _interrupt(self) -> None:
        self._on_interrupt()

    @contextmanager
    def interrupting(self, action: Callable[[], None]) -> Iterator[None]:
        """SIGINT does this instead."""
        before, self._on_interrupt = self._on_interrupt, action
        try:
            yield
        finally:
            self._on_interrupt = before
