"""A terminal without a cursor, where nothing can be redrawn."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from prompt_toolkit import PromptSession
from prompt_toolkit.history import History

from holodeck.cli.editor import Interrupt
from holodeck.cli.keys import held_keys
from holodeck.cli.screen import PROMPT, Listener

__all__ = ["DumbScreen"]


class DumbScreen:
    """A terminal without a cursor: prompt, answer, prompt; what is typed meanwhile waits.

    Attributes:
        idle: Set while the prompt may be shown.

    Args:
        listener: Hears of lines.
        history: What was typed before.
    """

    def __init__(self, listener: Listener, history: History) -> None:
        self.idle = asyncio.Event()
        self._listener = listener
        self._session: PromptSession[str] = PromptSession(PROMPT, history=history, interrupt_exception=Interrupt, enable_suspend=True)
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Read lines until :meth:`stop`; returns at the terminal's end, too."""
        with held_keys():
            reading = asyncio.create_task(self._read())
            stopped = asyncio.create_task(self._stopped.wait())
            try:
                await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (reading, stopped):
                    task.cancel()
                await asyncio.wait({reading, stopped})

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.idle.wait()
            loop.call_soon(loop.call_soon, self._listener.drawn)
            try:
                text = await self._session.prompt_async(set_exception_handler=False)
            except Interrupt:
                self._listener.interrupted()
            except EOFError:
                self._listener.ended()
                return
            else:
                self.idle.clear()
                self._listener.entered(text)

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()

    async def ask(self, question: str, answers: Collection[str], again: str) -> str:
        """Which of ``answers`` the user gives; Ctrl-C is told to the listener."""
        asking: PromptSession[str] = PromptSession(question, interrupt_exception=Interrupt)
        try:
            while (answer := (await asking.prompt_async(set_exception_handler=False)).strip().lower()) not in answers:
                asking.message = again
        except (Interrupt, EOFError):
            self._listener.interrupted()
            return ""
        return answer

    def draft(self, text: str) -> bool:
        """It cannot."""
        del text
        return False

    def clear(self) -> None:
        """The terminal has done so."""

    def refresh(self) -> None:
        """There are no live lines."""
