"""Anthropic through Semantic Kernel's connector, with the token counts and stop reasons that the connector drops."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from anthropic import AsyncAnthropic
from anthropic.types import RawMessageStartEvent
from semantic_kernel.connectors.ai.anthropic import AnthropicChatCompletion, AnthropicChatPromptExecutionSettings
from semantic_kernel.contents import AuthorRole, StreamingChatMessageContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection, settings_with_tools
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["anthropic_connection"]

_URL: Final = "https://api.anthropic.com"
_MAX_TOKENS: Final = 4096  # Anthropic requires a limit
_KNOWN_STOPS: Final = ("end_turn", "max_tokens", "tool_use")


class _Anthropic(AnthropicChatCompletion):
    async def _send_chat_stream_request(
        self, settings: AnthropicChatPromptExecutionSettings, function_invoke_attempt: int = 0
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        async with self.async_client.messages.stream(**settings.prepare_settings_dict()) as stream:
            async for event in stream:
                if isinstance(event, RawMessageStartEvent):
                    yield [self._opening(event)]
                elif event.type in ("text", "message_delta") or (
                    event.type == "content_block_stop" and event.content_block.type == "tool_use"
                ):
                    yield [self._content(event, function_invoke_attempt)]

    def _opening(self, event: Any) -> StreamingChatMessageContent:
        # The start event alone has the message's id, model and input tokens; the connector keeps it to itself.
        return StreamingChatMessageContent(role=AuthorRole.ASSISTANT, choice_index=0, items=[], inner_content=event, ai_model_id=self.ai_model_id)

    def _content(self, event: Any, attempt: int) -> StreamingChatMessageContent:
        if event.type == "message_delta" and event.delta.stop_reason not in _KNOWN_STOPS:
            known = event.model_copy(update={"delta": event.delta.model_copy(update={"stop_reason": "end_turn"})})
            content = self._create_streaming_chat_message_content(known, {}, attempt)
            if event.delta.stop_reason == "refusal":
                content.finish_reason = FinishReason.CONTENT_FILTER
            return content
        return self._create_streaming_chat_message_content(event, {}, attempt)


def anthropic_connection(config: LLMConfig, key: str) -> Connection:
    """A connection to Anthropic, or a compatible ``endpoint``."""
    url = config.endpoint or _URL
    client = AsyncAnthropic(api_key=key, auth_token=None, base_url=url, max_retries=0, timeout=None)
    service = _Anthropic(ai_model_id=config.name, api_key=key, async_client=client, env_file_path=NO_ENV_FILE)
    values: dict[str, Any] = {"max_tokens": config.max_tokens or _MAX_TOKENS}
    values |= {k: v for k, v in (("temperature", config.temperature), ("top_p", config.top_p)) if v is not None}

    def settings(tools: Sequence[ToolSpec]) -> Any:
        return settings_with_tools(AnthropicChatPromptExecutionSettings(**values), tools)

    return Connection(service, settings, url, [client.close])
