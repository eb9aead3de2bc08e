"""An event loop in a thread of its own, so that a test without one can use what is asynchronous, and a test with any can, too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["LoopThread"]

_T = TypeVar("_T")


class LoopThread:
    """Runs coroutines in one event loop, from any thread. Starts when it is first used."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Begin ``work``; cancelling the future cancels it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="holodeck-testing", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What ``work`` returns or raises. An interruption of the caller (Ctrl-C, a time limit) cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The same for a caller that runs in an event loop of asyncio."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """End the loop and its thread; idempotent."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_finish(), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


async def _finish() -> None:
    """Cancel what is left, and let generators and worker threads end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
