"""The conversation in a terminal: prompt, answer, prompt."""

from __future__ import annotations

import asyncio

from prompt_toolkit import PromptSession
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout
from rich.status import Status
from rich.text import Text

from holodeck.cli.conversation import FAREWELLS, Conversation
from holodeck.cli.keys import held_keys
from holodeck.cli.opening import Opening
from holodeck.cli.progress import Progress
from holodeck.cli.signals import Signals, Stop, Stopped
from holodeck.cli.slash import is_command, run_command, unescaped
from holodeck.models.observability import TelemetrySettings

__all__ = ["Shell", "where_traces_go"]

_PROMPT = "> "


class _Interrupt(Exception):
    """Ctrl-C at the prompt; a ``KeyboardInterrupt`` would not stop at the task that it is raised in."""


class Shell:
    """Reads messages and commands until the user leaves.

    Args:
        conversation: What is said.
        signals: Where SIGINT is turned to.
        stop: Ends a prompt from outside.
        progress: What takes long; shown while a message waits for it.
    """

    def __init__(self, conversation: Conversation, signals: Signals, stop: Stop, progress: Progress) -> None:
        self._conversation, self._opening = conversation, Opening(conversation)
        self._signals, self._stop, self._progress = signals, stop, progress
        self._notes = conversation.notes
        self._prompt: PromptSession[str] = PromptSession(_PROMPT, history=InMemoryHistory(), interrupt_exception=_Interrupt)

    async def run(self) -> int:
        """Talk until the end; returns the exit code."""
        self._greet()
        try:
            with held_keys():
                while not self._conversation.over:
                    await self._handle(await self._read())
        except (EOFError, Stopped):
            return 0
        finally:
            await self._opening.close()
        self._conversation.say_limit()
        return 0

    def _greet(self) -> None:
        agent, dot = self._conversation.agent, self._notes.glyphs.dot
        self._notes.line((agent.config.name, "bold"), (f" {dot} {agent.config.model.label}", "dim"))
        self._notes.hint(f"traces: {where_traces_go(agent.settings)}")
        self._notes.hint("/help lists commands, Ctrl-D leaves.")
        for warning in agent.warnings:
            self._notes.warning(warning)
        self._notes.line("")

    async def _read(self) -> str:
        # After the task that draws the prompt: from here on Semantic Kernel loads behind it.
        loop = asyncio.get_running_loop()
        while True:
            loop.call_soon(loop.call_soon, self._opening.begin)
            try:
                return await self._stop.or_result(self._ask())
            except _Interrupt:
                self._notes.hint("Ctrl-D or /exit leaves.")
            finally:
                self._signals.install()

    async def _ask(self) -> str:
        with patch_stdout():  # what a tool or a library prints meanwhile goes above the prompt
            return await self._prompt.prompt_async(set_exception_handler=False)

    async def _handle(self, text: str) -> None:
        if text.strip().lower() in FAREWELLS:
            self._conversation.left = True
        elif is_command(text):
            await run_command(self._conversation, text)
        elif await self._ready():
            with self._signals.interrupting(self._conversation.session.cancel):
                await self._conversation.turn(unescaped(text))
        if not self._conversation.left:
            self._notes.line("")

    async def _ready(self) -> bool:
        """Wait until the session is open; Ctrl-C stops the waiting, not the loading."""
        if self._opening.done:
            return True
        opening = self._opening.start()
        given_up = asyncio.Event()
        with self._signals.interrupting(given_up.set), self._waiting():
            wait = asyncio.create_task(given_up.wait())
            try:
                await self._stop.or_result(_first(opening, wait))
            finally:
                wait.cancel()
                self._progress.listener = None
        if not opening.done():
            self._notes.hint("not sent: the agent is still loading")
        return opening.done() and opening.result()

    def _waiting(self) -> Status:
        text = self._progress.line or f"loading {self._conversation.agent.config.model.label}"
        status = Status(self._dim(text), console=self._notes.console, spinner=self._notes.glyphs.spinner)
        self._progress.listener = lambda line: status.update(self._dim(line))
        return status

    def _dim(self, text: str) -> Text:
        return Text(self._notes.fit(text, max(self._notes.console.width - 4, 8)), style="dim")


async def _first(*tasks: asyncio.Task[bool]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def where_traces_go(settings: TelemetrySettings) -> str:
    """Where the spans of a chat go, in words."""
    places = [settings.traces.url] if settings.traces else []
    if settings.console:
        places.append("this terminal (/trace)" if settings.pretty_print else "stderr (OTLP/JSON lines)")
    if settings.trace_file:
        places.append(str(settings.trace_file))
    return ", ".join(places) or "nowhere"
