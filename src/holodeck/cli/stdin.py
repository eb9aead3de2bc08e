"""Standard input as lines, whatever arrives: lines of any length, bytes that are no text, an end at any time."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from holodeck.lib.validation import MAX_MESSAGE_CHARS

__all__ = ["InputLine", "LineSplitter", "read_lines"]

_PIECE: Final = 65_536
_LONGEST: Final = 8 * MAX_MESSAGE_CHARS
"""Bytes of a line that are kept: twice what the longest message can take, so that white space around it does not matter."""
_WAITING: Final = 16
"""Lines that are read ahead of the turn that is running."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class InputLine:
    """A line without its end.

    Attributes:
        text: Bytes that are not UTF-8 stand in it as lone surrogates.
        cut: It was longer than any message can be, and its end is missing.
    """

    text: str
    cut: bool = False


class LineSplitter:
    """Makes lines of pieces, and keeps no more than ``longest`` bytes of a line."""

    def __init__(self, longest: int = _LONGEST) -> None:
        self._longest = longest
        self._line = bytearray()
        self._cut = False
        self._first = True

    def feed(self, piece: bytes) -> Iterator[InputLine]:
        """The lines that ``piece`` completes."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._take()
        self._add(rest)

    def end(self) -> Iterator[InputLine]:
        """The last line, if the input does not end with a line end."""
        if self._line:
            yield self._take()

    def _add(self, part: bytes) -> None:
        room = self._longest - len(self._line)
        self._cut = self._cut or len(part) > room
        self._line += part[:room]

    def _take(self) -> InputLine:
        data = bytes(self._line)
        if self._first:
            data = data.removeprefix(_BOM)
        line = InputLine(data.decode("utf-8", "surrogateescape"), self._cut)
        self._line.clear()
        self._cut = self._first = False
        return line


async def read_lines() -> AsyncIterator[InputLine]:
    """The lines of standard input, read in a daemon thread: one that waits for input never holds the process back.

    Tools and their child processes find an empty standard input from here on: what is typed or piped in are messages.
    """
    if (descriptor := _taken_stdin()) is None:
        return
    lines: asyncio.Queue[InputLine | None] = asyncio.Queue(_WAITING)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(descriptor, loop, lines), name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


def _taken_stdin() -> int | None:
    try:
        descriptor = sys.stdin.fileno()
        own = os.dup(descriptor)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    except (AttributeError, OSError, ValueError):  # it was closed by whoever started us
        return None
    return own


def _read(descriptor: int, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[InputLine | None]) -> None:
    with suppress(RuntimeError, asyncio.CancelledError):  # the loop has ended: nobody waits for lines any more
        for line in _lines_of(descriptor):
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()


def _lines_of(descriptor: int) -> Iterator[InputLine]:
    splitter = LineSplitter()
    while piece := _next_piece(descriptor):
        yield from splitter.feed(piece)
    yield from splitter.end()


def _next_piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError:  # the terminal is gone, or it was opened for writing only: there is nothing more
        return b""
