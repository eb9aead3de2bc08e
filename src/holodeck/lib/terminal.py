"""The terminal gate for text that arrives in pieces."""

from __future__ import annotations

import re
from typing import Final

from holodeck.lib.validation import _ESCAPES, _LINE_ENDS, _MARK, terminal_safe  # the same rules, told apart by where a piece ends

__all__ = ["TerminalGate"]

_CSI: Final = re.compile(r"(?P<open>\x1b\[|\x9b)[0-?]*(?P<more>[ -/]?)[ -/]*\Z")
_STRING: Final = re.compile(r"(?P<open>\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])(?P<more>)[^\x07\x1b\x9c\n]*\Z")
_TRAILING_MARKS: Final = re.compile(f"{_MARK}{{1,8}}\\Z")
_ESCAPE: Final = re.compile(r"(?P<open>\x1b)(?P<more>[ -/]?)[ -/]*\Z")


class TerminalGate:
    """:func:`~holodeck.lib.validation.terminal_safe` for a stream.

    However a text is cut into pieces, what ``feed`` and ``flush`` return, joined, is ``terminal_safe`` of the whole. What may be the
    beginning of an escape sequence is held back until its end has come; never more than four characters are kept, since all that matters
    of a sequence that is taken out anyway is how it may go on.
    """

    def __init__(self) -> None:
        self._held = ""
        self._return = False
        self._marks = ""

    def feed(self, text: str) -> str:
        """What of the text so far can be shown now."""
        if not self._held and not self._return and text.isascii() and text.isprintable():
            self._marks = ""
            return text
        text = ("\r" if self._return else "") + text
        self._return = text.endswith("\r")
        # A line end within a sequence counts as \n before sequences are looked for: the two have to happen in this order.
        text = self._held + _LINE_ENDS.sub("\n", text[: len(text) - self._return])
        start = _open_sequence(text)
        self._held = _as_short_as_possible(text[start:])
        return self._counted(text[:start])

    def flush(self) -> str:
        """The rest, at the end of the text; the gate is as new then."""
        rest = self.feed("\n") if self._return else self._counted(self._held)
        self._held, self._return, self._marks = "", False, ""
        return rest

    def _counted(self, text: str) -> str:
        """``text`` made safe, the accents before it counted in."""
        shown = terminal_safe(self._marks + text)
        before, marks = len(self._marks), _TRAILING_MARKS.search(shown)
        self._marks = marks.group() if marks else ""
        return shown[before:]


def _open_sequence(text: str) -> int:
    """Where the sequence begins that may go on in the next piece; the length of ``text`` if there is none."""
    end = len(text)
    last = None
    for found in _ESCAPES.finditer(text):
        if found.end() < end - 1:
            continue
        if last is not None and last.end() == found.start() and found.group() == "\x1b" and _STRING.match(last.group()):
            return last.start()  # a string and the first half of its terminator
        if found.end() == end and any(form.match(found.group()) for form in (_CSI, _STRING, _ESCAPE)):
            return found.start()
        last = found
    return end


def _as_short_as_possible(sequence: str) -> str:
    for form in (_CSI, _STRING, _ESCAPE):
        if found := form.match(sequence.removesuffix("\x1b") if form is _STRING else sequence):
            return found["open"] + found["more"] + ("\x1b" if form is _STRING and sequence.endswith("\x1b") else "")
    return sequence
