"""Running a tool within its time, so that whatever it does, the chat goes on.

A synchronous function runs in a daemon thread of its own. Python cannot stop a thread: a function that outlives its timeout goes on in the
background and its result is dropped. Because the thread is a daemon, it never keeps the process from ending.
An asynchronous tool is cancelled. One that blocks the event loop itself (``time.sleep`` in an ``async def``) blocks the chat, too:
write it as a plain function.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holodeck.errors import SIGNALLED, ToolError, ToolTimeout
from holodeck.tools.results import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["bounded", "in_daemon_thread"]

_CLEANUP: Final = 0.5
"""Seconds that a cancelled tool has for its ``finally`` blocks before the chat goes on without it."""

_T = TypeVar("_T")
_stragglers: set[asyncio.Task[Any]] = set()  # the event loop holds tasks weakly only


async def bounded(work: Coroutine[Any, Any, _T], seconds: float, name: str) -> _T:
    """The result of ``work``, or an error of ours.

    Args:
        work: What the tool does.
        seconds: Its time; then it is cancelled.
        name: The tool's name, for messages.

    Raises:
        ToolTimeout: It took longer.
        ToolError: It raised; the original is the cause. ``SystemExit`` and ``KeyboardInterrupt`` too: a tool does not end the chat.
        asyncio.CancelledError: The caller was cancelled; the work is, too.
    """
    task = asyncio.create_task(_contained(work), name=f"tool {name}")
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    if done:
        return _result(task)
    await _abandon(task, ToolTimeout.error_type)
    raise ToolTimeout(f"{name} did not answer within {seconds:g} s")


async def _contained(work: Coroutine[Any, Any, _T]) -> _T:
    own = asyncio.current_task()
    try:
        return await work
    except (ToolError, asyncio.CancelledError, *SIGNALLED):
        raise
    except GeneratorExit as exc:
        if not _runs(own):  # somebody closes this coroutine
            raise
        raise failure(exc) from exc
    except BaseException as exc:
        raise failure(exc) from exc


def _runs(task: asyncio.Task[Any] | None) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


def _result(task: asyncio.Task[_T]) -> _T:
    """What a task came to that nobody has cancelled but the tool itself, if anyone."""
    try:
        return task.result()
    except asyncio.CancelledError as exc:
        raise failure(exc) from exc


async def _abandon(task: asyncio.Task[Any], reason: str | None = None) -> None:
    """Cancel ``task``; ``reason`` is the message of the cancellation that it sees."""
    _stragglers.add(task)
    task.add_done_callback(_forget)
    task.cancel(reason)
    await asyncio.wait({task}, timeout=_CLEANUP)


def _forget(task: asyncio.Task[Any]) -> None:
    _stragglers.discard(task)
    if not task.cancelled():
        task.exception()  # marks it as seen: nobody waits for it any more


async def in_daemon_thread(function: Callable[[], _T]) -> _T:
    """What ``function`` returns, called in a new daemon thread with the caller's context variables.

    Raises:
        ToolError: It raised anything at all; the original is the cause.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        # Once the loop is closed nobody is left to hear the answer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, future, *_outcome(context, function))

    threading.Thread(target=run, name="holodeck-tool", daemon=True).start()
    return await future


def _outcome(context: contextvars.Context, function: Callable[[], _T]) -> tuple[_T | None, ToolError | None]:
    try:
        return context.run(function), None
    except ToolError as exc:
        return None, exc
    except BaseException as exc:  # noqa: BLE001 - a future cannot carry StopIteration, and must not carry SystemExit
        error = failure(exc)
        error.__cause__ = exc
        return None, error


def _deliver(future: asyncio.Future[Any], value: Any, error: ToolError | None) -> None:
    if future.done():
        if inspect.iscoroutine(value):
            value.close()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
