"""A stdio MCP server: a child process, and the two streams that an MCP session reads and writes.

The ``mcp`` package's own ``stdio_client`` is not used, because it keeps the process to itself: here its end is noticed at once and with its
exit code, its stderr is read (into memory: it would draw over the chat, and a pipe that nobody reads blocks the server when it is full),
and closing takes less than two seconds in the worst case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from holodeck.lib.validation import shorten, terminal_safe
from holodeck.tools.mcp_message import read_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

__all__ = ["Child", "run_child"]

_MAX_LINE: Final = 64 * 2**20
"""Longest message of a server in bytes."""
_MAX_NOISE: Final = 2**12
_KEPT_LINES: Final = 20
_LINE_CHARS: Final = 300
_GRACE: Final = (1.0, 0.4, 0.3)
"""Seconds to leave after stdin is closed, after SIGTERM, and after SIGKILL."""
_DRAIN: Final = 0.2
"""Seconds to read what a server wrote before it died."""


class Child:
    """A running server process.

    Attributes:
        ended: Resolved with the reason when the process has ended or its output can no longer be read.
        last_words: Last lines of stderr.
        noise: Last line on stdout that was not MCP; "" if there was none.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.last_words: deque[str] = deque(maxlen=_KEPT_LINES)
        self.noise = ""
        self._process = process

    def end(self, reason: str) -> None:
        """Tells that the server is of no more use."""
        if not self.ended.done():
            self.ended.set_result(reason)

    @property
    def last_line(self) -> str:
        """The last line on stderr, safe to show."""
        return self.last_words[-1] if self.last_words else ""

    async def watch(self, *output: asyncio.Task[None]) -> None:
        """Waits until the process or its output ends, and then a moment for the rest of both."""
        code = asyncio.ensure_future(self._process.wait())
        await asyncio.wait({code, output[0]}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({code, *output}, timeout=_DRAIN)
        number = self._process.returncode
        if number is None:
            self.end("closed its output")
        else:
            self.end(f"was killed by {_signal_name(-number)}" if number < 0 else f"exited with code {number}")

    async def read_stderr(self) -> None:
        """Keeps the last lines of stderr until it is closed."""
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(2**16):
            *lines, rest = (rest + chunk[-(2**14) :]).split(b"\n")
            self._keep(lines)
            rest = rest[-(2**12) :]
        self._keep([rest])

    def _keep(self, lines: list[bytes]) -> None:
        shown = (_one_line(line) for line in lines)
        self.last_words.extend(line for line in shown if line)

    async def read_stdout(self, stream: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Passes each message of the server on; lines that are not MCP are left out."""
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - 0.3 s that an agent without MCP need not pay

        assert self._process.stdout is not None
        async with stream:
            try:
                async for line in self._process.stdout:
                    try:
                        message = read_message(line)
                    except ValueError:
                        self.noise = _one_line(line[-_MAX_NOISE:]) or self.noise
                        continue
                    await stream.send(SessionMessage(message))
            except ValueError:  # asyncio's, for a line over its limit
                self.end(f"wrote a message of more than {_MAX_LINE // 2**20} MiB")

    async def write_stdin(self, stream: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Writes each message for the server, until the server stops reading."""
        assert self._process.stdin is not None
        async with stream:
            async for message in stream:
                line = message.message.model_dump_json(by_alias=True, exclude_none=True)
                try:
                    self._process.stdin.write(line.encode("utf-8", "replace") + b"\n")
                    await self._process.stdin.drain()
                except ConnectionError:
                    await asyncio.wait({self.ended}, timeout=2 * _DRAIN)  # watch() knows why, if the process has ended
                    self.end("does not read its input any more")

    async def stop(self) -> None:
        """Closes stdin, then SIGTERM, then SIGKILL, each to the server's whole process group; returns when all of it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        gone = False
        try:
            for seconds, signum in zip(_GRACE, (signal.SIGTERM, signal.SIGKILL, 0), strict=True):
                if gone := await self._gone(seconds):
                    break
                self._signal(signum)
        finally:
            if not gone:  # the wait was cancelled
                self._signal(signal.SIGKILL)
            self._close_pipes()

    async def _gone(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.005
        while self._process.returncode is None or self._signal(0):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return True

    def _signal(self, signum: int) -> bool:
        """Sends a signal to the group, 0 to ask only; False if there is no group any more."""
        try:
            os.killpg(self._process.pid, signum)
        except (ProcessLookupError, PermissionError):  # the latter is macOS for a group of zombies
            return False
        return True

    def _close_pipes(self) -> None:
        # A grandchild in a session of its own may hold the pipes open; asyncio has no public way to let go of them.
        transport: Any = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()


@contextlib.asynccontextmanager
async def run_child(command: Sequence[str], env: Mapping[str, str], directory: Path) -> AsyncIterator[tuple[Child, Any, Any]]:
    """A server process for as long as the context lasts.

    Args:
        command: Program and arguments.
        env: Its whole environment.
        directory: Its working directory.

    Yields:
        The child, and the streams for an MCP session: what it reads and what it writes.

    Raises:
        OSError: The program cannot be started.
    """
    import anyio  # noqa: PLC0415 - comes with mcp

    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), cwd=directory, start_new_session=True, limit=_MAX_LINE
    )
    child = Child(process)
    to_session, read = anyio.create_memory_object_stream[Any](0)
    write, from_session = anyio.create_memory_object_stream[Any](0)
    jobs = (child.read_stdout(to_session), child.read_stderr(), child.write_stdin(from_session))
    tasks = [asyncio.create_task(job) for job in jobs]
    tasks.append(asyncio.create_task(child.watch(*tasks[:2])))
    try:
        yield child, read, write
    finally:
        try:
            await child.stop()
        finally:
            await _cancelled(tasks)
            for stream in (to_session, read, write, from_session):
                stream.close()


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _one_line(line: bytes) -> str:
    return shorten(terminal_safe(line.decode("utf-8", "replace")).strip(), _LINE_CHARS)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
