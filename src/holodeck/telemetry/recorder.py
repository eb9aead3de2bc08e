"""Spans and metrics of a turn: the only door through which the rest of HoloDeck records.

A recorder takes values of ``holodeck.models`` and writes what the GenAI conventions and :mod:`holodeck.telemetry.semconv` say. Spans end on
every way out; the exception goes on unchanged. A recorder is never kept attached across a ``yield``: a turn runs as one coroutine in a task
of its own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, format_trace_id
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.invocation import GenAIInvocation, InferenceInvocation, LocalAgentInvocation, ToolInvocation
from opentelemetry.util.genai.types import Error

from holodeck.errors import HoloDeckError, ToolDenied
from holodeck.models.chat import ChatSession, Message
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelEndpoint, ModelReply, ToolCall
from holodeck.models.tool_execution import ToolExecution, ToolSpec
from holodeck.telemetry import semconv as names
from holodeck.telemetry.gate import Gate

__all__ = ["RequestRecorder", "ToolRecorder", "TurnRecorder"]

Messages = Sequence[dict[str, Any]]
Opened = Callable[[Span], None]
"""Told of a span that has just been started and has its first attributes."""
_REASON: Final = re.compile("[a-z][a-z0-9_]{0,39}")
_UNKNOWN_TOOL: Final = "_OTHER"
"""As ``http.request.method`` says it of a method that nobody knows: a name of low cardinality."""


class _Recorder:
    """One span: described by a subclass, ended exactly once, by :meth:`__exit__` at the latest."""

    def __init__(self, invocation: GenAIInvocation, gate: Gate, opened: Opened | None) -> None:
        self._invocation, self._gate, self._opened = invocation, gate, opened
        self._failure: Error | None = None

    def __enter__(self) -> Self:
        try:
            self._describe()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _describe(self) -> None:
        """Set what is known at the beginning."""
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.failed(error)
        if self._failure is not None:
            self._invocation.fail(self._failure)
        else:
            self._invocation.stop()

    def failed(self, error: BaseException) -> None:
        """The operation failed: ``error.type`` and a fixed sentence; the exception's own text only while the gate is open."""
        error_type, summary = describe(error)
        text = self._gate.text(str(error)) if not isinstance(error, asyncio.CancelledError) else None
        self._failure = Error(message=text or summary, type=self._gate.label(error_type))

    @property
    def traceparent(self) -> str:
        """The span's context in W3C form."""
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, self._invocation.context)
        return carrier.get("traceparent", "")

    @property
    def recording(self) -> bool:
        """Whether anything is recorded at all; False when telemetry is switched off."""
        return self._invocation.span.is_recording()

    def _open(self, first: Mapping[str, str]) -> None:
        """Set what is known of the span already, and tell ``opened``; otherwise the helper sets it at the end, which a crash never sees."""
        if self._opened is not None and self.recording:
            self._invocation.span.set_attributes({**first, **self._invocation.attributes})
            self._opened(self._invocation.span)

    def _put(self, name: str, value: Any) -> None:
        if value is not None:
            self._invocation.attributes[name] = value


def describe(error: BaseException) -> tuple[str, str]:
    """``error.type`` and a fixed sentence for ``error``; neither contains user data."""
    if isinstance(error, HoloDeckError):
        return error.error_type, error.summary
    if isinstance(error, asyncio.CancelledError):
        reason = error.args[0] if error.args else None  # whoever cancels may say anything
        return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else "cancelled", "stopped before its end"
    return type(error).__name__, "an unexpected error"


