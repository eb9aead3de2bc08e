"""The ``openai`` provider: chat completions of OpenAI and of any server that speaks like it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai._streaming import ServerSentEvent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import StreamingChatMessageContent

from holodeck.backends.connectors import Connection, http_client, key_of, present, settings_with_tools
from holodeck.backends.events import EventReader
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.backends.openai_stream import ChunkReader
from holodeck.backends.places import base_of
from holodeck.models.llm import LLMConfig, Provider
from holodeck.version import __version__

__all__ = ["AnyEvents", "ChatCompletions", "connection_to", "openai_connection"]

_URL: Final = "https://api.openai.com/v1"


class AnyEvents:
    """For a client of OpenAI's: names us, and reads a stream as compatible servers send it."""

    @property
    def user_agent(self) -> str:
        """Who asks."""
        return f"holodeck/{__version__}"

    def _make_sse_decoder(self) -> Any:
        return EventReader(super()._make_sse_decoder(), ServerSentEvent)  # type: ignore[misc]


class _Client(AnyEvents, AsyncOpenAI):
    """OpenAI's client."""


class ChatCompletions:
    """For a connector of Semantic Kernel's: keeps an assistant's text beside its tool calls in the next request, and reads any stream."""

    def _prepare_chat_history_for_request(self, chat_history: Any, role_key: str = "role", content_key: str = "content") -> Any:
        prepared = super()._prepare_chat_history_for_request(chat_history, role_key, content_key)  # type: ignore[misc]
        pairs = zip(prepared, chat_history.messages, strict=True)
        return [entry | {content_key: message.content} if "tool_calls" in entry and message.content else entry for entry, message in pairs]

    async def _inner_get_streaming_chat_message_contents(
        self,
        chat_history: Any,
        settings: Any,
        function_invoke_attempt: int = 0,  # noqa: ARG002 - Semantic Kernel's signature
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        connector: Any = self
        settings.stream, settings.stream_options = True, {"include_usage": True}
        settings.messages = self._prepare_chat_history_for_request(chat_history)
        settings.ai_model_id = settings.ai_model_id or connector.ai_model_id
        reader = ChunkReader(connector.ai_model_id)
        async for chunk in await connector._send_request(settings):  # noqa: SLF001 - the connector's own
            if (content := reader.read(chunk)) is not None:
                yield content


class _OpenAI(ChatCompletions, OpenAIChatCompletion):
    """OpenAI chat completions."""


def openai_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to OpenAI, or to the compatible ``endpoint``."""
    del environ
    return connection_to(config, config.endpoint or _URL, key_of(config))


def connection_to(config: LLMConfig, url: str, key: str, *, through_proxy: bool = True) -> Connection:
    """A connection to an OpenAI-compatible server at ``url``; ``through_proxy``: the environment's proxy settings count."""
    base, query = base_of(url)
    http = http_client(DefaultAsyncHttpxClient, trust_env=through_proxy)
    client = _Client(
        api_key=key, base_url=base, default_query=query, organization="", project="", max_retries=0, timeout=None, http_client=http
    )
    service = _OpenAI(ai_model_id=config.name or "model", async_client=client, env_file_path=NO_ENV_FILE)
    # OpenAI's reasoning models refuse max_tokens; compatible servers often know nothing else.
    limit = "max_tokens" if config.endpoint or config.provider is Provider.LOCAL else "max_completion_tokens"
    values = present(temperature=config.temperature, top_p=config.top_p, **{limit: config.max_tokens})
    return Connection(service, lambda tools: settings_with_tools(OpenAIChatPromptExecutionSettings(**values), tools), url, [client.close])
