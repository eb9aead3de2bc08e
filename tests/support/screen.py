"""The terminal emulator behind ``Terminal``: pyte's screen, with a memory and a few corrections."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pyte
from wcwidth import wcwidth

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Screen"]


class Screen(pyte.Screen):
    """Keeps every line that scrolls off the top, and answers the program's questions.

    Attributes:
        scrolled: Those lines, oldest first.
    """

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        self.scrolled: list[str] = []
        self._reply = answer
        super().__init__(columns, lines)

    @property
    def rows(self) -> list[str]:
        """The visible lines, without the blanks at their ends."""
        return [self._row(y) for y in range(self.lines)]

    @property
    def text(self) -> str:
        """What scrolled by, and what is visible."""
        return "\n".join([*self.scrolled, *self.rows]).rstrip("\n")

    @property
    def padded(self) -> str:
        """The same with the blanks at the ends of lines: what a prompt that ends in one is found by."""
        return "\n".join(line.ljust(self.columns) for line in (*self.scrolled, *self.rows))

    @property
    def unwrapped(self) -> str:
        """The same; a line that fills the width is taken to go on in the next."""
        lines = [*self.scrolled, *self.rows]
        return "".join(line if len(line) == self.columns else f"{line}\n" for line in lines)

    def index(self) -> None:
        """Remember the line that is about to scroll away."""
        if self.cursor.y == self.lines - 1 and not self.margins:
            self.scrolled.append(self._row(0))
        super().index()

    def draw(self, data: str) -> None:
        """Leave out what has no width and combines with nothing: pyte drops all text after it."""
        super().draw("".join(char for char in data if wcwidth(char) > 0 or unicodedata.combining(char)))

    def write_process_input(self, data: str) -> None:
        """Send the answer to a question about the cursor or the terminal's kind."""
        self._reply(data)

    def _row(self, y: int) -> str:
        line: Any = self.buffer[y]
        return "".join(line[x].data for x in range(self.columns)).rstrip()
