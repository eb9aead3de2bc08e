"""The conversation through pipes: one turn a line, no prompts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from holodeck.cli.conversation import FAREWELLS, Conversation
from holodeck.cli.signals import Stop, Stopped
from holodeck.cli.slash import is_command, run_command, unescaped
from holodeck.cli.stdin import InputLine, read_lines
from holodeck.errors import InputError
from holodeck.lib.validation import MAX_MESSAGE_CHARS

__all__ = ["Lines"]

_END: Final = None


class Lines:
    """Sends messages one after the other, from ``-m`` or else from standard input.

    Args:
        conversation: What is said.
        messages: The values of ``-m``; without any, lines of standard input.
        stop: Ends it from outside.
        echo: Messages are shown among the notes.
    """

    def __init__(self, conversation: Conversation, messages: Sequence[str], stop: Stop, *, echo: bool) -> None:
        self._conversation, self._stop, self._echo = conversation, stop, echo
        self._from_flags = bool(messages)
        self._messages = _given(messages) if messages else read_lines()

    async def run(self) -> int:
        """Talk until the end; returns the exit code.

        Raises:
            ConfigError: The agent cannot be used; nothing has been sent.
        """
        try:
            for warning in self._conversation.agent.warnings:
                self._conversation.notes.warning(warning)
            await self._stop.or_result(self._conversation.session.open())
            self._conversation.opened()
            await self._talk()
        except Stopped:
            return 0
        self._conversation.say_limit()
        return int(self._conversation.failed)

    async def _talk(self) -> None:
        while not self._conversation.over and (line := await self._stop.or_result(self._next())) is not _END:
            await self._handle(line)
        # A signal in the middle of the last turn has let the turn end, and ends the chat now.
        if self._stop.code is not None:
            raise Stopped

    async def _next(self) -> InputLine | None:
        return await anext(self._messages, _END)

    async def _handle(self, line: InputLine) -> None:
        text = line.text
        if self._echo:
            if self._conversation.turns:
                self._conversation.notes.line("")
            self._conversation.notes.line(("> ", "dim"), text)
        if line.cut:
            limit = f"the limit is {MAX_MESSAGE_CHARS:,} characters"
            self._conversation.refuse(InputError(f"The message is far too long; {limit}: shorten it or split it."))
        elif not text.strip() and not self._from_flags:
            self._conversation.notes.hint("an empty line: nothing is sent")
        elif text.strip().lower() in FAREWELLS:
            self._conversation.left = True
        elif is_command(text):
            await run_command(self._conversation, text)
        else:
            await self._conversation.turn(unescaped(text))


async def _given(messages: Sequence[str]) -> AsyncIterator[InputLine]:
    for message in messages:
        yield InputLine(message)
