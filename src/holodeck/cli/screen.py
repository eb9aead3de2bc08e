"""The terminal while somebody talks: what was said scrolls by above, a few live lines and the prompt stand at the end.

What has been printed is never touched again. Only the live lines and the prompt are redrawn, and they always fit on the screen. The prompt
can be typed at all the time, whatever goes on.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import set_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyPressEvent
from rich.console import Console
from rich.style import Style
from rich.text import Text

from holodeck.cli.above import AboveWriter, GatedWriter
from holodeck.cli.editor import SteadyOutput, editing_keys, input_rows, make_editor

__all__ = ["PROMPT", "Listener", "LiveLines", "LiveScreen", "Screen"]

PROMPT: Final = "> "
_BETWEEN: Final = 0.04
"""Least seconds between two redraws that are not for a key."""

LiveLines = Callable[[int], Sequence[Text]]
"""Given how many rows there are, what goes on."""


class Listener(Protocol):
    """Whom keys are reported to."""

    def entered(self, text: str) -> None:
        """Enter, with what stands at the prompt."""

    def interrupted(self) -> None:
        """Ctrl-C."""

    def ended(self) -> None:
        """Ctrl-D where nothing stands at the prompt."""

    def drawn(self) -> None:
        """The prompt has been drawn."""


class Screen(Protocol):
    """Where the user types."""

    idle: asyncio.Event

    async def run(self) -> None:
        """Read what is typed until :meth:`stop`, or the terminal's end."""

    def stop(self) -> None:
        """Stop reading."""

    async def ask(self, question: str, answers: Collection[str], again: str) -> str:
        """Which of ``answers`` the user gives, "" for none; what stood at the prompt stands there again afterwards.

        After anything else ``again`` is asked.
        """

    def draft(self, text: str) -> bool:
        """Put ``text`` at the prompt, before what stands there; False if this terminal cannot."""

    def clear(self) -> None:
        """Take away what stands at the prompt."""

    def refresh(self) -> None:
        """The live lines have changed."""


@dataclass(frozen=True)
class _Question:
    text: str
    answers: Collection[str]
    again: str
    future: asyncio.Future[str]
    draft: Document


