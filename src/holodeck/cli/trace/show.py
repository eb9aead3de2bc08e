"""``holodeck trace show`` and ``holodeck trace list``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from holodeck.cli.trace.data import trace_data, write_json
from holodeck.cli.trace.page import Page
from holodeck.cli.trace.reading import by_trace, name_of, no_traces
from holodeck.errors import SettingError, TraceReadError
from holodeck.lib.whole_file import write_whole
from holodeck.traces import Node, WaterfallOptions, html_page, iter_waterfall

__all__ = ["show_json", "show_page", "show_traces"]


def show_traces(path: Path, page: Page, *, trace_id: str | None, content: bool) -> None:
    """Write the waterfall of each trace.

    Args:
        path: The file.
        page: Where to.
        trace_id: Beginning of the ids of the traces to show, in lower case; None shows all.
        content: Captured content is shown.

    Raises:
        SettingError: The file cannot be read, or has no such trace; what could be read has been written by then.
        TraceReadError: There is no trace in it.
    """
    options = WaterfallOptions(width=page.width, ascii=page.ascii, content=content)
    first = True
    for root in _chosen(path, trace_id):
        if not first:
            page.line()
        first = False
        for line in iter_waterfall(root, options):
            page.line(line)


def show_json(path: Path, *, trace_id: str | None, content: bool) -> None:
    """Write a line of JSON for each trace; arguments and failures as of :func:`show_traces`."""
    for root in _chosen(path, trace_id):
        write_json(trace_data(root, content=content))


def show_page(path: Path, page: Path, *, trace_id: str | None, content: bool) -> None:
    """Write the waterfall of each trace into one HTML page.

    Args:
        path: The file.
        page: The page; ``-`` is standard output. It is there whole, or not at all.
        trace_id: Beginning of the ids of the traces to show, in lower case; None shows all.
        content: Captured content is shown.

    Raises:
        SettingError: The file cannot be read, or has no such trace, or the page cannot be written.
        TraceReadError: There is no trace in it.
    """
    pieces = html_page(_chosen(path, trace_id), name_of(path), content=content)
    if str(page) == "-":
        for piece in pieces:
            sys.stdout.write(piece)
        return
    if page.exists() and path.exists() and page.samefile(path):
        raise SettingError(f"--html {page}: these are the spans themselves: name another file")
    try:
        write_whole(page, (piece.encode(errors="replace").decode() for piece in pieces))  # half a character is no text
    except OSError as error:
        raise SettingError(f"--html {page}: cannot be written ({error.strerror})") from error


def _chosen(path: Path, wanted: str | None) -> Iterator[Node]:
    """The trees of the traces whose ids begin like this.

    Raises:
        SettingError: The file cannot be read, or has no such trace.
        TraceReadError: There is no trace in it.
    """
    any_at_all = found = False
    for roots in by_trace(path):
        for root in roots:
            any_at_all = True
            if wanted is None or root.span.trace_id.startswith(wanted):
                found = True
                yield root
    if not any_at_all:
        raise TraceReadError(no_traces(path))
    if not found:
        raise SettingError(f"{name_of(path)}: there is no trace {wanted} in it: 'holodeck trace list' shows those that are")
