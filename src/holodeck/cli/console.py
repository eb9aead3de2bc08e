"""Streams, glyphs and colours: the one way by which text reaches the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Final, TextIO, cast

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from holodeck.cli.above import AboveWriter
from holodeck.cli.tty import TerminalConsole, speaks_utf8
from holodeck.lib.validation import terminal_safe

__all__ = ["ASCII", "NARROW", "UNICODE", "Glyphs", "Notes", "Streams", "glyphs_for", "streams_for_lines", "streams_for_terminal"]


@dataclass(frozen=True)
class Glyphs:
    """The characters beyond ASCII that the chat draws, or what stands for them.

    Attributes:
        tool: Before a tool's name.
        done: It returned.
        failed: It did not.
        dot: Between two facts.
        ellipsis: Where something was cut.
        spinner: Name of a spinner of rich.
        ascii: Nothing but ASCII can be shown.
    """

    tool: str
    done: str
    failed: str
    dot: str
    ellipsis: str
    spinner: str
    ascii: bool


NARROW: Final = 72
"""Cells of a terminal below which what belongs to a heading stands below it."""
UNICODE: Final = Glyphs(tool="⚙", done="✓", failed="✗", dot="·", ellipsis="…", spinner="dots", ascii=False)
ASCII: Final = Glyphs(tool="*", done="ok", failed="x", dot="-", ellipsis="...", spinner="line", ascii=True)


def glyphs_for(encoding: str | None, environ: Mapping[str, str]) -> Glyphs:
    """The glyphs that a stream with this encoding can carry, and that a terminal of this locale understands."""
    if not speaks_utf8(environ):
        return ASCII
    try:
        "⚙✓✗·…├─█▏→".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


class Notes:
    """Everything that is not an answer: lines about what happens, in colour where the terminal has some.

    All text passes the terminal gate here, and none is read as markup.

    Args:
        file: Where to.
        lossless: What cannot be written raises, since it is what was asked for; else the chat goes on without.
    """

    def __init__(self, file: TextIO, *, lossless: bool = False) -> None:
        self.glyphs = glyphs_for(file.encoding, os.environ)
        self.console = TerminalConsole(file=file, markup=False, emoji=False, highlight=False)
        self._lossless = lossless

    @property
    def animated(self) -> bool:
        """Whether a spinner can be drawn."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    @property
    def narrow(self) -> bool:
        """Whether two columns side by side could not be read."""
        return self.console.is_terminal and self.console.width < NARROW

    def line(self, *parts: str | tuple[str, str], wrap: bool = True) -> None:
        """Print one line of plain and of styled (text, style) parts; long lines are broken between words in a terminal only."""
        text = Text(end="")
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(terminal_safe(content), style=style or None)
        self.print(text, wrap=wrap)

    def print(self, text: Text, *, wrap: bool = True) -> None:
        """Print text that has passed the gate already."""
        with nullcontext() if self._lossless else suppress(OSError, ValueError):  # the other end is gone: the chat goes on without
            self.console.print(text, soft_wrap=not (wrap and self.console.is_terminal))

    def error(self, message: str, *, whole: bool = False) -> None:
        """Say what went wrong and what to do: in one line, or as a ``whole`` with the lines that it has, such as those of a diff."""
        if not whole or "\n" not in message.strip():
            self.line(("error: ", "bold red"), _one_line(message))
            return
        first, *others = message.strip().split("\n")
        self.line(("error: ", "bold red"), _one_line(first))
        for line in others:
            self.line("  ", line.rstrip())

    def warning(self, message: str) -> None:
        """Say what the user should know."""
        self.line(("warning: ", "yellow"), _one_line(message))

    def hint(self, message: str) -> None:
        """Say something in passing."""
        self.line((message, "dim"))

    def fit(self, text: str, cells: int) -> str:
        """Safe ``text`` on one line, cut to ``cells`` terminal cells."""
        text = _one_line(text)
        if cell_len(text) <= cells:
            return text
        ellipsis = self.glyphs.ellipsis
        return set_cell_size(text, max(cells - len(ellipsis), 0)).rstrip() + ellipsis


def _one_line(text: str) -> str:
    return " ".join(terminal_safe(text).split())


@dataclass(frozen=True)
class Streams:
    """Where a chat writes.

    Attributes:
        answers: What the agent says.
        notes: Everything else.
        shared: Both end up on one screen, so a note has to begin on a line of its own.
        interactive: Somebody types at the other end.
    """

    answers: TextIO
    notes: Notes
    shared: bool
    interactive: bool


def streams_for_terminal() -> Streams:
    """A conversation in a terminal: everything on stdout."""
    _never_fail(sys.stdout)
    _never_fail(sys.stderr)
    writer = cast(TextIO, AboveWriter(sys.stdout))
    return Streams(writer, Notes(writer), shared=True, interactive=True)


def streams_for_lines() -> Streams:
    """Answers alone on stdout. What else in this process writes there, such as a tool that prints, goes to stderr from now on."""
    _never_fail(sys.stderr)
    errors = sys.stderr or _nowhere()
    shared = _end_up_together()
    return Streams(_taken_stdout(), Notes(errors), shared=shared, interactive=False)


def _taken_stdout() -> TextIO:
    if sys.stdout is None:  # closed by whoever started us
        return _nowhere()
    encoding, errors = sys.stdout.encoding, sys.stderr or _nowhere()
    try:
        own = os.dup(sys.stdout.fileno())
        os.dup2(errors.fileno(), sys.stdout.fileno())
    except (OSError, ValueError):  # no file descriptor behind it
        return sys.stdout
    sys.stdout = errors
    return open(own, "w", encoding=encoding, errors="replace", newline="\n")  # noqa: PTH123 - it lives as long as the process


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - as above


def _end_up_together() -> bool:
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno()) or (sys.stdout.isatty() and sys.stderr.isatty())
    except (AttributeError, OSError, ValueError):  # one of them is closed
        return False


def _never_fail(stream: TextIO | None) -> None:
    """A character that the encoding lacks becomes ``?``."""
    if stream is not None:
        _reconfigure(stream, errors="replace")


def _reconfigure(stream: Any, **options: Any) -> None:
    with suppress(AttributeError, ValueError):
        stream.reconfigure(**options)
