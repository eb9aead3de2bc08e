"""A conversation with an agent: one turn after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from holodeck.backends.history import new_history
from holodeck.chat.agent import Agent
from holodeck.chat.turn import Turn
from holodeck.errors import SessionError
from holodeck.lib.validation import ValidationPipeline
from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnEvent, TurnFinished, TurnResult

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

__all__ = ["Session"]


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
    """

    def __init__(self, agent: Agent, *, max_messages: int = 50, pipeline: ValidationPipeline | None = None) -> None:
        if max_messages <= 0:
            raise SessionError("max_messages must be positive")
        self.agent, self.max_messages = agent, max_messages
        self._pipeline = pipeline or ValidationPipeline()
        self._chat: ChatSession | None = None
        self._turns = 0
        self._previous: SpanContext | None = None
        self._task: asyncio.Task[TurnResult] | None = None
        self._turn: Turn | None = None

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
            self._chat = ChatSession(agent_config=self.agent.config, history=new_history(self.agent.instructions))
            self._chat.activate()

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
        self._check_ready()
        events: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        task = self._task = asyncio.create_task(self._run(message, events))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield TurnFinished(await task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _run(self, message: Message, events: asyncio.Queue[TurnEvent | None]) -> TurnResult:
        self._turns += 1
        turn = self._turn = Turn(self.agent, self.chat, self._turns, message, events.put_nowait, self._previous)
        try:
            result = await turn.run()
            self._previous = turn.context
            if self.chat.message_count >= self.max_messages:
                self.chat.terminate()
            return result
        finally:
            events.put_nowait(None)

    def _check_ready(self) -> None:
        if self.state is not SessionState.ACTIVE:
            raise SessionError(f"the session is {self.state.value}, not active")
        if self._task is not None and not self._task.done():
            raise SessionError("a turn is running: wait for it, or cancel it")

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop the running turn, if there is one; ``reason`` becomes ``error.type`` on its open spans."""
        if self._task is not None and not self._task.done():
            if self._turn is not None:
                self._turn.stop_reason = reason
            self._task.cancel(reason)
