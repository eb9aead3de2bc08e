"""Files of spans for the commands that read them; whatever is wrong with one is a line that names it."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import click
from pydantic_core import from_json

from holodeck.errors import SettingError, TraceReadError
from holodeck.lib.validation import terminal_safe
from holodeck.traces import Node, build_trees, complete_traces, lines_of, read_spans

__all__ = ["by_trace", "every_root", "name_of", "no_traces", "say_no_traces"]

_GZIP: Final = b"\x1f\x8b"
_BEGINNING: Final = 4096
"""Bytes that say what a file is."""


def name_of(path: Path) -> str:
    """``path`` for people: ``-`` is standard input."""
    return "standard input" if str(path) == "-" else str(path)


def no_traces(path: Path) -> str:
    """That there is nothing to look at, for people."""
    return f"{name_of(path)}: no traces: there is no span in it"


def say_no_traces(path: Path) -> None:
    """Say so on stderr, where it is no failure."""
    click.echo(terminal_safe(no_traces(path)), err=True)


def by_trace(path: Path) -> Iterator[list[Node]]:
    """The trees of each trace, as soon as the trace is complete.

    Raises:
        SettingError: The file cannot be read, or a line of it is not OTLP/JSON; what could be read has been yielded by then.
    """
    with _opened(path) as file:
        yield from complete_traces(lines_of(file))


def every_root(path: Path) -> list[Node]:
    """All trees of a file, by start time.

    Raises:
        SettingError: The file cannot be read, or a line of it is not OTLP/JSON.
    """
    with _opened(path) as file:
        return build_trees(read_spans(file))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if str(path) == "-":
            yield _as_lines(_standard_input())
            return
        with path.open("rb") as file:
            yield _as_lines(file)
    except TraceReadError as error:
        raise SettingError(f"{name_of(path)}: {error.message}") from error
    except BrokenPipeError:
        raise  # of the reader at the other end, not of this file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SettingError(f"{name_of(path)}: the end is missing, or it is damaged: gzip cannot unpack it") from error
    except OSError as error:
        raise SettingError(f"{name_of(path)}: cannot be read ({error.strerror})") from error


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None:
        raise SettingError("standard input is closed: name a file")
    return cast(io.BufferedReader, sys.stdin.buffer)


def _as_lines(file: io.BufferedReader) -> BinaryIO:
    """The file, unpacked if it is packed; a request that goes over many lines, and each one of an array, as a line of its own."""
    if file.peek(len(_GZIP)).startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=file) if file.seekable() else io.BytesIO(gzip.decompress(file.read()))
        file = io.BufferedReader(cast(io.RawIOBase, unpacked))
    beginning = file.peek(_BEGINNING).removeprefix(b"\xef\xbb\xbf").lstrip()
    if beginning.startswith(b"[") or beginning.partition(b"\n")[0].strip() == b"{":
        return io.BytesIO(_flattened(file.read()))
    return file


def _flattened(text: bytes) -> bytes:
    """A JSON document as lines, an array with one for each element; what is none stays as it is, for whoever says what is wrong with it."""
    try:
        found = from_json(text.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return text
    return b"\n".join(json.dumps(item).encode() for item in (found if isinstance(found, list) else [found]))
