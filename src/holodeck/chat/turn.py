"""One turn: the user's message, the model's requests, the tools' executions, the answer.

A turn is a coroutine that runs in a task of its own and hands its events to a callback. It is no generator on purpose: a span that is
attached across a ``yield`` leaks into the caller's context when the caller stops listening.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from holodeck.backends import Backend, pricing
from holodeck.backends.history import add_reply, add_results, as_messages, new_history, rewind
from holodeck.backends.reply import ReplyBuilder
from holodeck.chat.agent import Agent
from holodeck.errors import BackendError, HoloDeckError, ToolDenied, ToolError, ToolTimeout
from holodeck.lib.json_text import unwrapped
from holodeck.lib.validation import shorten, terminal_safe
from holodeck.models.chat import ChatSession, Message, MessageRole
from holodeck.models.cost import RequestUsage
from holodeck.models.events import TextDelta, ToolFinished, ToolStarted, TurnError, TurnEvent, TurnResult
from holodeck.models.exchange import ModelReply, ToolCall
from holodeck.models.llm import LLMConfig
from holodeck.models.token_usage import TokenUsage, total_usage
from holodeck.models.tool_execution import ToolExecution, ToolSpec
from holodeck.tools import CallContext

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext
    from semantic_kernel.contents import ChatHistory

    from holodeck.telemetry import RequestRecorder, TurnRecorder

__all__ = ["Approve", "Turn"]

Approve = Callable[[ToolExecution], Awaitable[bool]]
"""Asked before a tool runs that needs approval; True lets it run."""

_log = logging.getLogger(__name__)
_STOPPED = "stopped by the user"
_DENIED = "denied by the user"
_NOT_ASKED = "denied: it needs approval, and there is nobody to ask"
_NAMELESS = "(no name)"


@dataclass
class _Progress:
    """What a turn has done so far; read when it ends, however it ends."""

    shown: list[str] = field(default_factory=list)
    round_has_text: bool = False
    requests: list[RequestUsage] = field(default_factory=list)
    executions: list[ToolExecution] = field(default_factory=list)
    first_token: float | None = None
    streaming: ReplyBuilder | None = None
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.shown).strip()

    @property
    def usage(self) -> TokenUsage | None:
        return total_usage(request.usage for request in self.requests)


class Turn:
    """Runs one turn of a session.

    Args:
        agent: Who answers.
        session: The conversation; its history and message count are updated.
        number: 1-based number of the turn.
        message: The user's message.
        emit: Called with each event but the last.
        previous: Root span of the turn before.
        approve: Asked before a tool runs that needs approval; without it such calls are denied.
    """

    def __init__(
        self,
        agent: Agent,
        session: ChatSession,
        number: int,
        message: Message,
        emit: Callable[[TurnEvent], None],
        previous: SpanContext | None,
        approve: Approve | None = None,
    ) -> None:
        self._agent, self._session, self._number, self._message = agent, session, number, message
        self._emit, self._previous, self._approve = emit, previous, approve
        self._history: ChatHistory = session.history
        self._done = _Progress()
        self._start = perf_counter()
        self.context: SpanContext | None = None
        self.stop_reason = "cancelled"
        self._by_hand = False

    async def run(self) -> TurnResult:
        """Run the turn to its end; a failure or a cancellation is part of the result, not raised."""
        before = len(self._history.messages)

        async def converse(span: TurnRecorder) -> TurnResult:
            self._history.add_user_message(self._message.content)
            await self._rounds(span)
            return self._answered(before)

        return await self._recorded(before, converse)

    async def call(self, call: ToolCall) -> TurnResult:
        """Run one tool for the user and ask no model; the history stays as it is. Failures are part of the result, as with :meth:`run`."""

        async def use(span: TurnRecorder) -> TurnResult:
            self._by_hand, self._done.executions = True, [_execution(call)]
            await self._run_tool(span, call, 0)
            return self._result()

        return await self._recorded(len(self._history.messages), use)

    def never_begun(self) -> TurnResult:
        """The result of a turn that was stopped before its first step: nothing was recorded, and the history is as it was."""
        failure = TurnError(error_type=self.stop_reason, message="stopped before it began: the message is forgotten")
        return self._result(error=failure, interrupted=True)

    async def _recorded(self, before: int, work: Callable[[TurnRecorder], Awaitable[TurnResult]]) -> TurnResult:
        self._start = perf_counter()
        try:
            with self._agent.telemetry.turn(self._session, self._number, self._message, self._previous) as span:
                return await self._in_span(span, before, work)
        except Exception as error:  # noqa: BLE001 - telemetry that fails must not end the session either
            return self._failed(error, before)

    async def _in_span(self, span: TurnRecorder, before: int, work: Callable[[TurnRecorder], Awaitable[TurnResult]]) -> TurnResult:
        self.context = span.context
        try:
            result = await work(span)
        except asyncio.CancelledError:
            span.failed(self._stopped())
            result = self._interrupted(before)
        except Exception as error:  # noqa: BLE001 - a turn that fails must not end the session
            span.failed(error)
            result = self._failed(error, before)
        result = result.model_copy(update={"trace_id": span.trace_id if span.recording else None})
        span.finished(result)
        self._say(result)
        return result

    def _say(self, result: TurnResult) -> None:
        outcome = {"holodeck.turn.number": self._number, **({"error.type": result.error.error_type} if result.error else {})}
        level = logging.WARNING if result.error else logging.INFO
        words = "turn %d failed after %d model requests" if result.error else "turn %d answered with %d model requests"
        _log.log(level, words, self._number, result.model_requests, extra={"attributes": outcome})

    async def _rounds(self, span: TurnRecorder) -> None:
        for _ in range(self._agent.config.max_rounds):
            reply = await self._request(span, self._agent.backend, self._history, self._agent.toolbox.specs)
            if not reply.text.strip() and not reply.tool_calls and not self._done.text:
                raise _empty(reply)
            add_reply(self._history, reply)
            if not reply.tool_calls:
                return
            await self._run_tools(span, reply.tool_calls)
        raise BackendError(
            f"stopped after {self._agent.config.max_rounds} model requests in one turn, the model keeps calling tools: "
            "ask more narrowly, or raise 'max_rounds' in the agent file",
            error_type="max_rounds",
            summary="the limit of model requests in one turn was reached",
        )

    async def _request(
        self, span: TurnRecorder, backend: Backend, history: ChatHistory, tools: list[ToolSpec], tool: str | None = None
    ) -> ModelReply:
        builder, answered = ReplyBuilder(), False
        pricing.prepare(backend.endpoint)
        shown = history is self._history
        if shown:
            self._done.round_has_text, self._done.streaming = False, builder
        with span.request(backend.endpoint, lambda: as_messages(history), tools) as recorder:
            try:
                await backend.ask(history, tools, builder, self._on_chunk(recorder, shown=shown), str(self._session.session_id))
                answered = True
            except asyncio.CancelledError as error:
                # A prompt tool that took too long is cancelled by its own bound, and not by whoever stops the turn.
                raise (error if error.args == (ToolTimeout.error_type,) else self._stopped()) from error.__cause__
            finally:
                reply = builder.reply()
                recorder.answered(reply)
                self._done.requests.append(pricing.usage_of(backend.endpoint, reply, tool, answered=answered))
        if shown:
            self._done.streaming, self._done.finish_reason = None, reply.finish_reason
        return reply

    def _on_chunk(self, recorder: RequestRecorder, *, shown: bool) -> Callable[[str], None]:
        waiting = True

        def on_chunk(text: str) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                recorder.first_chunk()
            if text and shown:
                self._show(text)

        return on_chunk

    def _show(self, text: str) -> None:
        done = self._done
        if not done.round_has_text:
            text = text.lstrip("\n") if done.shown else text.lstrip()
            if not text:
                return
            done.round_has_text = True
            text = f"\n\n{text}" if done.shown else text
        if done.first_token is None:
            done.first_token = perf_counter() - self._start
        done.shown.append(text)
        self._emit(TextDelta(text))

    async def _run_tools(self, span: TurnRecorder, calls: list[ToolCall]) -> None:
        results = dict.fromkeys(range(len(calls)), f"Error: {_STOPPED}")
        first = len(self._done.executions)
        self._done.executions += [_execution(call) for call in calls]

        async def run(number: int, call: ToolCall) -> None:
            denied = await self._denied(call, first + number)
            results[number] = await self._run_tool(span, call, first + number, denied)

        try:
            async with asyncio.TaskGroup() as group:
                for number, call in enumerate(calls):
                    group.create_task(run(number, call))
        finally:
            # In call order, and each call has one, also after a cancellation: providers refuse a history with an open call.
            add_results(self._history, [(call, results[number]) for number, call in enumerate(calls)])

    async def _denied(self, call: ToolCall, place: int) -> str | None:
        """Why the call may not run, or None. The question is asked outside of the tool's span: waiting for a person is no part of it."""
        if not self._agent.needs_approval(call.name):
            return None
        if self._approve is None:
            return _NOT_ASKED
        try:
            return None if await self._approve(self._done.executions[place]) is True else _DENIED
        except asyncio.CancelledError as error:
            self._done.executions[place] = self._done.executions[place].failed(_STOPPED)
            raise self._stopped() from error
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with the question, the answer is no
            return f"denied: the question for approval failed ({type(error).__name__})"

    async def _run_tool(self, span: TurnRecorder, call: ToolCall, place: int, denied: str | None = None) -> str:
        execution = self._done.executions[place].running()
        self._emit(ToolStarted(call.id, execution))
        start = perf_counter()
        with span.tool(call, self._agent.toolbox.spec(call.name)) as recorder:
            try:
                if denied is not None:
                    raise ToolDenied(denied)
                result = await self._agent.toolbox.call(
                    call.name, call.arguments, self._call_context(span, call.name, recorder.traceparent)
                )
                execution = execution.succeeded(result, perf_counter() - start)
            except ToolError as error:
                recorder.failed(error)
                time = None if isinstance(error, ToolDenied) else perf_counter() - start
                execution, result = execution.failed(error.message, time), f"Error: {error.message}"
            except asyncio.CancelledError as error:
                execution = execution.failed(_STOPPED, perf_counter() - start)
                raise self._stopped() from error
            finally:
                recorder.finished(execution)
                self._done.executions[place] = execution
                self._emit(ToolFinished(call.id, execution))
        return result

    def _call_context(self, span: TurnRecorder, tool: str, traceparent: str) -> CallContext:
        async def ask(prompt: str, model: LLMConfig | None) -> str:
            history = new_history(None)
            history.add_user_message(prompt)
            try:
                reply = await self._request(span, self._agent.backend_for(model), history, [], tool)
            except BackendError as error:
                raise ToolError(error.message, error_type=error.error_type) from error
            return reply.text

        return CallContext(ask=ask, traceparent=traceparent or None, conversation=str(self._session.session_id))

    def _answered(self, before: int) -> TurnResult:
        text = self._done.text
        if not text:
            rewind(self._history, before)
            raise _empty(ModelReply())
        return self._result(message=self._keep(text))

    def _keep(self, text: str) -> Message:
        self._session.message_count += 2
        return Message(role=MessageRole.ASSISTANT, content=text, tool_calls=self._done.executions, tokens_used=self._done.usage)

    def _stopped(self) -> asyncio.CancelledError:
        # A cancellation loses its message on the way through task groups: the reason is kept here.
        return asyncio.CancelledError(self.stop_reason)

    def _interrupted(self, before: int) -> TurnResult:
        reason, text = self.stop_reason, self._done.text
        if not text:
            rewind(self._history, before)
            what = "stopped" if self._by_hand else "stopped before there was an answer: the message is forgotten"
            failure = TurnError(error_type=reason, message=what)
            return self._result(error=failure, interrupted=True)
        if self._done.streaming is not None and (partial := self._done.streaming.reply().text):
            add_reply(self._history, ModelReply(text=partial))
        failure = TurnError(error_type=reason, message="stopped: the answer so far is kept")
        return self._result(message=self._keep(text), error=failure, interrupted=True)

    def _failed(self, error: Exception, before: int) -> TurnResult:
        rewind(self._history, before)
        if isinstance(error, HoloDeckError):
            return self._result(error=TurnError(error_type=error.error_type, message=error.message))
        what = shorten(" ".join(terminal_safe(f"{type(error).__name__}: {error}").split()), 200)
        return self._result(error=TurnError(error_type=type(error).__name__, message=f"unexpected error, please report it: {what}"))

    def _result(self, **outcome: Any) -> TurnResult:
        done = self._done
        return TurnResult(
            number=self._number,
            tool_calls=done.executions,
            usage=done.usage,
            model_requests=len(done.requests),
            requests=done.requests,
            duration=perf_counter() - self._start,
            time_to_first_token=done.first_token,
            finish_reason=done.finish_reason,
            **outcome,
        )


def _empty(reply: ModelReply) -> BackendError:
    what = {
        "content_filter": "the provider's content filter held the answer back: say it differently",
        "length": "the model used up its tokens before it said anything: raise 'model.max_tokens', or start a new session",
    }.get(reply.finish_reason or "", "the model gave no answer: send the message again")
    filtered = reply.finish_reason == "content_filter"
    return BackendError(what, error_type="content_filter" if filtered else "empty_answer", summary="the model gave no answer")


def _execution(call: ToolCall) -> ToolExecution:
    try:
        parameters = json.loads(unwrapped(call.arguments))
    except (ValueError, RecursionError):
        parameters = {"arguments": call.arguments}
    if not isinstance(parameters, dict):
        parameters = {"arguments": parameters}
    return ToolExecution(tool_name=shorten(terminal_safe(call.name), 128) or _NAMELESS, parameters=parameters)
