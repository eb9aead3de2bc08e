"""Tools within their time."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time

import pytest

from holodeck.errors import ToolError, ToolTimeout
from holodeck.tools.running import _contained, bounded, in_daemon_thread


def test_timeout_cancels_and_is_told():
    """A tool that takes too long is cancelled, gets to clean up, and the caller knows at once."""
    ended = []

    async def slow():
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)

    started = time.monotonic()
    with pytest.raises(ToolTimeout, match=r"slow did not answer within 0\.05 s"):
        asyncio.run(bounded(slow(), 0.05, "slow"))
    assert ended
    assert time.monotonic() - started < 5


def test_a_tool_that_will_not_be_cancelled_is_left_behind():
    """A tool that swallows its cancellation does not hold up the turn."""

    async def stubborn(release: asyncio.Event):
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def main() -> float:
        release = asyncio.Event()
        started = time.monotonic()
        with pytest.raises(ToolTimeout):
            await bounded(stubborn(release), 0.05, "stubborn")
        release.set()
        return time.monotonic() - started

    assert asyncio.run(main()) < 3


@pytest.mark.parametrize("kind", [ValueError, StopAsyncIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError, TimeoutError])
def test_whatever_a_coroutine_raises_is_a_tool_error(kind):
    """No exception of a tool ends the chat or looks like a cancellation or timeout of ours; the original is the cause."""

    async def raises():
        raise kind("x")

    with pytest.raises(ToolError) as caught:
        asyncio.run(bounded(raises(), 5, "t"))
    assert type(caught.value) is ToolError
    assert caught.value.error_type == kind.__name__
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("kind", [ValueError, StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_whatever_a_thread_raises_is_a_tool_error(kind):
    """The same for a function in a thread, also for exceptions that a future cannot hold."""

    def raises():
        raise kind("x")

    with pytest.raises(ToolError) as caught:
        asyncio.run(bounded(in_daemon_thread(raises), 5, "t"))
    assert caught.value.error_type == kind.__name__
    assert isinstance(caught.value.__cause__, kind)


def test_cancelling_the_caller_cancels_the_tool():
    """A cancelled call passes the cancellation on unchanged, and the tool is cancelled, too."""
    seen = []

    async def tool():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main():
        call = asyncio.create_task(bounded(tool(), 30, "t"))
        await asyncio.sleep(0.01)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert seen == ["cancelled"]


def test_threads_get_the_callers_context_variables():
    """The current span, and whatever else lives in context variables, is current in the thread."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def main():
        variable.set("set")
        return await in_daemon_thread(lambda: (variable.get(), threading.current_thread() is threading.main_thread()))

    assert asyncio.run(main()) == ("set", False)


def test_a_blocked_function_neither_holds_up_the_loop_nor_the_exit():
    """A function that never returns times out at once, and the process can end while it is still blocked."""
    code = """
import asyncio, threading
from holodeck.errors import ToolTimeout
from holodeck.tools.running import bounded, in_daemon_thread
async def main():
    try:
        await bounded(in_daemon_thread(threading.Event().wait), 0.05, "stuck")
    except ToolTimeout as exc:
        print(exc)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "stuck did not answer within 0.05 s\n"
    assert done.stderr == ""


def test_a_late_coroutine_of_a_function_is_disposed_of():
    """A function that returns a coroutine after its time leaves no "never awaited" warning behind."""
    release, returned = threading.Event(), threading.Event()

    async def late():
        """Never awaited."""

    def function():
        release.wait(10)
        try:
            return late()
        finally:
            returned.set()

    async def main():
        with pytest.raises(ToolTimeout):
            await bounded(in_daemon_thread(function), 0.05, "late")
        release.set()
        await asyncio.to_thread(returned.wait, 10)
        await asyncio.sleep(0.05)  # the thread has yet to hand its coroutine over

    asyncio.run(main())


@pytest.mark.parametrize("exc", [GeneratorExit(), asyncio.CancelledError("own"), SystemExit(3), KeyboardInterrupt(), StopAsyncIteration()])
def test_whatever_a_coroutine_raises_is_a_failed_call(exc):
    """Exceptions that end loops and programs are the tool's failure, when the tool raises them."""

    async def fails():
        raise exc

    with pytest.raises(ToolError) as caught:
        asyncio.run(bounded(fails(), 5, "f"))
    assert caught.value.error_type == type(exc).__name__


def test_a_tool_that_cancels_itself_has_failed():
    """Nobody else asked for it: the turn is not stopped."""

    async def gives_up():
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(30)

    with pytest.raises(ToolError) as caught:
        asyncio.run(bounded(gives_up(), 5, "f"))
    assert caught.value.error_type == "CancelledError"


def test_work_that_is_closed_ends_quietly():
    """A coroutine that is thrown away is no failed call: what closes it sees nothing of it."""

    async def waits():
        await asyncio.sleep(30)

    loop = asyncio.new_event_loop()
    work = _contained(waits())
    task = loop.create_task(work)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    work.close()
    assert not task.done()
    task._log_destroy_pending = False  # it is thrown away on purpose
