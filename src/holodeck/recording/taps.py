"""Stand between an agent and its models and tools, and tell a recorder what passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holodeck.backends import Backend
from holodeck.backends.expectation import request_of
from holodeck.backends.reply import ReplyBuilder
from holodeck.errors import BackendError, ToolError
from holodeck.models.agent import ToolConfig
from holodeck.models.exchange import ModelEndpoint
from holodeck.models.tool_execution import ToolSpec
from holodeck.tools import CallContext, Toolbox

if TYPE_CHECKING:
    from semantic_kernel.contents import ChatHistory

    from holodeck.recording.recorder import Recorder

__all__ = ["OtherBackend", "OtherToolbox", "RecordingBackend", "RecordingToolbox"]


class OtherBackend(Backend):
    """A backend that hands everything on to ``inner``; what is different is overridden."""

    def __init__(self, inner: Backend) -> None:  # the parts of a backend belong to `inner`
        self._inner = inner
        self.config, self.script = inner.config, inner.script

    @property
    def notices(self) -> list[str]:  # type: ignore[override]
        """What the user should know about the model."""
        return self._inner.notices

    def check(self, agent: str = "") -> None:
        """Nothing is left to check."""

    async def open(self) -> None:
        """Open the inner backend."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the inner backend."""
        await self._inner.close()

    @property
    def endpoint(self) -> ModelEndpoint:
        """The inner backend's."""
        return self._inner.endpoint

    @property
    def offers_tools(self) -> bool:
        """Whether the model can be offered tools."""
        return self._inner.offers_tools

    async def ask(
        self, history: ChatHistory, tools: Sequence[ToolSpec], reply: ReplyBuilder, on_chunk: Callable[[str], None], conversation: str = ""
    ) -> None:
        """Ask the inner backend."""
        await self._inner.ask(history, tools, reply, on_chunk, conversation)


class RecordingBackend(OtherBackend):
    """Tells ``recorder`` each request and its reply."""

    def __init__(self, inner: Backend, recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder
        recorder.joined(inner)

    async def ask(
        self, history: ChatHistory, tools: Sequence[ToolSpec], reply: ReplyBuilder, on_chunk: Callable[[str], None], conversation: str = ""
    ) -> None:
        """Ask, and tell what came back; a request that was stopped is not told."""
        request = request_of(history, tools if self.offers_tools else ())
        pieces = 0

        def count(text: str) -> None:
            nonlocal pieces
            pieces += bool(text)
            on_chunk(text)

        try:
            await self._inner.ask(history, tools, reply, count, conversation)
        except BackendError as error:
            self._recorder.failed(self._inner, request, reply.reply(), pieces, error)
            raise
        self._recorder.answered(self._inner, request, reply.reply(), pieces)


class OtherToolbox(Toolbox):
    """A toolbox that hands everything on to ``inner``; what is different is overridden."""

    def __init__(self, inner: Toolbox) -> None:  # the parts of a toolbox belong to `inner`
        self._inner = inner

    async def open(self) -> None:
        """Open the inner toolbox."""
        await self._inner.open()

    async def close(self) -> None:
        """Close the inner toolbox."""
        await self._inner.close()

    @property
    def specs(self) -> list[ToolSpec]:
        """What is offered."""
        return self._inner.specs

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of that name."""
        return next((spec for spec in self.specs if spec.name == name), None)

    def owner(self, name: str) -> ToolConfig | None:
        """The entry of the agent file that the tool comes from."""
        return self._inner.owner(name)

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None, context: CallContext) -> str:
        """Call a tool of the inner toolbox."""
        return await self._inner.call(name, arguments, context)


class RecordingToolbox(OtherToolbox):
    """Tells ``recorder`` what each tool returned."""

    def __init__(self, inner: Toolbox, recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    async def call(self, name: str, arguments: str | Mapping[str, Any] | None, context: CallContext) -> str:
        """Call the tool, and tell what came of it; a call that was stopped is not told."""
        try:
            result = await self._inner.call(name, arguments, context)
        except ToolError as error:
            self._recorder.called(name, arguments, error)
            raise
        self._recorder.called(name, arguments, result)
        return result
