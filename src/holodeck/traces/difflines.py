"""Differences between two traces as styled text.

What it looks like::

      invoke_agent support         2.41 s -> 3.92 s slower · $0.0018 -> $0.0031 costlier
    ! ├─ chat gpt-4o-mini          412→38 ⇒ 812→38 more tokens
    - ├─ execute_tool lookup_order 86 ms
    + └─ execute_tool refund       185 ms
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from holodeck.lib.money import format_usd
from holodeck.traces.cells import clean, fit, pad, width
from holodeck.traces.diff import KINDS, Difference, cost_of, shown
from holodeck.traces.numbers import format_tokens
from holodeck.traces.records import SpanRecord
from holodeck.traces.rows import duration_of
from holodeck.traces.segments import Line, Segment

__all__ = ["diff_lines"]

_MARKS: Final = {"added": "+ ", "removed": "- "}
_INDENT: Final = "  "
_MOST_LEVELS: Final = 8
_NAME: Final = 40
"""Cells of a name beyond which nothing is aligned any more."""


def diff_lines(differences: Sequence[Difference], line_width: int, *, ascii_only: bool = False) -> Iterator[Line]:
    """A line for each difference and for each span above one; two where name and facts do not fit into ``line_width`` cells."""
    drawn = [(difference, *_name(difference, ascii_only=ascii_only)) for difference in shown(differences)]
    column = min(max((width(mark + name) for _, mark, name in drawn), default=0), _NAME, line_width // 2)
    for difference, mark, name in drawn:
        style = "added" if mark == "+ " else "removed" if mark == "- " else "error" if _worse(difference) else "name"
        facts = _facts(difference, ascii_only=ascii_only)
        title = fit(mark + name, line_width, ascii_only=ascii_only)
        if width(title) <= column and column + 2 + width(facts) <= line_width:
            yield Segment(pad(title, column), style), Segment(f"  {facts}".rstrip(), "time")
        elif width(title) + 2 + width(facts) <= line_width:
            yield Segment(title, style), Segment(f"  {facts}".rstrip(), "time")
        else:
            yield (Segment(title, style),)
            if facts:
                yield (Segment(fit(f"      {facts}", line_width, ascii_only=ascii_only), "time"),)


def _name(difference: Difference, *, ascii_only: bool) -> tuple[str, str]:
    kind = difference.kinds[0] if difference.kinds else ""
    mark = _MARKS.get(kind, "! " if any(KINDS[kind] for kind in difference.kinds) else "~ " if kind else "  ")
    indent = _INDENT * min(difference.depth, _MOST_LEVELS)
    return mark, indent + (clean(difference.span.name, ascii_only=ascii_only) or "(unnamed)")


def _worse(difference: Difference) -> bool:
    return "failed" in difference.kinds


def _facts(difference: Difference, *, ascii_only: bool) -> str:
    before = difference.before.span if difference.before else None
    after = difference.after.span if difference.after else None
    if before is None or after is None:
        return _of_one(difference.span, ascii_only=ascii_only)
    return (" - " if ascii_only else " · ").join(_changes(before, after, difference.kinds, ascii_only=ascii_only))


def _of_one(span: SpanRecord, *, ascii_only: bool) -> str:
    tokens = _tokens(span, ascii_only=ascii_only) + " tokens" if span.asks_model else ""
    failed = "failed" if span.failed else ""
    return "  ".join(filter(None, (duration_of(span, ascii_only=ascii_only), tokens, failed)))


def _changes(before: SpanRecord, after: SpanRecord, kinds: Sequence[str], *, ascii_only: bool) -> Iterator[str]:
    arrow = " -> " if ascii_only else " → "
    for kind in kinds:
        if kind == "renamed":
            yield f"was {clean(before.name, ascii_only=ascii_only)}"
        elif kind in ("failed", "recovered"):
            yield "failed" if kind == "failed" else "failed no longer"
        elif kind in ("slower", "faster"):
            yield arrow.join(duration_of(span, ascii_only=ascii_only) for span in (before, after)) + f" {kind}"
        elif kind in ("more tokens", "fewer tokens"):
            yield (
                " ⇒ ".replace("⇒", "=>" if ascii_only else "⇒").join(_tokens(s, ascii_only=ascii_only) for s in (before, after))
                + f" {kind}"
            )
        else:
            yield arrow.join(format_usd(cost_of(span) or 0.0) for span in (before, after)) + f" {kind}"


def _tokens(span: SpanRecord, *, ascii_only: bool) -> str:
    return format_tokens(span.input_tokens, span.output_tokens, ascii_only=ascii_only)
