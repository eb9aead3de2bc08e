"""An answer on its way to the screen or into a pipe."""

from __future__ import annotations

from typing import TextIO

from holodeck.lib.terminal import TerminalGate

__all__ = ["AnswerWriter"]


class AnswerWriter:
    """Writes an answer as it streams in, without anything a terminal would act upon and without white space at its end.

    Args:
        file: Where to.
        shared: Notes go to the same screen, so they and the answer have to begin on lines of their own.
    """

    def __init__(self, file: TextIO, *, shared: bool) -> None:
        self._file, self._shared = file, shared
        self._gate = TerminalGate()
        self._blank = ""
        self._begun = self._mid_line = self._after_note = False

    def write(self, text: str) -> None:
        """Show the next piece at once, save for what may be the end's white space."""
        self._put(self._gate.feed(text))

    def note_follows(self) -> None:
        """Make room for a line that is not part of the answer."""
        if not self._shared:
            return
        if self._mid_line:
            self._send("\n")
        self._mid_line, self._after_note = False, True

    def end(self) -> None:
        """The answer is complete: end its line, if there is one, and be ready for the next answer."""
        self._put(self._gate.flush())
        if self._begun and (self._mid_line or not self._shared):
            self._send("\n")
        self._blank = ""
        self._begun = self._mid_line = self._after_note = False

    def _put(self, text: str) -> None:
        text = self._blank + text
        shown = text.rstrip()
        self._blank = text[len(shown) :]
        if not shown:
            return
        if self._after_note:
            shown = "\n" + shown.lstrip("\n")
        self._begun, self._mid_line, self._after_note = True, True, False
        self._send(shown)

    def _send(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
