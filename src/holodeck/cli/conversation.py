"""A conversation as both modes have it: a session, its turns so far, and how they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from holodeck.cli.budget import Budget
from holodeck.cli.footer import show_footer
from holodeck.cli.toollines import call_text
from holodeck.cli.tree import show_tree
from holodeck.errors import CommandError, HoloDeckError, InputError, SessionError, ToolError
from holodeck.models.chat import SessionState
from holodeck.models.events import TextDelta, TurnEvent, TurnFinished, TurnResult
from holodeck.models.tool_execution import ToolExecution, ToolStatus

if TYPE_CHECKING:
    from uuid import UUID

    from holodeck.chat import Agent, Session
    from holodeck.cli.console import Notes
    from holodeck.cli.views import TurnView

__all__ = ["FAREWELLS", "Conversation"]

FAREWELLS: Final = frozenset({"exit", "quit"})
"""Messages that leave."""
_PIECE: Final = 500
"""Characters of an answer that are shown in one go."""
_WORK_SECONDS: Final = 0.004
"""Longest that events are shown without a look at the keyboard."""


class Conversation:
    """One session of one agent, and its turns.

    Attributes:
        session: The session.
        notes: Where everything goes that is not an answer.
        turns: The turns so far, refused messages not counted.
        asked: What the user said in each of them.
        draft: Puts a text at the prompt, where there is one; says whether there is.
        failed: Whether any turn failed, a message was refused, or a command could not be done.
        left: The user wants to leave.

    Args:
        session: Not yet open.
        view: Shows the turns.
        notes: See above.
        verbose: The span tree is shown after each turn.
        quiet: No footer.
        budget: What the turns may take.
    """

    def __init__(
        self, session: Session, view: TurnView, notes: Notes, *, verbose: bool, quiet: bool = False, budget: Budget | None = None
    ) -> None:
        self.session, self.notes = session, notes
        self._budget = budget or Budget()
        self.turns: list[TurnResult] = []
        self.asked: list[str] = []
        self.failed = self.left = False
        self._last = ""
        self.draft: Callable[[str], bool] = lambda _: False
        self._view, self._verbose, self._quiet = view, verbose, quiet

    @property
    def agent(self) -> Agent:
        """Who answers."""
        return self.session.agent

    @property
    def over(self) -> bool:
        """No further message can be sent."""
        return self.left or self.session.state is SessionState.TERMINATED or bool(self._budget.reached)

    def opened(self) -> None:
        """The session is open: make its telemetry the process's, and say what is to be known about the model."""
        self.agent.telemetry.install_globals()
        for notice in self.agent.notices:
            self.notes.hint(f"note: {notice}")

    @property
    def verbose(self) -> bool:
        """Tools are shown with everything that went in and out, and the span tree follows each turn."""
        return self._verbose

    @verbose.setter
    def verbose(self, value: bool) -> None:
        self._verbose = self._view.verbose = value

    async def turn(self, text: str) -> None:
        """Send a message and show all that comes of it."""
        self._last = text
        await self._run(text, self.session.stream(text))

    async def retry(self) -> None:
        """Send the last message again, in place of what came of it, and show all that comes of it now."""
        await self._run(self._last, self.session.retry())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolExecution | None:
        """Run a tool by hand and show it; None if it was stopped before it began."""
        before = len(self.turns)
        typed = f"/call {call_text(ToolExecution(tool_name=name, parameters=dict(arguments)))}"
        await self._run(typed, self.session.call_tool(name, arguments))
        calls = self.turns[-1].tool_calls if len(self.turns) > before else []
        # The turn is no failure if the tool is one: the model would have been told. Here nothing else was asked for.
        self.failed = self.failed or any(call.status is ToolStatus.FAILED for call in calls)
        return calls[0] if calls else None

    def asking(self) -> AbstractContextManager[None]:
        """The user is asked something in the middle of a turn: what was said so far stands above the question."""
        return self._view.asking()

    async def _run(self, text: str, events: AsyncGenerator[TurnEvent, None]) -> None:
        self._view.begin()
        try:
            async with aclosing(events):
                await self._show(text, events)
        except (InputError, SessionError, ToolError) as error:
            self.refuse(error)
        finally:
            self._view.abandon()

    async def _show(self, text: str, events: AsyncGenerator[TurnEvent, None]) -> None:
        rested = perf_counter()
        async for event in events:
            if isinstance(event, TurnFinished):
                self.asked.append(text)
                self._finish(event.result)
                continue
            for part in _parts(event):
                self._view.show(part)
                if perf_counter() - rested > _WORK_SECONDS:  # a burst must not keep keys waiting
                    await asyncio.sleep(0)
                    rested = perf_counter()

    def refuse(self, error: HoloDeckError) -> None:
        """A message cannot be sent, or a command not be done: say why, and go on."""
        self.failed = True
        self._view.refuse(error, self._session_id)

    def complain(self, message: str) -> None:
        """Refuse a command: say ``message``, and go on."""
        self.refuse(CommandError(message))

    @property
    def _session_id(self) -> UUID | None:
        """None until the session is open: what is refused before has no session."""
        return None if self.session.state is SessionState.INITIALIZING else self.session.chat.session_id

    def _finish(self, result: TurnResult) -> None:
        self.turns.append(result)
        self._budget.add(result)
        self.failed = self.failed or result.failed
        self._view.finish(result, self.session.chat.session_id)
        settings = self.agent.settings
        if not (settings.console and settings.pretty_print):
            return
        if not self._quiet:
            show_footer(self.notes, result, settings)
        if self._verbose and result.trace_id:
            self.show_trace(result)

    def show_trace(self, result: TurnResult) -> bool:
        """Show the span tree of a turn; False if its spans are not kept."""
        request = self.agent.telemetry.trace(result.trace_id) if result.trace_id else {}
        return show_tree(self.notes, request, timestamps=self.agent.settings.include_timestamps)

    def say_limit(self) -> None:
        """Say that the session has reached its limit or its budget, if it has."""
        if reached := self._budget.reached:
            self.notes.hint(reached)
            return
        if self.session.state is SessionState.TERMINATED:
            limit = self.session.max_messages
            self.notes.hint(f"This session has reached its limit of {limit:,} messages and ends here (--max-messages sets it).")


def _parts(event: TurnEvent) -> Iterator[TurnEvent]:
    """``event``; a long text in pieces, since a model that does not stream sends all of it at once."""
    if isinstance(event, TextDelta) and len(event.text) > _PIECE:
        yield from (TextDelta(event.text[place : place + _PIECE]) for place in range(0, len(event.text), _PIECE))
    else:
        yield event
