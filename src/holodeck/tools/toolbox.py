"""The toolbox: all tools of one agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

from holodeck.errors import ToolError, ToolRefused
from holodeck.lib.validation import exportable, shorten
from holodeck.models.agent import FunctionTool, McpTool, PromptTool, ToolConfig
from holodeck.tools.arguments import parse_arguments
from holodeck.tools.function_tool import PythonTool
from holodeck.tools.loading import Loader
from holodeck.tools.mcp_tool import McpServer
from holodeck.tools.prompt_tool import TemplateTool
from holodeck.tools.results import failure
from holodeck.tools.tool import CallContext, Place, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from holodeck.models.tool_execution import ToolSpec

__all__ = ["Toolbox"]


class Toolbox:
    """The tools of one agent, from its configuration to their results.

    Everything that can be known without starting anything is checked here: tool files are loaded, templates read, parameters compared,
    commands looked up. :meth:`open` starts the MCP servers. Also an async context manager, which opens and closes.
    Calls may be made side by side; all in the event loop that opened it.

    Args:
        tools: ``tools`` of the agent file.
        directory: Where the agent file lies; relative paths start there.
        agent_file: Its name, for messages.
        line_of: Finds the line of a dotted key of the agent file, for messages.
        traceparent: W3C ``traceparent`` for MCP servers: ``TRACEPARENT`` in the environment of a stdio server, a header for HTTP.
        on_progress: Called with a line about what is going on, e.g. "starting MCP server files".

    Raises:
        AgentFileError: A tool cannot be used as it is configured.
    """

    def __init__(
        self,
        tools: Sequence[ToolConfig],
        directory: Path,
        *,
        agent_file: str = "agent.yaml",
        line_of: Callable[[str], int] | None = None,
        traceparent: str | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        self._directory, self._configs = directory.absolute(), tools
        self._loader = Loader(self._directory)
        self._places = [Place(agent_file, f"tools[{index}]", line_of) for index in range(len(tools))]
        self._traceparent, self._on_progress = traceparent, on_progress
        try:
            self._entries = [self._build(config, place) for config, place in zip(tools, self._places, strict=True)]
            self._tools = self._by_name()
        except BaseException:
            self._loader.close()
            raise

    def _build(self, config: ToolConfig, place: Place) -> Tool | McpServer:
        if isinstance(config, FunctionTool):
            return PythonTool(config, self._loader, place)
        if isinstance(config, PromptTool):
            return TemplateTool(config, self._directory, place)
        assert isinstance(config, McpTool)
        return McpServer(config, self._directory, place, self._traceparent, self._on_progress)

    def _by_name(self) -> dict[str, tuple[Tool, ToolConfig]]:
        """Each tool by the name under which it is offered, with the entry of the agent file that it comes from."""
        tools: dict[str, tuple[Tool, ToolConfig]] = {}
        for entry, config, place in zip(self._entries, self._configs, self._places, strict=True):
            for tool in entry.tools if isinstance(entry, McpServer) else [entry]:
                if tool.spec.name in tools:
                    raise place.at("name").error(f"two tools would be offered as {tool.spec.name!r}: rename one")
                tools[tool.spec.name] = tool, config
        return tools

    @property
    def _servers(self) -> list[McpServer]:
        return [entry for entry in self._entries if isinstance(entry, McpServer)]

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Starts all MCP servers side by side, each within the ``timeout`` of its tool; also after :meth:`close`.

        Raises:
            AgentFileError: One did not start (the first in the file, if several failed); whatever was started is stopped again.
        """
        self._loader.open()
        starts = [asyncio.create_task(server.open()) for server in self._servers]
        try:
            if starts:
                await asyncio.wait(starts, return_when=asyncio.FIRST_EXCEPTION)
            for start in starts:
                if start.done():
                    start.result()
            self._tools = self._by_name()
        except BaseException:
            await _cancelled(starts)
            await self._close_servers()
            raise

    async def close(self) -> None:
        """Stops the MCP servers, within 2 s each and side by side, and lets go of loaded files. Never raises; may be called twice."""
        try:
            await self._close_servers()
        finally:
            self._loader.close()

    async def _close_servers(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers), return_exceptions=True)

    @property
    def specs(self) -> list[ToolSpec]:
        """All tools as they are offered to a model, in the order of the agent file; those of MCP servers after :meth:`open`."""
        return [tool.spec for tool, _ in self._tools.values()]

    def spec(self, name: str) -> ToolSpec | None:
        """The tool that is offered as ``name``, or None."""
        return self._tools[name][0].spec if name in self._tools else None

    def owner(self, name: str) -> ToolConfig | None:
        """The entry of the agent file that the tool offered as ``name`` comes from, or None; a server's tools after :meth:`open`."""
        return self._tools[name][1] if name in self._tools else None

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None, context: CallContext) -> str:
        """Runs a tool.

        Args:
            name: As in :attr:`specs`.
            arguments: JSON text as a model sends it, or what it stands for.
            context: What the call may use of its turn.

        Returns:
            The tool's own result as text that UTF-8 can carry; not sanitized, not shortened.

        Raises:
            ToolRefused: No such tool, or arguments that do not fit; nothing was run. The message tells the model what was wrong.
            ToolTimeout: No answer within the tool's ``timeout``. A synchronous function cannot be stopped: it goes on in a daemon thread,
                and its result is dropped.
            ToolError: The tool failed; ``__cause__`` is the exception that it raised, if any.
            asyncio.CancelledError: The caller was cancelled; the tool is, too.
        """
        if name not in self._tools:
            known = shorten(", ".join(self._tools), 1000) or "none"
            raise ToolRefused(f"There is no tool {shorten(exportable(name), 100)!r}. Tools: {known}.")
        tool, _ = self._tools[name]
        try:
            return await tool.call(parse_arguments(arguments), context)
        except ToolError:
            raise
        except Exception as exc:  # a validator of the user's own may raise anything while arguments are checked
            raise failure(exc) from exc


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
