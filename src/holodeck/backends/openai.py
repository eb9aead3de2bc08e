"""The ``openai`` provider: chat completions of OpenAI and of any server that speaks like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection, key_of, present, settings_with_tools
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.models.llm import LLMConfig, Provider

__all__ = ["TextBesideCalls", "connection_to", "openai_connection"]

_URL: Final = "https://api.openai.com/v1"
_FINISH_REASONS: Final = frozenset(reason.value for reason in FinishReason)


class TextBesideCalls:
    """Keeps an assistant's text beside its tool calls in the next request; Semantic Kernel drops it.

    Accepts any finish reason, and any token counts: for counts that mean nothing a good answer need not fail.
    """

    def _prepare_chat_history_for_request(self, chat_history: Any, role_key: str = "role", content_key: str = "content") -> Any:
        prepared = super()._prepare_chat_history_for_request(chat_history, role_key, content_key)  # type: ignore[misc]
        pairs = zip(prepared, chat_history.messages, strict=True)
        return [entry | {content_key: message.content} if "tool_calls" in entry and message.content else entry for entry, message in pairs]

    def _create_streaming_chat_message_content(self, chunk: Any, choice: Any, *rest: Any) -> Any:
        if choice.finish_reason is not None and choice.finish_reason not in _FINISH_REASONS:
            choice.finish_reason = FinishReason.STOP.value
        return super()._create_streaming_chat_message_content(chunk, choice, *rest)  # type: ignore[misc]

    def _get_metadata_from_streaming_chat_response(self, response: Any) -> Any:
        if response.usage is not None:  # read from the chunk itself, see ReplyBuilder
            response = response.model_copy(update={"usage": None})
        return super()._get_metadata_from_streaming_chat_response(response)  # type: ignore[misc]


class _OpenAI(TextBesideCalls, OpenAIChatCompletion):
    """OpenAI chat completions."""


def openai_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to OpenAI, or to the compatible ``endpoint``."""
    del environ
    return connection_to(config, config.endpoint or _URL, key_of(config))


def connection_to(config: LLMConfig, url: str, key: str, *, through_proxy: bool = True) -> Connection:
    """A connection to an OpenAI-compatible server at ``url``; ``through_proxy``: the environment's proxy settings count."""
    http = DefaultAsyncHttpxClient(trust_env=through_proxy, timeout=None)
    client = AsyncOpenAI(api_key=key, base_url=url, organization="", project="", max_retries=0, timeout=None, http_client=http)
    service = _OpenAI(ai_model_id=config.name or "model", async_client=client, env_file_path=NO_ENV_FILE)
    # OpenAI's reasoning models refuse max_tokens; compatible servers often know nothing else.
    limit = "max_tokens" if config.endpoint or config.provider is Provider.LOCAL else "max_completion_tokens"
    values = present(temperature=config.temperature, top_p=config.top_p, **{limit: config.max_tokens})
    return Connection(service, lambda tools: settings_with_tools(OpenAIChatPromptExecutionSettings(**values), tools), url, [client.close])
