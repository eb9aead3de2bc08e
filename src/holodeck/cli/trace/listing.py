"""``holodeck trace list``: a line for each trace."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holodeck.cli.trace.page import Page
from holodeck.cli.trace.reading import by_trace, say_no_traces
from holodeck.lib.money import format_usd
from holodeck.traces import (
    Line,
    Node,
    Segment,
    TraceSummary,
    clean,
    cost_of,
    fit,
    format_count,
    format_duration,
    format_tokens,
    format_when,
    width,
)
from holodeck.traces import summarise as summary_of

__all__ = ["list_traces"]

_ID: Final = 32


def list_traces(path: Path, page: Page) -> None:
    """Write a line for each trace; in a terminal that is too narrow two or three. On stderr it is said if there is none.

    Raises:
        SettingError: The file cannot be read; what could be read has been written by then.
    """
    found = False
    for roots in by_trace(path):
        for root in roots:
            found = True
            for line in _lines(root, page):
                page.line(line)
    if not found:
        say_no_traces(path)


def _lines(root: Node, page: Page) -> list[Line]:
    summary = summary_of(root)
    trace_id = fit(clean(summary.trace_id, ascii_only=page.ascii) or "no id", _ID, ascii_only=page.ascii)
    head = Segment(f"{trace_id:<{_ID}}  {format_when(summary.start)}", "dim")
    name = Segment(clean(summary.name, ascii_only=page.ascii) or "(unnamed)", "error" if summary.errors else "name")
    facts = Segment(_facts(root, summary, ascii_only=page.ascii), "time")
    gap = Segment("  ", "dim")
    if not page.limited or width(head.text + name.text + facts.text) + 4 <= page.width:
        return [(head, gap, name, gap, facts)]
    first = [(name, gap, facts)] if width(name.text + facts.text) + 2 <= page.width else [(name,), (gap, facts)]
    last = (gap, head if len(head.text) + 2 <= page.width else Segment(trace_id, "dim"))
    return [_cut(line, page) for line in (*first, last)]


def _cut(line: Line, page: Page) -> Line:
    *before, last = line
    room = page.width - sum(width(segment.text) for segment in before)
    return (*before, Segment(fit(last.text, room, ascii_only=page.ascii), last.style))


def _facts(root: Node, summary: TraceSummary, *, ascii_only: bool) -> str:
    dot = " - " if ascii_only else " · "
    turn = [f"turn {summary.turn}"] if summary.turn is not None else []
    tokens = [format_tokens(summary.input_tokens, summary.output_tokens, ascii_only=ascii_only) + " tokens"] if summary.requests else []
    cost = cost_of(root.span)
    return dot.join(
        [
            *turn,
            format_duration(summary.duration, ascii_only=ascii_only),
            f"{format_count(summary.spans)} span{'s' * (summary.spans != 1)}",
            *tokens,
            *([format_usd(cost)] if cost is not None else []),
            *([f"{summary.tool_calls} tool{'s' * (summary.tool_calls != 1)}"] if summary.tool_calls else []),
            *([f"{summary.errors} failed"] if summary.errors else []),
        ]
    )
