"""A turn on a terminal with a cursor: Markdown that is formatted as it streams, tools that run, what is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

from rich.text import Text

from holodeck.cli.blocks import Block, BlockSplitter
from holodeck.cli.console import Notes
from holodeck.cli.markdown import MarkdownRenderer
from holodeck.cli.toollines import call_text, show_execution
from holodeck.cli.views import ConversationView
from holodeck.lib.terminal import TerminalGate
from holodeck.models.events import TextDelta, ToolFinished, ToolStarted, TurnEvent
from holodeck.models.tool_execution import ToolExecution
from holodeck.traces import format_duration

__all__ = ["LiveView", "MarkdownStream"]

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES: Final = "-\\|/"
_FRAME_SECONDS: Final = 0.1
_KEPT_ROWS: Final = 6
"""Rows that the unfinished part of an answer leaves to tools, prompt and menu."""


class MarkdownStream:
    """Prints an answer block by block, each one once and for good.

    Args:
        notes: Where to.
        rows: How many rows an unfinished block may have; asked for with each piece, since a window can be resized.
    """

    def __init__(self, notes: Notes, rows: Callable[[], int]) -> None:
        self._notes, self._rows = notes, rows
        self._gate, self._splitter = TerminalGate(), BlockSplitter()
        self._renderer = MarkdownRenderer(notes.console, notes.glyphs)
        self._blank = ""
        self._begun = False
        self._shown: tuple[object, list[Text]] | None = None

    def write(self, text: str) -> None:
        """Take the next piece; what may be the answer's last white space is held back."""
        text = self._blank + self._gate.feed(text)
        shown = text.rstrip() if self._begun else text.strip()
        kept = text.rstrip()
        self._blank = text[len(kept) :] if kept else text * self._begun
        if shown:
            self._feed(shown)

    def _feed(self, text: str) -> None:
        self._begun, self._shown = True, None
        width = self._notes.console.width
        self._splitter.width, self._splitter.rows = max(width, 1), max(self._rows(), 3)
        self._print(self._splitter.feed(text))

    def end(self) -> None:
        """Print what is left; the next piece begins a new text."""
        if rest := self._gate.flush().rstrip():
            self._feed(self._blank + rest)
        self._print(self._splitter.finish())
        self._blank, self._begun, self._shown = "", False, None

    def _print(self, blocks: Iterator[Block]) -> None:
        for block in blocks:
            if lines := self._renderer.lines(block):
                self._notes.print(Text("\n").join(lines), wrap=False)

    def unfinished(self) -> list[Text]:
        """The lines of the block that is not complete."""
        width = self._notes.console.width
        if self._shown is None or self._shown[0] != width:
            self._shown = (width, list(self._rows_of(width)))
        return self._shown[1]

    def _rows_of(self, width: int) -> Iterator[Text]:
        block = self._splitter.unfinished
        if block is None:
            return
        if block.code:  # a line of data may be endless: what does not fit is not looked at
            block = Block([line[-width * 50 :] for line in block.lines], block.gap, True, block.info, block.opening)  # noqa: FBT003 - a field
        for line in self._renderer.lines(block):
            yield from line.divide(_cuts(line, width)) if line.cell_len > width else [line]


def _cuts(line: Text, width: int) -> list[int]:
    """Where a terminal of ``width`` cells breaks ``line``."""
    from rich.cells import chop_cells  # noqa: PLC0415 - only a line that is too long needs it

    cuts, place = list[int](), 0
    for row in chop_cells(line.plain, width)[:-1]:
        place += len(row)
        cuts.append(place)
    return cuts


class LiveView(ConversationView):
    """Shows turns on a :class:`~holodeck.cli.screen.LiveScreen`.

    Attributes:
        verbose: Tools with everything that went in and out.
        refresh: Asks the screen to draw the live lines anew.
        rows: Says how many rows the screen has.

    Args:
        notes: Where lines go that stay.
        verbose: See above.
        waiting_for: What is waited for at first: the model.
    """

    def __init__(self, notes: Notes, *, verbose: bool, waiting_for: str) -> None:
        super().__init__(notes)
        self.verbose = verbose
        self.refresh: Callable[[], None] = lambda: None
        self._waiting_for = waiting_for
        self._stream = MarkdownStream(notes, lambda: notes.console.height - _KEPT_ROWS)
        self._running: dict[str, tuple[ToolExecution, float]] = {}
        self._waiting: tuple[str, float] | None = None
        self._questions = 0
        self._gap = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A message is on its way."""
        self.wait(self._waiting_for)

    def wait(self, what: str | None) -> None:
        """Show that ``what`` is waited for, and for how long; None: no more. While the user is asked something, nothing else is."""
        what = None if self._questions else what
        self._waiting = None if what is None else (what, self._waiting[1] if self._waiting else monotonic())
        self._changed()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The user is asked something: what was said so far is printed before, and nobody waits for the model."""
        self._questions += 1
        self._end_text()
        self.wait(None)
        try:
            yield
        finally:
            self._questions -= 1

    def show(self, event: TurnEvent) -> None:
        """Something happened in the turn."""
        match event:
            case TextDelta(text):
                self._waiting = None
                self._write(text)
            case ToolStarted(call_id, execution):
                self._waiting = None
                self._end_text()
                self._running[call_id] = (execution, monotonic())
            case ToolFinished(call_id, execution):
                self._running.pop(call_id, None)
                self._end_text()
                show_execution(self._notes, execution, verbose=self.verbose)
                if not self._running:
                    self.wait(self._waiting_for)
        self._changed()

    def _write(self, text: str) -> None:
        if self._gap and text.strip():
            self._notes.line("")
            self._gap = False
        self._stream.write(text)

    def _end_text(self) -> None:
        self._stream.end()
        self._gap = True

    def abandon(self) -> None:
        """Print the rest; nothing is waited for."""
        self._stream.end()
        self._running.clear()
        self._waiting, self._gap = None, False
        self._changed()

    def _changed(self) -> None:
        self.refresh()
        if self._timer is None and (self._waiting or self._running):
            self._timer = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self._next_frame)

    def _next_frame(self) -> None:
        self._timer = None
        self._changed()

    def lines(self, room: int) -> Sequence[Text]:
        """What goes on, in at most ``room`` rows."""
        status = list(self._status())[-room:]
        text = self._stream.unfinished()
        room -= len(status)
        return [*(text[-room:] if room > 0 else []), *status]

    def _status(self) -> Iterator[Text]:
        now, frame = monotonic(), self._frame()
        for execution, started in self._running.values():
            yield self._status_line(f"{self._notes.glyphs.tool} {call_text(execution)}", f" {frame} {self._elapsed(now - started)}")
        if self._waiting is not None:
            what, since = self._waiting
            yield self._status_line(f"{frame} {what}", f" {self._elapsed(now - since)}")

    def _status_line(self, text: str, end: str) -> Text:
        width = self._notes.console.width
        return Text(self._notes.fit(text, max(width - len(end) - 1, 8)) + end, style="dim")

    def _frame(self) -> str:
        frames = _ASCII_FRAMES if self._notes.glyphs.ascii else _FRAMES
        return frames[int(monotonic() / _FRAME_SECONDS) % len(frames)]

    @staticmethod
    def _elapsed(seconds: float) -> str:
        return f"{seconds:.1f} s" if seconds < 60 else format_duration(seconds)