class LiveScreen:
    """A terminal with a cursor.

    Attributes:
        idle: Set while nothing runs; of no meaning here.
        live: Gives the live lines.

    Args:
        writer: The terminal; what is written to it while this runs goes above the prompt.
        console: Knows what colours there are.
        listener: Hears of keys.
        history: What was typed before.
        completer: What Tab offers.
    """

    def __init__(self, writer: AboveWriter, console: Console, listener: Listener, history: History, completer: Completer) -> None:
        self._writer, self._console, self._listener = writer, console, listener
        self.idle = asyncio.Event()
        self.live: LiveLines = lambda _: ()
        self._output = SteadyOutput.of(writer.file)
        self._question: _Question | None = None
        self._above: tuple[tuple[int, int], StyleAndTextTuples] | None = None
        self._last, self._timer = 0.0, None
        self._flushing = False
        self._session = self._make_session(history, completer)
        self._app = self._session.app

    _timer: asyncio.TimerHandle | None

    def _make_session(self, history: History, completer: Completer) -> PromptSession[str]:
        keys = editing_keys()

        @keys.add("c-c", eager=True, filter=has_focus(DEFAULT_BUFFER))
        def interrupt(_: KeyPressEvent) -> None:
            self._listener.interrupted()

        @keys.add("c-d", filter=Condition(lambda: not self._session.default_buffer.text))
        def end(_: KeyPressEvent) -> None:
            self._listener.ended()

        @keys.add("enter", filter=Condition(lambda: self._question is not None))
        def answer(event: KeyPressEvent) -> None:
            self._answer(event.current_buffer.text)

        session = make_editor(
            self._message, self._output, history=history, completer=completer, keys=keys, asking=lambda: self._question is not None
        )
        session.default_buffer.accept_handler = lambda buffer: self._entered(buffer.text)
        return session

    def _entered(self, text: str) -> bool:
        self._listener.entered(text)
        return False  # the line is empty again

    async def run(self) -> None:
        """Read keys until :meth:`stop`; returns at the terminal's end, too."""
        loop = asyncio.get_running_loop()
        self._app.after_render += lambda _: self._listener.drawn()

        def wake() -> None:
            loop.call_soon_threadsafe(self.refresh)

        others = GatedWriter(self._writer)
        with ExitStack() as stack:
            stack.enter_context(self._writer.held(wake))
            stack.enter_context(redirect_stdout(others))
            stack.enter_context(redirect_stderr(others))
            try:
                await self._app.run_async(pre_run=self.refresh, set_exception_handler=False, handle_sigint=False)
            except EOFError:
                return
            finally:
                if self._timer is not None:
                    self._timer.cancel()

    def stop(self) -> None:
        """Stop reading."""
        self._flush()
        if self._app.is_running and not self._app.is_done:
            self._app.exit(result="")

    async def ask(self, question: str, answers: Collection[str], again: str) -> str:
        """Which of ``answers`` the user gives, as a line of its own: what somebody is typing when the question comes answers nothing."""
        buffer = self._session.default_buffer
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._question = _Question(question, answers, again, future, buffer.document)
        buffer.reset()
        self.refresh()
        try:
            return await future
        finally:
            draft, self._question = self._question.draft, None
            buffer.reset(draft)
            self.refresh()

    def _answer(self, text: str) -> None:
        assert self._question is not None
        self._session.default_buffer.reset()
        answer = text.strip().lower()
        if answer not in self._question.answers:
            self._question = replace(self._question, text=self._question.again)
            self.refresh()
        elif not self._question.future.done():
            self._question.future.set_result(answer)

    def draft(self, text: str) -> bool:
        """Put ``text`` at the prompt, on lines of its own before what stands there."""
        buffer = self._session.default_buffer
        whole = f"{text}\n{buffer.text}" if buffer.text else text
        buffer.reset(Document(whole, len(whole)))
        self.refresh()
        return True

    def clear(self) -> None:
        """Take away what stands at the prompt."""
        self._session.default_buffer.reset()
        self._app.invalidate()

    def refresh(self) -> None:
        """Draw the live lines anew, soon: not more often than anybody can see."""
        if self._timer is None:
            wait = max(self._last + _BETWEEN - monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def _flush(self) -> None:
        """Print what waits above the prompt, and draw what stands below."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._last, self._above = None, monotonic(), None
        if not self._app.is_running or self._app.is_done:
            return
        text = self._writer.take()
        if not text:
            self._app.invalidate()
            return
        output, renderer = self._output, self._app.renderer
        output.held = True
        try:
            with set_app(self._app):
                renderer.erase()
                output.write_raw(text.replace("\n", "\r\n"))
                self._app.render_counter += 1  # else the live lines are those of before, which may stand above now
                renderer.render(self._app, self._app.layout)
        finally:
            output.held = False
            output.flush()

    def _message(self) -> StyleAndTextTuples:
        size = self._output.get_size()
        room = size.rows - 1 - input_rows(self._session, size.columns)
        key = (size.columns, room)
        if self._above is None or self._above[0] != key:
            self._above = (key, self._fragments(room))
        prompt = self._question.text if self._question else PROMPT
        return [*self._above[1], ("bold" if self._question else "", prompt)]

    def _fragments(self, room: int) -> StyleAndTextTuples:
        fragments: StyleAndTextTuples = []
        for line in list(self.live(room))[-room:] if room > 0 else ():
            fragments += [(_style_of(s.style), s.text) for s in line.render(self._console) if s.text]
            fragments.append(("", "\n"))
        return fragments


@functools.lru_cache(maxsize=256)
def _style_of(style: Style | None) -> str:
    """A style of rich in prompt_toolkit's words."""
    if style is None:
        return ""
    words = [word for word in ("bold", "italic", "underline", "dim", "strike", "reverse") if getattr(style, word)]
    if style.color is not None and not style.color.is_default:
        words.append(_colour(style.color.name))
    return " ".join(words)


def _colour(name: str) -> str:
    bright = name.startswith("bright_")
    base = name.removeprefix("bright_")
    if base == "black":
        return "ansibrightblack" if bright else "ansiblack"
    if base == "white":
        return "ansiwhite" if bright else "ansigray"
    known = {"red", "green", "yellow", "blue", "magenta", "cyan"}
    return f"ansi{'bright' if bright else ''}{base}" if base in known else ""