class RequestRecorder(_Recorder):
    """A ``chat`` span: one request to a model.

    Args:
        handler: Emits the span.
        gate: What may enter it.
        endpoint: Which model is asked.
        messages: The conversation as the conventions' messages; asked for only while the gate is open.
        tools: The tools that are offered; written only while the gate is open.
        opened: Told of the span.
    """

    _invocation: InferenceInvocation

    def __init__(
        self,
        handler: TelemetryHandler,
        gate: Gate,
        endpoint: ModelEndpoint,
        messages: Callable[[], Messages],
        tools: Sequence[ToolSpec],
        opened: Opened | None = None,
    ) -> None:
        invocation = handler.inference(
            gate.label(endpoint.provider),
            request_model=gate.label(endpoint.model),
            server_address=gate.label(endpoint.address) if endpoint.address else None,
            server_port=endpoint.port,
        )
        super().__init__(invocation, gate, opened)
        self._model, self._messages, self._tools = endpoint.config, messages, tools

    def _describe(self) -> None:
        invocation = self._invocation
        invocation.request_stream = True
        invocation.temperature, invocation.top_p = self._model.temperature, self._model.top_p
        invocation.max_tokens = self._model.max_tokens
        if self._gate.open:
            self._put_request(self._messages(), self._tools)
        self._open({names.CONVERSATION: invocation.conversation_id} if invocation.conversation_id else {})

    def _put_request(self, messages: Messages, tools: Sequence[ToolSpec]) -> None:
        system = [part for m in messages if m["role"] == "system" for part in m["parts"]]
        self._put(names.SYSTEM_INSTRUCTIONS, self._gate.structure(system) if system else None)
        self._put(names.INPUT_MESSAGES, self._gate.structure([m for m in messages if m["role"] != "system"]))
        offered = [{"type": "function", **tool.model_dump(include={"name", "description", "parameters"})} for tool in tools]
        self._put(names.TOOL_DEFINITIONS, self._gate.structure(offered) if offered else None)

    def first_chunk(self) -> None:
        """The first chunk arrived. Later chunks are not recorded one by one: a turn's cost must not grow with their number."""
        self._invocation.record_stream_chunk()

    def answered(self, reply: ModelReply) -> None:
        """What came back, whole or (before a failure) in part."""
        invocation, gate = self._invocation, self._gate
        invocation.finish_reasons = [gate.label(reply.finish_reason)] if reply.finish_reason else None
        invocation.response_id = gate.identifier(reply.response_id) if reply.response_id else None
        invocation.response_model_name = gate.label(reply.response_model) if reply.response_model else None
        self._put_usage(reply)
        if gate.open:
            self._put(names.OUTPUT_MESSAGES, gate.structure([_output_message(reply)]))

    def _put_usage(self, reply: ModelReply) -> None:
        usage = reply.usage
        if usage is None:
            return
        self._invocation.input_tokens, self._invocation.output_tokens = usage.prompt_tokens, usage.completion_tokens
        # Set here and not through the helper, which drops a reported 0.
        self._put(names.CACHE_READ_TOKENS, usage.cached_tokens)
        self._put(names.CACHE_WRITE_TOKENS, usage.cache_write_tokens)
        self._put(names.REASONING_TOKENS, usage.reasoning_tokens)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._invocation.finish_reasons = ["error"]
        if self._invocation.input_tokens is None:
            self._put(names.USAGE_UNAVAILABLE, True)  # noqa: FBT003 - an attribute's value
        super().__exit__(kind, error, trace)


class ToolRecorder(_Recorder):
    """An ``execute_tool`` span: one tool execution.

    Args:
        handler: Emits the span.
        gate: What may enter it.
        agent: The agent's name.
        call: What the model called.
        spec: The tool; None if the agent has no such tool. Then the name is the model's own text: it is content, and no name for a span
            or a metric.
        opened: Told of the span.
    """

    _invocation: ToolInvocation

    def __init__(
        self, handler: TelemetryHandler, gate: Gate, agent: str, call: ToolCall, spec: ToolSpec | None, opened: Opened | None = None
    ) -> None:
        name = gate.label(spec.name) if spec else _UNKNOWN_TOOL
        invocation = handler.tool(name, tool_type=spec.type if spec else "function", agent_name=gate.label(agent))
        super().__init__(invocation, gate, opened)
        self._call, self._spec = call, spec

    def _describe(self) -> None:
        call_id = self._invocation.tool_call_id = self._gate.identifier(self._call.id)
        if self._spec is None:
            self._put(names.TOOL_ORIGINAL, self._gate.text(self._call.name))
        elif self._spec.description:
            self._invocation.tool_description = self._gate.label(self._spec.description)
        self._open({names.TOOL_CALL_ID: call_id})

    def finished(self, execution: ToolExecution) -> None:
        """How it ended: status, seconds, and (gate open) arguments and result."""
        denied = self._failure is not None and self._failure.type == ToolDenied.error_type
        self._put(names.TOOL_STATUS, "denied" if denied else execution.status.value)
        self._put(names.TOOL_TIME, execution.execution_time)
        self._put(names.TOOL_CALL_ARGUMENTS, self._gate.structure(execution.parameters))
        if execution.result is not None:
            self._put(names.TOOL_CALL_RESULT, self._gate.text(execution.result))


