"""Anthropic through Semantic Kernel's connector, with a stream of our own.

The connector's stream keeps the start event (id, model, input and cache tokens) to itself, fails on stop reasons that it does not know, and
delivers a tool call only when it is complete. The raw events carry all of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from anthropic import AsyncAnthropic
from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion, AnthropicChatPromptExecutionSettings
from semantic_kernel.contents import AuthorRole, FunctionCallContent, StreamingChatMessageContent, StreamingTextContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection, key_of, present, settings_with_tools
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["anthropic_connection"]

_URL: Final = "https://api.anthropic.com"
_MAX_TOKENS: Final = 4096  # Anthropic requires a limit
_FINISH: Final = {"max_tokens": FinishReason.LENGTH, "tool_use": FinishReason.TOOL_CALLS, "refusal": FinishReason.CONTENT_FILTER}


class _Anthropic(AnthropicChatCompletion):
    async def _send_chat_stream_request(
        self,
        settings: AnthropicChatPromptExecutionSettings,
        function_invoke_attempt: int = 0,  # noqa: ARG002 - Semantic Kernel's signature
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        stream = await self.async_client.messages.create(**(settings.prepare_settings_dict() | {"stream": True}))
        async for event in stream:
            if event.type not in ("content_block_stop", "message_stop"):
                yield [self._content(event)]

    def _content(self, event: Any) -> StreamingChatMessageContent:
        reason = event.delta.stop_reason if event.type == "message_delta" else None
        return StreamingChatMessageContent(
            role=AuthorRole.ASSISTANT,
            choice_index=0,
            items=_items(event),
            inner_content=event,
            ai_model_id=self.ai_model_id,
            finish_reason=_FINISH.get(reason, FinishReason.STOP) if reason else None,
        )


def _items(event: Any) -> list[Any]:
    if event.type == "content_block_start" and event.content_block.type == "tool_use":
        block = event.content_block
        return [FunctionCallContent(id=block.id, index=event.index, name=block.name, function_name=block.name)]
    if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
        return [FunctionCallContent(index=event.index, function_name="", arguments=event.delta.partial_json)]
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        return [StreamingTextContent(choice_index=0, text=event.delta.text)]
    return []


def anthropic_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to Anthropic, or a compatible ``endpoint``."""
    del environ
    url, key = config.endpoint or _URL, key_of(config)
    client = AsyncAnthropic(api_key=key, auth_token=None, base_url=url, max_retries=0, timeout=None)
    service = _Anthropic(ai_model_id=config.name, api_key=key, async_client=client, env_file_path=NO_ENV_FILE)
    values = present(max_tokens=config.max_tokens or _MAX_TOKENS, temperature=config.temperature, top_p=config.top_p)

    def settings(tools: Sequence[ToolSpec]) -> Any:
        return settings_with_tools(AnthropicChatPromptExecutionSettings(**values), tools)

    return Connection(service, settings, url, [client.close])
