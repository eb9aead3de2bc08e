"""The ``scripted`` provider: a Semantic Kernel connector that says what a script says.

Deterministic, without key and network; used by tests, CI, demonstrations and the documentation.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from pydantic import PrivateAttr
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import AuthorRole, ChatHistory, FunctionCallContent, StreamingChatMessageContent, StreamingTextContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.connectors import Connection
from holodeck.backends.expectation import ModelRequest, request_of, text_difference
from holodeck.backends.script import REQUEST_DIFFERS, SCRIPT_EXHAUSTED, Fault, Recorded, Reply, Script, ScriptedUsage, load_script
from holodeck.errors import BackendError
from holodeck.lib.validation import shorten
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["scripted_connection"]

_CONVERSATION: ContextVar[str] = ContextVar("conversation", default="")
_TOOLS: ContextVar[Sequence[ToolSpec]] = ContextVar("tools", default=())
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


class ScriptedChatCompletion(ChatCompletionClientBase):
    """A connector that reads its replies from a script; each conversation has its own place in it."""

    script: Script
    _used: dict[str, set[int]] = PrivateAttr(default_factory=dict)
    _answers: Iterator[int] = PrivateAttr(default_factory=lambda: itertools.count(1))

    async def _inner_get_streaming_chat_message_contents(
        self,
        chat_history: ChatHistory,
        settings: PromptExecutionSettings,  # noqa: ARG002 - Semantic Kernel's signature
        function_invoke_attempt: int = 0,  # noqa: ARG002 - as above
    ) -> AsyncGenerator[list[StreamingChatMessageContent], None]:
        reply = self._reply(request_of(chat_history, _TOOLS.get()))
        await asyncio.sleep(reply.delay)
        for number, chunk in enumerate(self._chunks(reply)):
            if reply.fault and number >= reply.fault.after:
                break
            if number:
                await asyncio.sleep(reply.chunk_delay)
            yield [chunk]
        if reply.fault is not None:
            await _fail(reply.fault)

    def _reply(self, request: ModelRequest) -> Reply:
        recorded = self.script.recorded
        redact = recorded.redact if recorded else str
        number = self.script.choose(self._used.setdefault(_CONVERSATION.get(), set()), redact(request.user), request.round)
        if number is None:
            raise _exhausted(self.script, request)
        reply = self.script.replies[number]
        differences = [*_recorded_differences(recorded, request), *(reply.expect.differences(request, redact) if reply.expect else ())]
        if differences:
            raise _differs(self.script.place(number), differences)
        return reply

    def _chunks(self, reply: Reply) -> list[StreamingChatMessageContent]:
        identity = _Identity(reply.id or f"scripted-{next(self._answers)}", reply.model or self.ai_model_id, _cache_usage(reply))
        chunks = [self._chunk([StreamingTextContent(choice_index=0, text=piece)], identity) for piece in reply.pieces]
        for index, call in enumerate(reply.tool_calls):
            arguments: Any = call.raw if call.raw is not None else call.arguments
            item = FunctionCallContent(
                id=call.id or f"call_{index + 1}", index=index, name=call.name, function_name=call.name, arguments=arguments
            )
            chunks.append(self._chunk([item], identity))
        chunks.append(self._last(reply, identity))
        return chunks

    def _last(self, reply: Reply, identity: _Identity) -> StreamingChatMessageContent:
        reason = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
        usage = _usage(reply)
        return self._chunk([], identity, finish_reason=FinishReason(reason), metadata={"usage": usage} if usage else {})

    def _chunk(self, items: list[Any], identity: _Identity, **more: Any) -> StreamingChatMessageContent:
        return StreamingChatMessageContent(
            role=AuthorRole.ASSISTANT, choice_index=0, items=items, ai_model_id=self.ai_model_id, inner_content=identity, **more
        )


class _Identity:
    """What a provider's chunk carries beside its content."""

    def __init__(self, identity: str, model: str, usage: Any = None) -> None:
        self.id, self.model, self.usage = identity, model, usage


class _CacheUsage:
    """Token counts in Anthropic's form, the only one that knows what was written to a cache."""

    def __init__(self, usage: ScriptedUsage) -> None:
        self.output_tokens = usage.completion_tokens
        self.cache_read_input_tokens, self.cache_creation_input_tokens = usage.cached_tokens, usage.cache_write_tokens
        self.input_tokens = max(usage.prompt_tokens - (usage.cached_tokens or 0) - (usage.cache_write_tokens or 0), 0)


def _cache_usage(reply: Reply) -> _CacheUsage | None:
    return _CacheUsage(reply.usage) if reply.usage is not None and reply.usage.cache_write_tokens is not None else None


def _exhausted(script: Script, request: ModelRequest) -> BackendError:
    what = f"{script.place()}: the script has no reply left for request {request.round} of this turn ({shorten(request.user, 60)!r})"
    return BackendError(
        f"{what}: add one to its 'replies'", error_type=SCRIPT_EXHAUSTED, summary="the script has no reply left for the request"
    )


def _differs(place: str, differences: list[str]) -> BackendError:
    return BackendError(
        "\n".join([f"{place}: the request is not the one that this reply expects", *differences]),
        error_type=REQUEST_DIFFERS,
        summary="the request is not the one that the script expects",
    )


def _recorded_differences(recorded: Recorded | None, request: ModelRequest) -> Iterator[str]:
    """How the system prompt and the tools differ from when the recording was made."""
    if recorded is None:
        return
    if request.instructions is not None and (now := recorded.redact(request.instructions)) != (recorded.instructions or ""):
        yield f"instructions:\n{text_difference(recorded.instructions or '', now)}"
    before = {tool.name: tool for tool in recorded.tools}
    for tool in request.tools:
        if tool.name in before and (old := _definition(before[tool.name])) != (new := _definition(recorded.hide(tool))):
            yield f"tool {tool.name}:\n{text_difference(old, new)}"


@functools.lru_cache(maxsize=256)
def _written(definition: bytes) -> str:
    return json.dumps(json.loads(definition), indent=1, sort_keys=True, ensure_ascii=False)


def _definition(tool: ToolSpec) -> str:
    return _written(tool.model_dump_json(include={"description", "parameters"}).encode())


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
    if fault.error_type is not None:
        raise BackendError(fault.message, error_type=fault.error_type, summary="the provider failed when this was recorded")
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


def scripted_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to the script of ``config``.

    Raises:
        AgentFileError: The script is wrong.
    """
    del environ
    assert config.script is not None
    service = ScriptedChatCompletion(
        ai_model_id=config.name or config.script.stem, service_id="scripted", script=load_script(config.script)
    )

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        _TOOLS.set(tools)  # a script needs no provider's form of them
        return PromptExecutionSettings()

    def begin(conversation: str) -> None:
        _CONVERSATION.set(conversation)

    return Connection(service, settings, begin=begin)
