"""Plays a recording: the same answers, and if that is wanted the same results of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holodeck.backends import Backend
from holodeck.backends.base import endpoint_of
from holodeck.backends.script import RecordedModel, Script, ScriptedCall
from holodeck.errors import SettingError, ToolError
from holodeck.models.agent import McpTool, PromptTool, ToolConfig
from holodeck.models.exchange import ModelEndpoint
from holodeck.models.tool_execution import ToolSpec
from holodeck.recording.taps import OtherBackend, OtherToolbox
from holodeck.tools import CallContext, Toolbox
from holodeck.tools.mcp_content import may_be_offered_as

if TYPE_CHECKING:
    from holodeck.chat import Agent

__all__ = ["replay"]


def replay(agent: Agent, *, tools: bool = False) -> None:
    """Prepare an agent whose model is scripted: call before it is opened. For any other agent nothing changes.

    The models of prompt tools that have their own are played from a recording, too. With ``tools``, the results of tools come from the
    script: nothing is run and no MCP server is started; prompt tools, which only ask the model, work as ever.

    Raises:
        SettingError: ``tools`` is asked for, and the model is not scripted.
    """
    script = agent.backend.script
    if script is None:
        if tools:
            raise SettingError("--replay-tools: results come from a script or a recording: name one with --model scripted/FILE")
        return
    main, others = agent.backend, iter(script.recorded.other_models if script.recorded else ())

    def played(backend: Backend) -> Backend:
        return backend if backend is main or script.recorded is None else _Played(main, backend, next(others, None))

    agent.intercept(played, lambda toolbox: _ReplayedTools(toolbox, agent, script) if tools else toolbox)


class _Played(OtherBackend):
    """A prompt tool's own model, answered by the recording of the agent."""

    def __init__(self, main: Backend, own: Backend, model: RecordedModel | None) -> None:
        super().__init__(main)
        self.config, self._own, self._model = own.config, own, model

    async def open(self) -> None:
        """The agent's own backend is opened by the agent."""

    async def close(self) -> None:
        """As above."""

    @property
    def endpoint(self) -> ModelEndpoint:
        """The model that was recorded."""
        return endpoint_of(self._model, self.config) if self._model else self._own.endpoint


class _ReplayedTools(OtherToolbox):
    """Returns what the script says that tools returned: for each name and arguments one result after the other, the last one again."""

    def __init__(self, inner: Toolbox, agent: Agent, script: Script) -> None:
        super().__init__(inner)
        config = agent.config.tools
        self._script, self._prompts = script, {tool.name for tool in config if isinstance(tool, PromptTool)}
        self._mcp = [tool for tool in config if isinstance(tool, McpTool)]
        self._results: dict[str, list[ScriptedCall]] = {}
        for call in (call for reply in script.replies for call in reply.tool_calls if call.result is not None or call.error is not None):
            self._results.setdefault(_key(call.name, call.arguments if call.raw is None else call.raw), []).append(call)
        self._used: dict[tuple[str, str], int] = {}

    async def open(self) -> None:
        """No MCP server is started."""

    @property
    def specs(self) -> list[ToolSpec]:
        """The tools of the agent file; those of MCP servers as they were recorded."""
        recorded = self._script.recorded.tools if self._script.recorded else []
        offered = {tool.name: tool for tool in recorded if self._server(tool.name)}
        own = {tool.name: tool for tool in self._inner.specs}
        order = [tool.name for tool in recorded if tool.name in own or tool.name in offered]
        names = dict.fromkeys([*order, *own])
        return [own.get(name) or offered[name] for name in names]

    def owner(self, name: str) -> ToolConfig | None:
        """The entry of the agent file that the tool comes from."""
        return self._inner.owner(name) or self._server(name)

    def _server(self, tool: str) -> McpTool | None:
        # No server was started that could say so: the longest name with which the tool's can begin.
        fitting = [server for server in self._mcp if may_be_offered_as(server.name, tool)]
        return max(fitting, key=lambda server: len(server.name), default=None)

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None, context: CallContext) -> str:
        """The recorded result.

        Raises:
            ToolError: The recorded failure; or there is no result for this call.
        """
        if name in self._prompts:
            return await self._inner.call(name, arguments, context)
        recorded = self._next(name, _key(name, arguments), context)
        if recorded.error is not None:
            raise ToolError(recorded.error, error_type=recorded.error_type)
        return recorded.result or ""

    def _next(self, name: str, key: str, context: CallContext) -> ScriptedCall:
        results = self._results.get(key)
        if not results:
            raise ToolError(
                f"{self._script.place()}: no result of {name} with these arguments was recorded: record again, or run the tools",
                error_type="not_recorded",
            )
        place = (context.conversation, key)
        number = self._used.get(place, 0)
        self._used[place] = number + 1
        return results[min(number, len(results) - 1)]


def _key(name: str, arguments: Any) -> str:
    """A call's name and arguments in a form in which equal ones are equal text."""
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return f"{name} {arguments}"
    return f"{name} {json.dumps(arguments or {}, sort_keys=True, default=str)}"
