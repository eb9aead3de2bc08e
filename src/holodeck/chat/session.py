"""A conversation with an agent: one turn after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

from holodeck.backends.history import new_history, rewind
from holodeck.chat.agent import Agent
from holodeck.chat.turn import Approve, Turn
from holodeck.errors import SessionError
from holodeck.lib.validation import MAX_MESSAGE_CHARS, ValidationPipeline, shorten
from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnEvent, TurnFinished, TurnResult
from holodeck.models.exchange import ToolCall

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

__all__ = ["Session"]

_STEPS: Final = 5
"""Steps of the event loop in which a generator that nobody holds any more begins to stop its turn."""


@dataclass(frozen=True)
class _Sent:
    """A message, and how long the conversation was before it."""

    text: str
    entries: int
    messages: int


class Session:
    """A conversation; any number of them may share one :class:`Agent`.

    Example::

        agent = load_agent("agent.yaml")
        async with agent, Session(agent) as session:
            result = await session.send("Where is order 1042?")
            print(result.message.content, result.usage)

    Args:
        agent: Who answers; opened with the session if it is not yet.
        max_messages: Most user and assistant messages; when they are reached the session is terminated.
        pipeline: The rules for what a user may send.
        approve: Asked before a tool with ``approval: ask`` runs, given the execution; without it such calls are denied.
    """

    def __init__(
        self, agent: Agent, *, max_messages: int = 50, pipeline: ValidationPipeline | None = None, approve: Approve | None = None
    ) -> None:
        if max_messages <= 0:
            raise SessionError("max_messages must be positive")
        self.agent, self.max_messages, self.approve = agent, max_messages, approve
        self._pipeline = pipeline or ValidationPipeline()
        self._chat: ChatSession | None = None
        self._turns = 0
        self._previous: SpanContext | None = None
        self._task: asyncio.Task[TurnResult] | None = None
        self._turn: Turn | None = None
        self._last: _Sent | None = None

    @property
    def chat(self) -> ChatSession:
        """The session as data: id, history, message count, state.

        Raises:
            SessionError: It is not open yet.
        """
        if self._chat is None:
            raise SessionError("the session is not open: use 'async with Session(agent)' or await session.open()")
        return self._chat

    @property
    def state(self) -> SessionState:
        """Where the session stands."""
        return self._chat.state if self._chat else SessionState.INITIALIZING

    async def open(self) -> None:
        """Open the agent and begin the conversation: INITIALIZING → ACTIVE.

        Raises:
            ConfigError: The agent cannot be used; the session stays INITIALIZING.
        """
        if self._chat is None:
            await self.agent.open()
        if self._chat is None:  # still: another call may have been quicker, and its conversation have begun
            self._begin()

    def _begin(self) -> None:
        self._chat = ChatSession(agent_config=self.agent.config, history=new_history(self.agent.instructions))
        self._chat.activate()
        self._turns, self._previous, self._last = 0, None, None

    def reset(self) -> None:
        """Forget everything that was said: a new conversation with a new id, whose first turn is turn 1 and linked to none.

        Raises:
            SessionError: The session is not active, or a turn is running.
        """
        self._check_ready()
        self.chat.terminate()
        self._begin()

    async def close(self) -> None:
        """Stop a running turn and end the conversation: ACTIVE → TERMINATED. The agent stays open."""
        if self._task is not None and not self._task.done():
            self.cancel()
            await asyncio.wait([self._task])
        if self.state is SessionState.ACTIVE:
            self.chat.terminate()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def send(self, text: str | bytes) -> TurnResult:
        """Run a turn to its end.

        Raises:
            InputError: ``text`` cannot be sent; the session goes on.
            SessionError: The session is not active, or a turn is running.
        """
        async for event in self.stream(text):
            if isinstance(event, TurnFinished):
                return event.result
        raise SessionError("the turn ended without a result")

    async def stream(self, text: str | bytes) -> AsyncGenerator[TurnEvent, None]:
        """Run a turn and yield what happens; the last event is :class:`TurnFinished`. Leaving early stops the turn.

        Raises:
            InputError: ``text`` cannot be sent; the session goes on.
            SessionError: The session is not active, or a turn is running.
        """
        message = Message(role=MessageRole.USER, content=self._pipeline.validate(text))
        await self._ready()
        self._last = _Sent(message.content, len(self.chat.history.messages), self.chat.message_count)
        async with aclosing(self._events(message, Turn.run)) as events:
            async for event in events:
                yield event

    async def retry(self) -> AsyncGenerator[TurnEvent, None]:
        """Send the last message again, as if it had not been answered: what came of it is taken out of the history first.

        Raises:
            SessionError: There is no message yet, the session is not active, or a turn is running.
        """
        await self._ready()
        if self._last is None:
            raise SessionError("there is no message yet that could be sent again")
        rewind(self.chat.history, self._last.entries)
        self.chat.message_count = self._last.messages
        async with aclosing(self.stream(self._last.text)) as events:
            async for event in events:
                yield event

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> AsyncGenerator[TurnEvent, None]:
        """Run a tool for the user: a turn of its own that asks no model and leaves the history as it is. Approval is not asked for.

        Raises:
            SessionError: The session is not active, or a turn is running.
        """
        await self._ready()
        call = ToolCall(id=f"call_{uuid4().hex[:12]}", name=name, arguments=json.dumps(dict(arguments), default=str))
        # The arguments stand on the tool's span, whole: a message has a limit, a call by hand has none.
        message = Message(role=MessageRole.USER, content=shorten(f"/call {name} {call.arguments}", MAX_MESSAGE_CHARS))
        async with aclosing(self._events(message, lambda turn: turn.call(call))) as events:
            async for event in events:
                yield event

    async def _events(self, message: Message, work: Callable[[Turn], Coroutine[Any, Any, TurnResult]]) -> AsyncGenerator[TurnEvent, None]:
        events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        turn = self._turn = Turn(self.agent, self.chat, self._turns + 1, message, events.put_nowait, self._previous, self.approve)
        task = self._task = asyncio.create_task(self._run(turn, work))
        task.add_done_callback(lambda _: events.put_nowait(None))  # also for a task that is cancelled before it begins
        try:
            while (event := await events.get()) is not None:
                yield event
            yield TurnFinished(turn.never_begun() if task.cancelled() else await task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _run(self, turn: Turn, work: Callable[[Turn], Coroutine[Any, Any, TurnResult]]) -> TurnResult:
        self._turns += 1
        result = await work(turn)
        self._previous = turn.context
        if self.chat.message_count >= self.max_messages:
            self.chat.terminate()
        return result

    async def _ready(self) -> None:
        """Let a turn end that has been stopped, or whose loop was left with ``break``: that takes the event loop some steps. Then check."""
        for _ in range(_STEPS):
            if self._task is None or self._task.done() or self._task.cancelling():
                break
            await asyncio.sleep(0)
        if self._task is not None and self._task.cancelling():
            await asyncio.wait([self._task])
        self._check_ready()

    def _check_ready(self) -> None:
        if self.state is not SessionState.ACTIVE:
            raise SessionError(f"the session is {self.state.value}, not active")
        if not self.agent.is_open:
            raise SessionError("the agent is closed: open it again")
        if self._task is not None and not self._task.done():
            raise SessionError("a turn is running: wait for it, or cancel it")

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop the running turn, if there is one; ``reason`` becomes ``error.type`` on its open spans."""
        if self._task is not None and self._turn is not None and not self._task.done():
            self._turn.stop_reason = reason
            self._task.cancel()
