"""The ``scripted`` provider: a Semantic Kernel connector that says what a script says.

Deterministic, without key and network; used by tests, CI, demonstrations and the documentation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final
from uuid import uuid4

from pydantic import PrivateAttr
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.connectors.ai.function_calling_utils import update_settings_from_function_call_configuration
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import AuthorRole, ChatHistory, FunctionCallContent, StreamingChatMessageContent, StreamingTextContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection, settings_with_tools
from holodeck.backends.script import Fault, Reply, Script, load_script
from holodeck.errors import BackendError
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["scripted_connection"]

_CONVERSATION: ContextVar[str] = ContextVar("conversation", default="")
_FOREVER: Final = 3600.0


class ScriptedFault(Exception):
    """A fault of the script, with what a provider's client would carry."""

    def __init__(self, message: str, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.status_code, self.code, self.message = status, code, message


class APIConnectionError(ScriptedFault):
    """A broken connection, under the name that the providers' clients give it."""


class APIError(ScriptedFault):
    """An error event in the stream, under the name that the providers' clients give it."""


class ScriptedSettings(PromptExecutionSettings):
    """Settings of a scripted request."""

    tools: list[dict[str, Any]] | None = None
    tool_choice: Any | None = None


class ScriptedChatCompletion(ChatCompletionClientBase):
    """A connector that reads its replies from a script; each conversation has its own place in it."""

    SUPPORTS_FUNCTION_CALLING: ClassVar[bool] = True
    script: Script
    _used: dict[str, set[int]] = PrivateAttr(default_factory=dict)

    def get_prompt_execution_settings_class(self) -> type[PromptExecutionSettings]:
        """Settings that can hold tools."""
        return ScriptedSettings

    def _update_function_choice_settings_callback(self) -> Callable[..., None]:
        callback: Callable[..., None] = update_settings_from_function_call_configuration
        return callback

    def _reset_function_choice_settings(self, settings: Any) -> None:
        settings.tools = settings.tool_choice = None

    async def _inner_get_streaming_chat_message_contents(
        self,
        chat_history: ChatHistory,
        settings: PromptExecutionSettings,  # noqa: ARG002 - Semantic Kernel's signature
        function_invoke_attempt: int = 0,  # noqa: ARG002 - as above
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        reply = self._choose(chat_history)
        await asyncio.sleep(reply.delay)
        for number, chunk in enumerate(self._chunks(reply)):
            if reply.fault and number >= reply.fault.after:
                break
            if number:
                await asyncio.sleep(reply.chunk_delay)
            yield [chunk]
        if reply.fault is not None:
            await _fail(reply.fault)

    def _choose(self, history: ChatHistory) -> Reply:
        users = [n for n, m in enumerate(history.messages) if m.role is AuthorRole.USER]
        last = users[-1] if users else -1
        rounds = 1 + sum(m.role is AuthorRole.ASSISTANT for m in history.messages[last + 1 :])
        text = history.messages[last].content if users else ""
        reply = self.script.choose(self._used.setdefault(_CONVERSATION.get(), set()), text, rounds)
        if reply is None:
            raise BackendError(
                f"the script has no reply left for request {rounds} of this turn: add one to its 'replies'",
                error_type="script_exhausted",
                summary="the script has no reply left",
            )
        return reply

    def _chunks(self, reply: Reply) -> list[StreamingChatMessageContent]:
        identity = f"scripted-{uuid4().hex[:12]}"
        chunks = [self._chunk([StreamingTextContent(choice_index=0, text=piece)], identity) for piece in reply.pieces]
        for index, call in enumerate(reply.tool_calls):
            arguments: Any = call.raw if call.raw is not None else call.arguments
            item = FunctionCallContent(
                id=call.id or f"call_{index + 1}", index=index, name=call.name, function_name=call.name, arguments=arguments
            )
            chunks.append(self._chunk([item], identity))
        chunks.append(self._last(reply, identity))
        return chunks

    def _last(self, reply: Reply, identity: str) -> StreamingChatMessageContent:
        reason = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
        usage = _usage(reply)
        return self._chunk([], identity, finish_reason=FinishReason(reason), metadata={"usage": usage} if usage else {})

    def _chunk(self, items: list[Any], identity: str, **more: Any) -> StreamingChatMessageContent:
        inner = _Identity(identity, self.ai_model_id)
        return StreamingChatMessageContent(
            role=AuthorRole.ASSISTANT, choice_index=0, items=items, ai_model_id=self.ai_model_id, inner_content=inner, **more
        )


class _Identity:
    """What a provider's chunk carries beside its content."""

    def __init__(self, identity: str, model: str) -> None:
        self.id, self.model = identity, model


def _usage(reply: Reply) -> CompletionUsage | None:
    if reply.usage is None:
        return None
    counts: dict[str, Any] = {"prompt_tokens": reply.usage.prompt_tokens, "completion_tokens": reply.usage.completion_tokens}
    if reply.usage.cached_tokens is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": reply.usage.cached_tokens}
    if reply.usage.reasoning_tokens is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": reply.usage.reasoning_tokens}
    return CompletionUsage.model_validate(counts)


async def _fail(fault: Fault) -> None:
    if fault.status is not None:
        raise ScriptedFault("scripted fault", fault.status)
    match fault.kind:
        case "timeout":
            await asyncio.sleep(_FOREVER)
        case "reset":
            raise APIConnectionError("Connection error.") from ConnectionResetError("connection reset by peer")
        case "error_event":
            raise APIError("scripted error event")
        case "context_overflow":
            raise ScriptedFault("maximum context length exceeded", 400, "context_length_exceeded")
        case "html":
            raise ScriptedFault("Expecting value: line 1 column 1 (char 0): not JSON")
        case _:  # truncated: the stream just ends
            return


def scripted_connection(config: LLMConfig) -> Connection:
    """A connection to the script of ``config``.

    Raises:
        AgentFileError: The script is wrong.
    """
    assert config.script is not None
    service = ScriptedChatCompletion(
        ai_model_id=config.name or config.script.stem, service_id="scripted", script=load_script(config.script)
    )

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        return settings_with_tools(ScriptedSettings(), tools)

    def begin(conversation: str) -> None:
        _CONVERSATION.set(conversation)

    return Connection(service, settings, begin=begin)
