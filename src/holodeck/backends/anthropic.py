"""Anthropic through Semantic Kernel's connector, with a stream of our own.

The connector's stream keeps the start event (id, model, input and cache tokens) to itself, fails on stop reasons that it does not know, and
delivers a tool call only when it is complete. The raw events carry all of it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
from anthropic._streaming import ServerSentEvent
from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion, AnthropicChatPromptExecutionSettings
from semantic_kernel.contents import FunctionCallContent, StreamingChatMessageContent, StreamingTextContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection, http_client, key_of, present, settings_with_tools
from holodeck.backends.events import EventReader, field_of, text_of
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.backends.openai_stream import chunk_of
from holodeck.backends.places import base_of
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec
from holodeck.version import __version__

__all__ = ["anthropic_connection"]

_URL: Final = "https://api.anthropic.com"
_MAX_TOKENS: Final = 4096  # Anthropic requires a limit
_FINISH: Final = {
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.CONTENT_FILTER,
}


class _Client(AsyncAnthropic):
    @property
    def user_agent(self) -> str:
        """Who asks."""
        return f"holodeck/{__version__}"

    def _make_sse_decoder(self) -> Any:
        return EventReader(super()._make_sse_decoder(), ServerSentEvent, named=True)


class _Anthropic(AnthropicChatCompletion):
    async def _send_chat_stream_request(
        self,
        settings: AnthropicChatPromptExecutionSettings,
        function_invoke_attempt: int = 0,  # noqa: ARG002 - Semantic Kernel's signature
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        stream = await self.async_client.messages.create(**(settings.prepare_settings_dict() | {"stream": True}))
        blocks = _Blocks()
        async for event in stream:
            kind = field_of(event, "type")
            if kind not in _READ:
                continue
            message = field_of(event, "message") if kind == "message_start" else event
            reason = field_of(field_of(event, "delta") if kind == "message_delta" else message, "stop_reason")
            finish = _FINISH.get(str(reason), FinishReason.STOP) if reason else None
            items = _READ[kind](blocks, event)
            yield chunk_of(self.ai_model_id, items, finish=finish, source=message, usage=field_of(message, "usage"))


class _Blocks:
    """The blocks of one message: each tool call is numbered, and only what belongs to one is taken for its arguments."""

    def __init__(self) -> None:
        self._open: dict[Any, int] = {}
        self._input: dict[Any, str] = {}
        self._count = 0

    def nothing(self, event: Any) -> list[Any]:
        """An event that holds no part of the answer."""
        del event
        return []

    def start(self, event: Any) -> list[Any]:
        """A block begins."""
        return self._block(field_of(event, "index"), field_of(event, "content_block"))

    def _block(self, index: Any, block: Any) -> list[Any]:
        self._open.pop(index, None)
        self._input.pop(index, None)
        kind, given = field_of(block, "type"), field_of(block, "input")
        if kind == "text":
            return _text(field_of(block, "text"))
        if kind != "tool_use":  # thinking, tools that the provider runs itself, and what is still to come
            return []
        number = self._open[index] = self._count
        self._count += 1
        if given:
            self._input[index] = given if isinstance(given, str) else json.dumps(given)
        name, identity = field_of(block, "name") or "", field_of(block, "id")
        return [FunctionCallContent(id=identity or None, index=number, name=name or None, function_name=name)]

    def delta(self, event: Any) -> list[Any]:
        """A part of a block."""
        index, delta = field_of(event, "index"), field_of(event, "delta")
        if field_of(delta, "type") == "text_delta":
            return _text(field_of(delta, "text"))
        partial = field_of(delta, "partial_json")
        if index not in self._open or not isinstance(partial, str) or not partial:
            return []
        self._input.pop(index, None)  # the arguments come in parts, and what the start said was a placeholder
        return [self._arguments(index, partial)]

    def stop(self, event: Any) -> list[Any]:
        """A block ends; arguments that came with its start, and in no other way, are complete."""
        index = field_of(event, "index")
        given = self._input.pop(index, None)
        return [] if given is None else [self._arguments(index, given)]

    def whole(self, event: Any) -> list[Any]:
        """A message in one piece, from a server that does not stream."""
        content = field_of(event, "content")
        items: list[Any] = []
        for index, block in enumerate(content if isinstance(content, list) else ()):
            items += self._block(index, block)
            items += self.stop({"index": index})
        return items

    def _arguments(self, index: Any, text: str) -> FunctionCallContent:
        return FunctionCallContent(index=self._open[index], function_name="", arguments=text)


_READ: Final = {
    "message_start": _Blocks.nothing,
    "content_block_start": _Blocks.start,
    "content_block_delta": _Blocks.delta,
    "content_block_stop": _Blocks.stop,
    "message_delta": _Blocks.nothing,
    "message": _Blocks.whole,
}


def _text(value: Any) -> list[Any]:
    text = text_of(value)
    return [StreamingTextContent(choice_index=0, text=text)] if text else []


def anthropic_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to Anthropic, or a compatible ``endpoint``."""
    del environ
    url, key = config.endpoint or _URL, key_of(config)
    base, query = base_of(url)
    http = http_client(DefaultAsyncHttpxClient)
    client = _Client(api_key=key, auth_token=None, base_url=base, default_query=query, max_retries=0, timeout=None, http_client=http)
    service = _Anthropic(ai_model_id=config.name, api_key=key, async_client=client, env_file_path=NO_ENV_FILE)
    values = present(max_tokens=config.max_tokens or _MAX_TOKENS, temperature=config.temperature, top_p=config.top_p)

    def settings(tools: Sequence[ToolSpec]) -> Any:
        return settings_with_tools(AnthropicChatPromptExecutionSettings(**values), tools)

    return Connection(service, settings, url, [client.close])