class TurnRecorder(_Recorder):
    """An ``invoke_agent`` span: the root of a turn's trace.

    Args:
        handler: Emits the span.
        gate: What may enter it.
        session: The conversation.
        number: 1-based number of the turn.
        message: The user's message.
        previous: The root of the turn before, to be linked.
        opened: Told of this span and of each below it.
    """

    _invocation: LocalAgentInvocation

    def __init__(
        self,
        handler: TelemetryHandler,
        gate: Gate,
        session: ChatSession,
        number: int,
        message: Message,
        previous: SpanContext | None,
        opened: Opened | None = None,
    ) -> None:
        agent = session.agent_config
        invocation = handler.invoke_local_agent(
            agent_name=gate.label(agent.name),
            request_model=gate.label(agent.model.title),
            conversation_id=str(session.session_id),
            context=Context(),  # a turn is a trace of its own, whatever span its caller is in
        )
        super().__init__(invocation, gate, opened)
        self._handler, self._session, self._number, self._message, self._previous = handler, session, number, message, previous

    def _describe(self) -> None:
        self._put(names.TURN_NUMBER, self._number)
        self._put_opening(self._message)
        if self._previous is not None:
            self._invocation.span.add_link(self._previous, {names.LINK_TYPE: "previous_turn"})
        self._open({names.CONVERSATION: str(self._session.session_id)})

    def _put_opening(self, message: Message) -> None:
        if description := self._session.agent_config.description:
            self._invocation.agent_description = self._gate.label(description)
        self._put(names.MESSAGE_ROLE, message.role.value)
        self._put(names.MESSAGE_LENGTH, len(message.content))
        self._put(names.INPUT_MESSAGES, self._gate.structure([_text_message("user", message.content)]))

    @property
    def context(self) -> SpanContext:
        """The root span's context, for the next turn's link."""
        return self._invocation.span.get_span_context()

    @property
    def trace_id(self) -> str:
        """32 hex digits."""
        return format_trace_id(self.context.trace_id)

    def request(self, endpoint: ModelEndpoint, messages: Callable[[], Messages], tools: Sequence[ToolSpec]) -> RequestRecorder:
        """A request to a model begins; its span is a child of the current one."""
        return RequestRecorder(self._handler, self._gate, endpoint, messages, tools, self._opened)

    def tool(self, call: ToolCall, spec: ToolSpec | None) -> ToolRecorder:
        """A tool execution begins; ``spec`` is None for a tool that is not configured."""
        return ToolRecorder(self._handler, self._gate, self._session.agent_config.name, call, spec, self._opened)

    def finished(self, result: TurnResult) -> None:
        """The turn's totals; usage stands on ``chat`` spans only, so that a sum over all spans never doubles."""
        self._put(names.TURN_REQUESTS, result.model_requests)
        self._put(names.TURN_TOOLS, len(result.tool_calls))
        self._put(names.TURN_COST, result.cost_usd)
        self._put(names.SESSION_STATE, self._session.state.value)
        self._put(names.SESSION_MESSAGES, self._session.message_count)
        if result.usage is not None:
            self._put(names.TURN_INPUT, result.usage.prompt_tokens)
            self._put(names.TURN_OUTPUT, result.usage.completion_tokens)
        elif result.model_requests:
            self._put(names.USAGE_UNAVAILABLE, True)  # noqa: FBT003 - an attribute's value
        if result.message is not None:
            self._put(names.ANSWER_LENGTH, len(result.message.content))
            self._put(names.OUTPUT_MESSAGES, self._gate.structure([_text_message("assistant", result.message.content)]))


def _text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _output_message(reply: ModelReply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": reply.text}] if reply.text else []
    parts += [{"type": "tool_call", "id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls]
    return {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason or "error"}
