"""Traces one after the other, each as soon as no further line belongs to it: a long file shows its beginning at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

from holodeck.errors import TraceReadError
from holodeck.traces.otlp import hex_id, read_requests
from holodeck.traces.records import SpanRecord
from holodeck.traces.tree import Node, build_trees

__all__ = ["complete_traces", "lines_of"]

_TRACE_ID: Final = re.compile(rb'"trace(?:Id|_id)"\s*:\s*"([^"\\]*)"')


def lines_of(file: BinaryIO) -> BinaryIO | Sequence[bytes]:
    """Something that can be gone through twice: the file itself, or the lines of one that cannot be wound back, such as a pipe."""
    return file if file.seekable() else file.readlines()


def complete_traces(lines: BinaryIO | Sequence[bytes]) -> Iterator[list[Node]]:
    """The trees of each trace, in the order in which the last lines of the traces stand there.

    Only traces that are not complete yet are kept. A trace whose id stands nowhere in plain text comes at the end.

    Args:
        lines: What :func:`lines_of` returns.

    Yields:
        The trees of one trace: several, if it has several roots.

    Raises:
        TraceReadError: A line is not an export request; names the line. What could be read before it has been yielded by then.
    """
    ends = _ends(lines)
    open_: dict[str, list[SpanRecord]] = {}
    failure: TraceReadError | None = None
    try:
        for number, spans in enumerate(read_requests(_from_the_beginning(lines)), 1):
            for span in spans:
                open_.setdefault(span.trace_id, []).append(span)
            for trace_id in ends.get(number, ()):
                if complete := open_.pop(trace_id, None):
                    yield build_trees(complete)
    except TraceReadError as error:
        failure = error
    for rest in open_.values():
        yield build_trees(rest)
    if failure is not None:
        raise failure


def _ends(lines: BinaryIO | Sequence[bytes]) -> dict[int, list[str]]:
    """For each line the trace ids that stand there for the last time."""
    written: dict[bytes, int] = {}
    for number, line in enumerate(_from_the_beginning(lines), 1):
        written.update(dict.fromkeys(_TRACE_ID.findall(line), number))
    last: dict[str, int] = {}  # one id may be written in several ways
    for trace_id, number in written.items():
        name = hex_id(trace_id.decode("ascii", "replace"))
        last[name] = max(number, last.get(name, 0))
    ends: dict[int, list[str]] = {}
    for name, number in last.items():
        ends.setdefault(number, []).append(name)
    return ends


def _from_the_beginning(lines: BinaryIO | Sequence[bytes]) -> Iterable[bytes]:
    if not isinstance(lines, Sequence):
        lines.seek(0)
    return lines
