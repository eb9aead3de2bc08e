"""Standard output for lines of traces: colours in a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

from holodeck.cli.console import glyphs_for
from holodeck.traces import Line, Segment

__all__ = ["UNBOUNDED", "Page"]

UNBOUNDED: Final = 120
"""Cells of a line where there is no terminal whose width could be asked for."""


class Page:
    """Writes lines.

    Args:
        width: Cells of a line; None is the terminal's, or 120.
        ascii_only: Nothing but ASCII; always so where the output's encoding or the locale has nothing else.

    Attributes:
        width: Cells of a line.
        limited: The width is that of a terminal, or was asked for.
        ascii: Nothing but ASCII.
    """

    def __init__(self, width: int | None, *, ascii_only: bool) -> None:
        out: Any = sys.stdout
        self._out = out
        with suppress(AttributeError, ValueError):  # a character that the encoding lacks becomes "?"
            self._out.reconfigure(errors="replace")
        terminal = self._out is not None and self._out.isatty()
        self.limited = terminal or width is not None
        self._begun = False
        self.width = width or (shutil.get_terminal_size().columns if terminal else UNBOUNDED)
        self.ascii = ascii_only or glyphs_for(getattr(self._out, "encoding", None), os.environ).ascii
        self._draw = _coloured() if terminal else _plain

    def line(self, line: Line = ()) -> None:
        """Write one line.

        Raises:
            BrokenPipeError: Nobody reads any more.
        """
        if self._out is None:
            return
        self._out.write("".join(map(self._draw, line)).rstrip(" ") + "\n")
        if not self._begun:  # what comes next may take its time
            self._begun = True
            self._out.flush()

    def text(self, text: str, style: str = "name") -> None:
        """Write one line of one style."""
        self.line((Segment(text, style),))


def _plain(segment: Segment) -> str:
    return segment.text


def _coloured() -> Callable[[Segment], str]:
    from rich.console import COLOR_SYSTEMS, Console  # noqa: PLC0415 - only a terminal has colours
    from rich.style import Style  # noqa: PLC0415 - as above

    from holodeck.cli.tree import STYLES  # noqa: PLC0415 - as above

    console = Console()
    system = COLOR_SYSTEMS.get(console.color_system or "")

    @cache
    def style(name: str) -> Style:
        found = Style.parse(STYLES.get(name) or "none")
        return found.without_color if console.no_color else found

    return lambda segment: style(segment.style).render(segment.text, color_system=system)
