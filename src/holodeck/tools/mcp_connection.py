"""One session with one MCP server, in one task of its own.

Scopes of the ``mcp`` package have to be left in the task that entered them; with a task for each session, any task may open, use and
close it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib.metadata
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import CallToolResult, Tool

__all__ = ["Connection", "Link", "ServerGoneError", "unwrapped"]

_MAX_PAGES: Final = 1000
_CLOSE: Final = 1.8
"""Seconds that closing may take, unless the server leaves before."""
_NOTIFY: Final = 1.0
_CLOSED: Final = "Connection closed"
"""What the ``mcp`` package says to those who wait when a session ends."""


class ServerGoneError(Exception):
    """The server is not there any more; the message says why, e.g. "exited with code 1"."""


class Link:
    """What carries a session: its two streams, and the end of it.

    Attributes:
        streams: What the session reads, and what it writes.
        ended: Resolved with the reason when the other side is gone; None where requests find that out themselves.
    """

    def __init__(self, streams: tuple[Any, Any], ended: asyncio.Future[str] | None = None) -> None:
        self.streams, self.ended = streams, ended


_T = TypeVar("_T")
Transport = Callable[[], contextlib.AbstractAsyncContextManager[Link]]


class Connection:
    """A session from handshake to close.

    Args:
        transport: Opens the way to the server.

    Attributes:
        tools: The server's tools, after :meth:`open`.
        is_expired: The server has forgotten the session; set by those who find out. Calls that wait may still be answered.
        waiting: How many calls wait for their answer.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._late: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self.tools: list[Tool] = []
        self.is_expired = False
        self.waiting = 0

    @property
    def alive(self) -> bool:
        """The session is open, as far as known."""
        return self._ready.done() and not self._ended.done() and not self.is_expired

    async def open(self) -> None:
        """Starts the server and lists its tools; without a limit of its own.

        Raises:
            ServerGoneError: It ended, or did not speak MCP.
            Exception: Whatever else the transport or the handshake raised.
        """
        # A context of its own: the session outlives the span, if any, in which it is opened.
        self._task = asyncio.create_task(self._serve(), name="mcp session", context=contextvars.Context())
        await asyncio.wait((self._ready, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            if not self._task.cancelled():
                await self._task
            raise ServerGoneError(self._ended.result())

    async def close(self) -> None:
        """Ends the session and the server within 2 s; calls that are still waiting fail. Never raises; may be called twice."""
        self.mark_gone("was stopped")
        if self._task is None or self._task.done():
            return
        if not self._ready.done():
            self._task.cancel()  # in the middle of its handshake
        await asyncio.wait({self._task}, timeout=_CLOSE)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.2)

    def mark_gone(self, reason: str) -> None:
        """Lets waiting calls fail and the session end."""
        if not self._ended.done():
            self._ended.set_result(reason)
        self._stop.set()

    async def call(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None) -> CallToolResult:
        """One ``tools/call``; when it is cancelled, the server is told.

        Raises:
            ServerGoneError: The server is, or went away meanwhile.
            mcp.McpError: The server answered with an error.
        """
        if not self._ready.done() or self._ended.done():
            raise ServerGoneError(self._ended.result() if self._ended.done() else "is not open")
        session = self._ready.result()
        numbers: list[int] = []
        request = asyncio.create_task(_request(session, tool, arguments, meta, numbers))
        request.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also when nobody waits any more
        self.waiting += 1
        try:
            await asyncio.wait((request, self._ended), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._tell_cancelled(session, numbers)
            raise
        finally:
            self.waiting -= 1
            answered = request.done()
            request.cancel()
        if not answered:
            raise ServerGoneError(self._ended.result())
        return await self._answer(request)

    async def _answer(self, request: Awaitable[_T]) -> _T:
        """What a request comes to."""
        import anyio  # noqa: PLC0415 - comes with mcp
        from mcp import McpError  # noqa: PLC0415 - 0.3 s that an agent without MCP need not pay
        from mcp.types import CONNECTION_CLOSED  # noqa: PLC0415 - as above

        try:
            return await request
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
            raise await self._lost() from exc
        except McpError as exc:
            if exc.error.code == CONNECTION_CLOSED and exc.error.message == _CLOSED:  # servers use the code for errors of their own
                raise await self._lost() from exc
            raise

    async def _lost(self) -> ServerGoneError:
        """The reason, which the transport may know a moment after the session."""
        await asyncio.wait({self._ended}, timeout=0.5)
        self.mark_gone("closed the connection")
        return ServerGoneError(self._ended.result())

    def _tell_cancelled(self, session: ClientSession, numbers: list[int]) -> None:
        if numbers and self.alive:
            task = asyncio.create_task(_notify_cancelled(session, numbers[0]), context=contextvars.Context())
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _serve(self) -> None:
        from mcp import ClientSession  # noqa: PLC0415 - 0.3 s that an agent without MCP need not pay
        from mcp.types import Implementation  # noqa: PLC0415 - as above

        # Without a handler Python prints the library's warnings, tracebacks included, over the chat; the callers get them as errors.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        who = Implementation(name="holodeck", version=importlib.metadata.version("holodeck"))
        try:
            async with self._transport() as link, ClientSession(*link.streams, client_info=who) as session:
                self._follow(link)
                self.tools = await self._answer(_handshake(session))
                self._ready.set_result(session)
                await self._stop.wait()
        except Exception as exc:  # noqa: BLE001 - whatever ended the session, those who wait for it are told
            self.mark_gone(str(unwrapped(exc)))
            if not self._ready.done():
                raise unwrapped(exc) from None
        finally:
            self.mark_gone("closed the connection")

    def _follow(self, link: Link) -> None:
        if link.ended is not None:
            link.ended.add_done_callback(self._on_end)

    def _on_end(self, ended: asyncio.Future[str]) -> None:
        if not ended.cancelled():
            self.mark_gone(ended.result())


async def _handshake(session: ClientSession) -> list[Tool]:
    from mcp.types import PaginatedRequestParams  # noqa: PLC0415 - as above

    welcome = await session.initialize()
    if welcome.capabilities.tools is None:
        return []
    page = await session.list_tools()
    tools = list(page.tools)
    seen: set[str] = set()
    while page.nextCursor and page.nextCursor not in seen and len(seen) < _MAX_PAGES:
        seen.add(page.nextCursor)
        page = await session.list_tools(params=PaginatedRequestParams(cursor=page.nextCursor))
        tools += page.tools
    return tools


async def _request(
    session: ClientSession, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None, numbers: list[int]
) -> CallToolResult:
    """One request; its number is left in ``numbers``, because the library has no other way to name a request that is to be cancelled."""
    number = getattr(session, "_request_id", None)  # taken by the call below before it waits for anything
    if isinstance(number, int):
        numbers.append(number)
    return await session.call_tool(tool, arguments, meta=meta)


async def _notify_cancelled(session: ClientSession, number: int) -> None:
    from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification  # noqa: PLC0415 - as above

    params = CancelledNotificationParams(requestId=number, reason="the caller gave up")
    note = ClientNotification(CancelledNotification(params=params))
    with contextlib.suppress(Exception):  # the call is given up either way
        async with asyncio.timeout(_NOTIFY):
            await session.send_notification(note)


def unwrapped(exc: BaseException) -> BaseException:
    """The first exception inside nested exception groups: task groups wrap what was raised in them."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc
