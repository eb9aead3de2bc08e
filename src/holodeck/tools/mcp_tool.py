"""MCP servers as tools: what can be checked before they start, starting them, calling their tools.

A stdio server runs in the agent's directory, so that relative paths in ``args`` mean what they mean beside the agent file. Its environment
is small: ``PATH``, ``HOME`` and the like, ``TRACEPARENT``, and what ``env`` says; no ``OTEL_*`` unless ``env`` says so.

A server that is gone fails the call at once. The next call starts it again, once; no call is repeated on its own, as the first may have
had an effect. (The one exception is an HTTP server that no longer knows the session: it has not run anything, so the call is sent once
more in a new session, as the protocol asks.) The tools on offer stay those of the first start.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from holodeck.errors import ToolError, ToolRefused
from holodeck.lib.validation import MAX_TOOL_CHARS, exportable, shorten, terminal_safe
from holodeck.models.tool_execution import ToolSpec
from holodeck.tools.arguments import refusal
from holodeck.tools.fitting import fitted
from holodeck.tools.mcp_connection import Connection, Link, ServerGoneError
from holodeck.tools.mcp_content import offered_name, result_text, usable_schema
from holodeck.tools.mcp_message import DIED, FAULT, NOT_MCP, fault_type
from holodeck.tools.mcp_stdio import Child, run_child
from holodeck.tools.parameters import names_of
from holodeck.tools.running import bounded, in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.types import CallToolResult, Tool

    from holodeck.models.agent import McpTool
    from holodeck.tools.schema import SchemaCheck
    from holodeck.tools.tool import CallContext, Place

__all__ = ["McpServer", "McpServerTool"]

_REASON_CHARS: Final = 300
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


class _SessionLostError(ToolError):
    """The HTTP server has forgotten the session; it has not run the call."""


class McpServer:
    """One configured server, and the tools that it offers.

    Args:
        config: The server as the agent file describes it.
        directory: The agent's directory.
        place: Where the server stands.
        traceparent: W3C ``traceparent``, for the environment of a stdio server and the headers of an HTTP one.
        on_progress: Called with a line about what is going on.

    Attributes:
        tools: What it offers, after :meth:`open`.

    Raises:
        AgentFileError: The command does not exist, or the URL or a header cannot be used.
    """

    def __init__(
        self, config: McpTool, directory: Path, place: Place, traceparent: str | None, on_progress: Callable[[str], None] | None
    ) -> None:
        self.config, self._directory, self._traceparent = config, directory.absolute(), traceparent
        self._place = place.at("command" if config.transport == "stdio" else "url")
        self._on_progress = on_progress or (lambda _: None)
        self._program = _program(config, self._directory, self._place) if config.command else ""
        _check_http(config, place)
        _check_words(config, place)
        self._connection: Connection | None = None
        self._child: Child | None = None
        self._expired: set[Connection] = set()
        self._starting = asyncio.Lock()
        self._closed = False
        self.tools: list[McpServerTool] = []

    async def open(self) -> None:
        """Starts the server and reads what it offers.

        Raises:
            AgentFileError: It did not start, or does not speak MCP; nothing of it is left running.
        """
        self._closed = False
        self._on_progress(f"starting MCP server {self.config.name}")
        try:
            async with self._starting:
                connection = self._connection if self._connection and self._connection.alive else await self._start()
        except ServerGoneError as exc:
            raise self._place.error(f"MCP server {self.config.name!r} {exc}") from exc
        self.tools = self._offer(connection.tools)
        self._on_progress(f"MCP server {self.config.name} is ready, tools: {len(self.tools)}")

    async def close(self) -> None:
        """Stops the server within 2 s."""
        self._closed = True
        connections = self._expired | ({self._connection} if self._connection else set())
        await asyncio.gather(*(connection.close() for connection in connections))
        self._expired.clear()

    async def call(self, tool: str, arguments: dict[str, Any], context: CallContext) -> str:
        """The result of the server's tool ``tool`` as text; see :class:`holodeck.tools.tool.Tool` for what is raised."""
        meta = {"traceparent": context.traceparent} if context.traceparent else None
        try:
            result = await self._request(tool, arguments, meta)
        except _SessionLostError:
            result = await self._request(tool, arguments, meta)
        return result_text(result)

    async def _request(self, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None) -> CallToolResult:
        from mcp import McpError  # noqa: PLC0415 - loaded already, if a server runs

        connection = await self._connected()
        try:
            return await connection.call(tool, arguments, meta)
        except ServerGoneError as exc:
            raise self._died(self._reason(exc)) from exc
        except McpError as exc:
            error = self._error(exc)
            connection.is_expired = connection.is_expired or isinstance(error, _SessionLostError)
            raise error from exc
        except (ValidationError, RuntimeError) as exc:  # the answer is not MCP, or does not fit the server's own output schema
            raise ToolError(f"MCP server {self.config.name!r} {self._reason(exc)}", error_type=NOT_MCP) from exc
        finally:
            if connection.is_expired and not connection.waiting:
                self._expired.discard(connection)
                await connection.close()

    async def _connected(self) -> Connection:
        async with self._starting:
            connection = self._connection
            if self._closed or connection is None:
                raise self._died("is not running: the toolbox is not open")
            if connection.alive:
                return connection
            self._on_progress(f"starting MCP server {self.config.name} again")
            if connection.waiting and connection.is_expired:  # what was asked there may still be answered
                self._expired.add(connection)
            else:
                await connection.close()
            try:
                return await self._start()
            except ServerGoneError as exc:
                raise self._died(str(exc)) from exc

    async def _start(self) -> Connection:
        """A new session; raises ServerGoneError with a reason for people."""
        await in_daemon_thread(_import_mcp)  # somebody may be typing meanwhile
        if self._closed:
            raise ServerGoneError("was stopped")
        self._child = None
        self._connection = connection = Connection(self._stdio if self.config.transport == "stdio" else self._http)
        try:
            async with asyncio.timeout(self.config.timeout):
                await connection.open()
        except BaseException as exc:
            await connection.close()
            if not isinstance(exc, Exception):
                raise
            raise ServerGoneError(self._reason(exc)) from exc
        return connection

    @contextlib.asynccontextmanager
    async def _stdio(self) -> AsyncIterator[Link]:
        async with run_child([self._program, *self.config.args], self._environment(), self._directory) as (child, read, write):
            self._child = child
            yield Link((read, write), child.ended)

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[Link]:
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - 0.3 s that an agent without MCP need not pay

        from holodeck.tools.mcp_http import FaultTolerantClient  # noqa: PLC0415 - imports httpx

        headers = ({"traceparent": self._traceparent} if self._traceparent else {}) | self.config.headers
        async with (
            FaultTolerantClient(headers, self.config.timeout) as client,
            streamable_http_client(self.config.url or "", http_client=client) as (read, write, _),
        ):
            yield Link((read, write))

    def _environment(self) -> dict[str, str]:
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415 - as above

        base = {name: value for name, value in get_default_environment().items() if not name.startswith("OTEL_")}
        return base | ({"TRACEPARENT": self._traceparent} if self._traceparent else {}) | self.config.env

    def _offer(self, tools: list[Tool]) -> list[McpServerTool]:
        offered: dict[str, McpServerTool] = {}
        for tool in {tool.name: tool for tool in tools}.values():
            name = offered_name(self.config.name, tool.name, offered)
            schema, check = usable_schema(tool.inputSchema)
            spec = ToolSpec(name=name, description=exportable(tool.description or ""), parameters=schema, type="extension")
            offered[name] = McpServerTool(self, tool.name, spec, check)
        return list(offered.values())

    def _died(self, reason: str) -> ToolError:
        return ToolError(f"MCP server {self.config.name!r} {reason}", error_type=DIED)

    def _reason(self, exc: Exception) -> str:
        """Why a server is not there, in a line, with the last words of a child."""
        words = self._child.last_line if self._child else ""
        if not words and self._child and self._child.noise:
            words = f"it wrote {self._child.noise!r}, which is not MCP"
        reason = _reason(exc, self.config.timeout)
        return shorten(" ".join(terminal_safe(f"{reason}: {words}" if words else reason).split()), _REASON_CHARS)

    def _error(self, exc: Any) -> ToolError:
        """What a JSON-RPC error (an ``McpError``) means."""
        from mcp.types import INVALID_PARAMS  # noqa: PLC0415 - loaded already, if a server runs

        message = exportable(exc.error.message)
        if exc.error.code == INVALID_PARAMS:
            return ToolRefused(shorten(message, MAX_TOOL_CHARS))
        if exc.error.code != FAULT or (kind := fault_type(exc.error.data)) is None:
            return ToolError(shorten(message, MAX_TOOL_CHARS) or f"MCP server {self.config.name!r} refused the call without a reason")
        lost = kind == "404" and self.config.transport == "http"
        return (_SessionLostError if lost else ToolError)(f"MCP server {self.config.name!r} {message}", error_type=kind)


class McpServerTool:
    """One tool of a server.

    Arguments are checked here against the server's schema, if that is a valid one, and by the server in any case.
    """

    def __init__(self, server: McpServer, name: str, spec: ToolSpec, check: SchemaCheck | None) -> None:
        self._server, self._name, self.spec, self._check = server, name, spec, check

    async def call(self, arguments: dict[str, Any], context: CallContext) -> str:
        """See :class:`holodeck.tools.tool.Tool`."""
        arguments = fitted(arguments, self.spec.parameters)
        if self._check and (faults := self._check.faults(arguments)):
            raise refusal(self.spec.name, faults, names_of(self.spec.parameters))
        return await bounded(self._server.call(self._name, arguments, context), self._server.config.timeout, self.spec.name)


def _import_mcp() -> None:
    importlib.import_module("mcp.client.streamable_http")  # and with it all that is used of mcp


def _reason(exc: Exception, timeout: float) -> str:
    if isinstance(exc, ServerGoneError):
        return str(exc)
    if isinstance(exc, TimeoutError):
        return f"did not finish its handshake within {timeout:g} s"
    if isinstance(exc, OSError):
        return f"cannot be started: {exc.strerror or exc}"
    return _reason_of_answer(exc)


def _reason_of_answer(exc: Exception) -> str:
    from mcp import McpError  # noqa: PLC0415 - loaded already, if a server was started

    if isinstance(exc, McpError):
        is_ours = exc.error.code == FAULT and fault_type(exc.error.data) is not None
        return exc.error.message if is_ours else f"refused the handshake: {exc.error.message}"
    if isinstance(exc, ValidationError):
        first = exc.errors(include_url=False)[0]
        return f"gave an answer that is not MCP: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(exc, RuntimeError) and re.search("output schema|structured content|Invalid schema", str(exc)):
        # The library appends whole schemas and values.
        return "gave an answer that does not fit the output schema it declares"
    return f"cannot be used: {type(exc).__name__}: {exc}"


def _program(config: McpTool, directory: Path, place: Place) -> str:
    """The absolute path of a command: beside the agent, or else on the PATH that the child will have."""
    command = config.command or ""
    own = directory / Path(command).expanduser()
    if own.is_file() and os.access(own, os.X_OK):
        return str(own)
    if os.sep in command and own.is_dir():
        raise place.error(f"{command} is a directory: name a program")
    if os.sep in command:
        raise place.error(
            f"{command} is not executable: chmod +x it" if own.is_file() else f"{command} does not exist (looked in {directory})"
        )
    if found := shutil.which(command, path=config.env.get("PATH")):
        return found
    raise place.error(f"there is no command {command!r} beside the agent or on the PATH: install it, or write its path")


def _check_http(config: McpTool, place: Place) -> None:
    for name, value in config.headers.items():
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise place.at(f"headers.{name}").error("cannot be sent: a header has a plain name, and printable ASCII as its value")


def _check_words(config: McpTool, place: Place) -> None:
    """What no process can be given."""
    for index, word in enumerate(config.args):
        if "\0" in word:
            raise place.at(f"args[{index}]").error("has a NUL character in it: remove it")
    for name, value in config.env.items():
        if not name or "=" in name or "\0" in name + value:
            raise place.at(f"env.{name}").error("cannot be set: a variable has a name without '=', and no NUL character in name or value")
