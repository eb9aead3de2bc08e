"""A backend: one model of one provider, ready to be asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from holodeck.backends import kernel
from holodeck.backends.failures import explain, no_reply, silent, truncated
from holodeck.backends.model_store import resolve
from holodeck.backends.reply import ReplyBuilder, may_be_written_call
from holodeck.backends.script import Recorded, RecordedModel, Script, load_script
from holodeck.errors import ConfigError
from holodeck.models.exchange import ModelEndpoint
from holodeck.models.llm import LLMConfig, Provider
from holodeck.models.tool_execution import ToolSpec

if TYPE_CHECKING:
    from semantic_kernel.contents import ChatHistory

__all__ = ["Backend", "create_backend", "endpoint_of"]

_log = logging.getLogger(__name__)
_PROVIDER_NAMES: Final = {Provider.AZURE_OPENAI: "azure.ai.openai", Provider.LOCAL: "llama_cpp"}
_KERNEL: Final = object()
"""Stands for Semantic Kernel's ``Kernel``, which its connectors want for one thing only: the tools, and those are offered by us."""
_PORTS: Final = {"https": 443, "http": 80}
OnChunk = Callable[[str], None]


class Backend:
    """Asks one model; made by :func:`create_backend`. One client, shared by all sessions of an agent.

    Attributes:
        config: What the agent file says about the model.
        notices: What the user should know about this model, one line each; complete after :meth:`open`.
        script: What a scripted model says; set by :meth:`check`.
    """

    def __init__(self, config: LLMConfig, environ: Mapping[str, str]) -> None:
        self.config, self._environ = config, environ
        self.notices: list[str] = []
        self.script: Script | None = None
        self._service: Any = None
        self._connection: Any = None

    def check(self, agent: str = "") -> None:
        """Check what can be known without loading anything big: the script, or the local model's file.

        Args:
            agent: Name of the agent; a recording of another one is refused.

        Raises:
            ConfigError: It is missing or wrong.
        """
        if self.config.provider is Provider.SCRIPTED and self.config.script is not None:
            self.script = load_script(self.config.script)
            if recorded := self.script.recorded:
                self._plays(recorded, agent)
        elif self.config.provider is Provider.LOCAL:
            resolve(self.config, self._environ)

    def _plays(self, recorded: Recorded, agent: str) -> None:
        if agent and recorded.agent != agent:
            file = self.script.place() if self.script else ""
            raise ConfigError(f"{file}: this is a recording of the agent {recorded.agent!r}, and the agent here is {agent!r}")
        self.config.name = self.config.name or recorded.model.name

    async def open(self) -> None:
        """Load Semantic Kernel and the provider's client. Opens no connection to a remote provider.

        Raises:
            ConfigError: Something that the provider needs is missing.
        """
        if self._service is None:
            await asyncio.to_thread(self._open)

    def _open(self) -> None:
        connectors = kernel.load("holodeck.backends.connectors")
        self._connection = connectors.connect(self.config, self._environ)
        self.notices = list(self._connection.notices)
        self._service = self._connection.service

    async def close(self) -> None:
        """Close the client; idempotent."""
        connection, self._connection, self._service = self._connection, None, None
        if connection is not None:
            await connection.close()

    @property
    def endpoint(self) -> ModelEndpoint:
        """Which model is asked, as telemetry names it; for a recording, the model that was recorded."""
        if self.script is not None and self.script.recorded is not None:
            return endpoint_of(self.script.recorded.model, self.config)
        url = urlsplit(self._connection.url if self._connection else "")
        return ModelEndpoint(
            provider=_PROVIDER_NAMES.get(self.config.provider, self.config.provider.value),
            model=self.config.title,
            address=url.hostname,
            port=url.port or _PORTS.get(url.scheme),
            config=self.config,
        )

    @property
    def offers_tools(self) -> bool:
        """Whether the model can be offered tools at all."""
        return bool(self._connection is None or self._connection.tools)

    async def ask(
        self, history: ChatHistory, tools: Sequence[ToolSpec], reply: ReplyBuilder, on_chunk: OnChunk, conversation: str = ""
    ) -> None:
        """Send ``history`` to the model and stream what comes back into ``reply``.

        Args:
            history: The conversation so far.
            tools: What the model may call.
            reply: Filled as chunks arrive; holds what was received even after a failure.
            on_chunk: Called for each chunk with its text, maybe "".
            conversation: Id of the conversation; scripted models keep their place by it.

        Raises:
            BackendError: The request failed; its message is one line that says what to do.
        """
        offered = tools if self.offers_tools else ()
        try:
            async with aclosing(self._chunks(history, offered, conversation)) as chunks:
                if self.config.provider is Provider.LOCAL and offered:
                    await self._drain_local(chunks, reply, on_chunk, [tool.name for tool in offered])
                else:
                    await self._drain(chunks, reply, on_chunk)
        except Exception as error:
            raise explain(error, self.config) from error
        self._check(reply)

    async def _drain(self, chunks: AsyncGenerator[Any, None], reply: ReplyBuilder, on_chunk: OnChunk) -> None:
        while True:
            try:
                async with asyncio.timeout(self.config.timeout):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise silent(self.config) from error
            on_chunk(reply.add(chunk))

    async def _drain_local(self, chunks: AsyncGenerator[Any, None], reply: ReplyBuilder, on_chunk: OnChunk, names: list[str]) -> None:
        """Hold text back while it may be a tool call that the model writes as JSON; show it if it was none."""
        held = ""

        def hold(text: str) -> None:
            nonlocal held
            if held or text:
                held += text
                if may_be_written_call(held):
                    text = ""
                else:
                    text, held = held, ""
            on_chunk(text)

        await self._drain(chunks, reply, hold)
        if held and not reply.adopt_written_call(names):
            on_chunk(held)

    def _chunks(self, history: ChatHistory, tools: Sequence[ToolSpec], conversation: str) -> AsyncGenerator[Any, None]:
        connection = self._connection
        settings = connection.settings(tools)
        if connection.begin is not None:
            connection.begin(conversation)
        chunks: AsyncGenerator[Any, None] = self._service.get_streaming_chat_message_contents(history, settings, kernel=_KERNEL)
        return chunks

    def _check(self, reply: ReplyBuilder) -> None:
        if not reply.chunks:
            raise no_reply(self.config)
        if reply.finish_reason is None:
            raise truncated(self.config)


def endpoint_of(model: RecordedModel, config: LLMConfig) -> ModelEndpoint:
    """A recorded model as telemetry names it."""
    return ModelEndpoint(provider=model.provider, model=model.name, address=model.address, port=model.port, config=config)


def create_backend(config: LLMConfig, environ: Mapping[str, str]) -> Backend:
    """A backend for ``config``; nothing is imported or opened before :meth:`Backend.open`."""
    return Backend(config, environ)
