"""What is known of the terminal: its charset, and its width where it has no cursor."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from rich.console import Console, ConsoleDimensions

__all__ = ["TerminalConsole", "speaks_utf8"]

_COERCED: Final = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
"""What Python writes into ``LC_CTYPE`` where it found the C locale (PEP 538)."""
_COLUMNS: Final = 80
_ROWS: Final = 25


def speaks_utf8(environ: Mapping[str, str], *, utf8_mode: int | None = None) -> bool:
    """Whether the locale, which tells what the terminal understands, leaves room for more than ASCII.

    ``LC_ALL``, ``LC_CTYPE`` and ``LANG`` count, in this order. Python itself writes UTF-8 whatever they say, so the encoding of its streams
    tells nothing.

    Args:
        environ: The environment.
        utf8_mode: Whether Python found the C locale; ``sys.flags.utf8_mode`` unless it is given.
    """
    locale = _locale(environ, sys.flags.utf8_mode if utf8_mode is None else utf8_mode)
    name, _, charset = locale.partition("@")[0].partition(".")
    if not charset:
        return name not in ("C", "POSIX")
    try:
        return codecs.lookup(charset).name == "utf-8"
    except (LookupError, ValueError):
        return False


def _locale(environ: Mapping[str, str], utf8_mode: int) -> str:
    for variable in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = environ.get(variable, "")
        if value and not (variable == "LC_CTYPE" and utf8_mode and value in _COERCED):
            return value
    return ""


class TerminalConsole(Console):
    """Rich's console, with the real width also where there is no cursor, and without an exit of its own when nobody reads any more."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and rows; ``COLUMNS`` and the terminal itself count with ``TERM=dumb``, too, and nothing is 0."""
        width, height = super().size
        if self.is_dumb_terminal or not (width and height):  # COLUMNS=0 says nothing
            width, height = self._width or 0, self._height or 0
            with suppress(OSError, ValueError):
                own = os.get_terminal_size(self.file.fileno())
                width, height = width or own.columns, height or own.lines
        return ConsoleDimensions(width or _COLUMNS, height or _ROWS)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size

    def on_broken_pipe(self) -> None:
        """Let the caller decide what it means that nobody reads any more.

        Raises:
            BrokenPipeError: The one that is being handled.
        """
        raise  # noqa: PLE0704 - rich calls this while it handles the error
