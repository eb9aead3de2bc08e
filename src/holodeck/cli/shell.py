"""The conversation in a terminal: what is typed becomes messages and commands, one after the other."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from rich.text import Text

from holodeck.cli.above import AboveWriter
from holodeck.cli.approval import Approver
from holodeck.cli.completion import ShellCompleter
from holodeck.cli.conversation import FAREWELLS, Conversation
from holodeck.cli.dumb_screen import DumbScreen
from holodeck.cli.history import history_for
from holodeck.cli.live import LiveView
from holodeck.cli.opening import Opening
from holodeck.cli.progress import Progress
from holodeck.cli.screen import LiveScreen, Screen
from holodeck.cli.signals import Signals, Stop, Stopped
from holodeck.cli.slash import command_of, is_command, run_command, unescaped
from holodeck.models.observability import TelemetrySettings
from holodeck.models.tool_execution import ToolExecution, ToolSpec

__all__ = ["Shell", "where_traces_go"]


class Shell:
    """Reads messages and commands until the user leaves. What is typed while something runs is done after it.

    Args:
        conversation: What is said.
        signals: Where SIGINT is turned to.
        stop: Ends it from outside.
        progress: What takes long; shown while a message waits for it.
        view: What shows the turns, on a terminal with a cursor.
        writer: Standard output.
        history: What was typed is remembered for the next session.
    """

    def __init__(
        self,
        conversation: Conversation,
        signals: Signals,
        stop: Stop,
        progress: Progress,
        *,
        view: LiveView | None,
        writer: AboveWriter,
        history: bool,
    ) -> None:
        self._conversation, self._opening = conversation, Opening(conversation)
        self._signals, self._stop, self._progress, self._view = signals, stop, progress, view
        self._notes = conversation.notes
        self._typed: deque[str | None] = deque()
        self._arrived = asyncio.Event()
        self._on_interrupt: Callable[[], None] | None = None
        self._screen = self._make_screen(writer, history=history)
        conversation.draft = self._screen.draft
        self._approve = Approver(self._notes, self._screen.ask)
        if conversation.session.approve is None:
            conversation.session.approve = self._approved

    def _make_screen(self, writer: AboveWriter, *, history: bool) -> Screen:
        past = history_for(os.environ, self._redactor, keep=history)
        if self._view is None:
            return DumbScreen(self, past)
        screen = LiveScreen(writer, self._notes.console, self, past, ShellCompleter(self._tools, lambda: self._notes.narrow))
        screen.live, self._view.refresh = self._live, screen.refresh
        return screen

    def _redactor(self) -> Callable[[str], str]:
        from holodeck.lib.redaction import Redactor  # noqa: PLC0415 - the prompt has to be quick

        return Redactor(self._conversation.agent.settings.redaction_patterns)

    def _tools(self) -> Iterable[ToolSpec]:
        return self._conversation.agent.toolbox.specs

    async def run(self) -> int:
        """Talk until the end; returns the exit code."""
        self._greet()
        with self._signals.interrupting(self.interrupted):
            try:
                await self._stop.or_result(self._both())
            except Stopped:
                return 0
            finally:
                await self._opening.close()
        self._conversation.say_limit()
        return 0

    async def _both(self) -> None:
        """Read keys and do what they ask for, until either ends."""
        tasks = [asyncio.create_task(self._screen.run(), name="read keys"), asyncio.create_task(self._talk(), name="talk")]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self._screen.stop()
            if tasks[1].done():
                await tasks[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def _greet(self) -> None:
        agent, dot = self._conversation.agent, self._notes.glyphs.dot
        self._notes.line((agent.config.name, "bold"), (f" {dot} {agent.config.model.label}", "dim"))
        self._notes.hint(f"traces: {where_traces_go(agent.settings)}")
        self._notes.hint("/help lists commands, Ctrl-D leaves.")
        for warning in agent.warnings:
            self._notes.warning(warning)
        self._notes.line("")

    def drawn(self) -> None:
        """The prompt is on the screen: from here on Semantic Kernel loads behind it."""
        if (begun := self._opening.begin()) and self._view is not None:
            self._progress.listener = self._progress_teller(self._view.wait)
            begun.add_done_callback(self._opened)

    def _opened(self, _: object) -> None:
        self._progress.listener = None
        if self._view is not None and self._on_interrupt is None:
            self._view.wait(None)

    @staticmethod
    def _progress_teller(show: Callable[[str], None]) -> Callable[[str], None]:
        """Hands a line from the thread that loads to the one that draws."""
        loop = asyncio.get_running_loop()

        def tell(line: str) -> None:
            loop.call_soon_threadsafe(show, line)

        return tell

    def entered(self, text: str) -> None:
        """A line was typed."""
        self._signals.install()  # a prompt that is read line by line has taken SIGINT for itself
        self._typed.append(text)
        self._arrived.set()
        self._screen.refresh()

    def ended(self) -> None:
        """Ctrl-D: leave when everything is done that was typed before."""
        self._typed.append(None)
        self._arrived.set()

    def interrupted(self) -> None:
        """Ctrl-C: stop what runs, else clear the line. What was typed ahead is not sent, it stands at the prompt again."""
        self._signals.install()
        if self._on_interrupt is None:
            self._screen.clear()
            self._notes.hint("Ctrl-D or /exit leaves.")
            return
        ahead = [text for text in self._typed if text is not None]
        self._typed.clear()
        if ahead:
            self._screen.draft("\n".join(ahead))
        self._on_interrupt()

    async def _talk(self) -> None:
        while not self._conversation.over and (text := await self._next()) is not None:
            if isinstance(self._screen, LiveScreen):
                self._echo(text)
            await self._handle(text)

    async def _next(self) -> str | None:
        while not self._typed:
            self._arrived.clear()
            self._screen.idle.set()
            await self._arrived.wait()
        self._screen.idle.clear()
        return self._typed.popleft()

    def _echo(self, text: str) -> None:
        self._notes.line("> ", text.replace("\n", "\n  "), wrap=False)

    async def _handle(self, text: str) -> None:
        if text.strip().lower() in FAREWELLS:
            self._conversation.left = True
        elif is_command(text):
            command = command_of(text)
            if command is None or not command.needs_session or await self._ready():
                with self._interrupting(self._conversation.session.cancel):
                    await run_command(self._conversation, text)
        elif await self._ready():
            with self._interrupting(self._conversation.session.cancel):
                await self._conversation.turn(unescaped(text))
        if not self._conversation.left:
            self._notes.line("")

    @contextmanager
    def _interrupting(self, action: Callable[[], None]) -> Iterator[None]:
        self._on_interrupt = action
        try:
            yield
        finally:
            self._on_interrupt = None

    async def _ready(self) -> bool:
        """Wait until the session is open; Ctrl-C stops the waiting, not the loading."""
        if self._opening.done:
            return True
        opening = self._opening.start()
        given_up = asyncio.Event()
        with self._interrupting(given_up.set):
            async with self._waiting():
                wait = asyncio.create_task(given_up.wait())
                try:
                    await asyncio.wait((opening, wait), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    wait.cancel()
        if not opening.done():
            self._notes.hint("not sent: the agent is still loading")
        return opening.done() and opening.result()

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """Show what takes so long."""
        line = self._progress.line or f"loading {self._conversation.agent.config.model.label}"
        show = self._view.wait if self._view is not None else self._notes.hint
        before, self._progress.listener = self._progress.listener, self._progress_teller(show)
        show(line)
        try:
            yield
        finally:
            self._progress.listener = before if not self._opening.done else None
            if self._view is not None:
                self._view.wait(None)

    async def _approved(self, execution: ToolExecution) -> bool:
        with self._conversation.asking():
            return await self._approve(execution)

    def _live(self, room: int) -> list[Text]:
        """What goes on, and below it what was typed ahead."""
        assert self._view is not None
        ahead = [text for text in self._typed if text is not None] if self._on_interrupt is not None else []
        width = self._notes.console.width
        waiting = [Text(self._notes.fit(f"> {text}", max(width - 1, 8)), "dim") for text in ahead[-max(room // 3, 1) :]]
        return [*self._view.lines(max(room - len(waiting), 0)), *waiting]


def where_traces_go(settings: TelemetrySettings) -> str:
    """Where the spans of a chat go, in words."""
    places = [settings.traces.url] if settings.traces else []
    if settings.console:
        places.append("this terminal (/trace)" if settings.pretty_print else "stderr (OTLP/JSON lines)")
    if settings.trace_file:
        places.append(str(settings.trace_file))
    return ", ".join(places) or "nowhere"
