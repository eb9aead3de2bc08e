"""The rows of a waterfall before they are fitted to a width: tree guides, names, durations, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holodeck.traces.cells import clean
from holodeck.traces.numbers import format_count, format_duration
from holodeck.traces.summary import Usage, usage_of
from holodeck.traces.tree import Node, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holodeck.traces.records import SpanRecord

__all__ = ["ASCII", "LINES", "Guides", "Row", "duration_of", "rows_of"]

_SHORT_OPERATIONS: Final = {"invoke_agent": "agent", "execute_tool": "tool", "invoke_workflow": "workflow", "generate_content": "generate"}


@dataclass(frozen=True, slots=True)
class Guides:
    """The characters of a tree: a child, the last child, a line passing by, nothing passing by."""

    child: str
    last: str
    line: str
    blank: str = "   "


LINES: Final = Guides("├─ ", "└─ ", "│  ")
ASCII: Final = Guides("|- ", "`- ", "|  ")


@dataclass(slots=True)
class Row:
    """One span, ready to be fitted.

    Attributes:
        span: The span.
        guides: The tree up to the name.
        below: The tree on further lines of the same span.
        cut: How many levels deeper it is than the tree shows, such as ``+3 ``; "" where the tree shows it all.
        operation: The first word of the name where it is the operation, else "".
        name: The rest of the name.
        duration: For example ``86 ms``.
        input: Input tokens, "" where the row shows no tokens.
        output: Output tokens.
        cached: For example `` (300 cached)``, or "".
    """

    span: SpanRecord
    guides: str
    below: str
    cut: str
    operation: str
    name: str
    duration: str
    input: str = ""
    output: str = ""
    cached: str = ""

    @property
    def lead(self) -> int:
        """Cells before the name."""
        return len(self.guides) + len(self.cut)

    @property
    def short_operation(self) -> str:
        """``tool`` for ``execute_tool`` and the like, to leave more room for what differs."""
        return _SHORT_OPERATIONS.get(self.operation, self.operation)


def rows_of(root: Node, levels: int, *, ascii_only: bool) -> list[Row]:
    """A row for each span of the tree, parents first.

    Args:
        root: The tree.
        levels: How many levels below the root are indented; deeper ones say how much deeper they are.
        ascii_only: Nothing but ASCII.
    """
    guides = ASCII if ascii_only else LINES
    rows = [_row(node, lead, below, cut, ascii_only=ascii_only) for node, lead, below, cut in _guided(root, levels, guides)]
    if not root.span.asks_model:
        _put_usage(rows[0], usage_of(node.span for node, _ in walk(root)))
    return rows


def _guided(root: Node, levels: int, glyphs: Guides) -> Iterator[tuple[Node, str, str, str]]:
    """Every node with the tree before its name, the tree below it, and its depth cut."""
    pending = [(root, "", "", 0)]
    while pending:
        node, lead, inner, depth = pending.pop()
        yield node, lead, inner + (glyphs.line if node.children else ""), f"+{depth - levels} " if depth > levels else ""
        base = inner if depth < levels else inner[: -len(glyphs.blank)]  # from here on all stand on the same level
        last = len(node.children) - 1
        for position in range(last, -1, -1):
            mine, under = (glyphs.last, glyphs.blank) if position == last else (glyphs.child, glyphs.line)
            pending.append((node.children[position], base + mine, base + under, depth + 1))


def _row(node: Node, guides: str, below: str, cut: str, *, ascii_only: bool) -> Row:
    span = node.span
    name = clean(span.name, ascii_only=ascii_only) or "(unnamed)"
    operation = clean(span.operation, ascii_only=ascii_only)
    if not (operation and name.startswith(operation + " ")):
        operation = ""
    row = Row(span, guides, below, cut, operation, name[len(operation) :], duration_of(span, ascii_only=ascii_only))
    if span.asks_model:
        _put_usage(row, usage_of([span]))
    return row


def duration_of(span: SpanRecord, *, ascii_only: bool) -> str:
    """The duration as text; ``?`` where start or end is not known."""
    return format_duration(span.duration, ascii_only=ascii_only) if span.start and span.end else "?"


def _put_usage(row: Row, usage: Usage) -> None:
    if usage.requests:
        row.input = _sum(usage.input_tokens, unknown=usage.input_unknown)
        row.output = _sum(usage.output_tokens, unknown=usage.output_unknown)
        row.cached = f" ({format_count(usage.cached_tokens)} cached)" if usage.cached_tokens else ""


def _sum(tokens: int, *, unknown: bool) -> str:
    """The tokens that are known, and a sign for those that are not."""
    if unknown:
        return f"{format_count(tokens)}+?" if tokens else format_count(None)
    return format_count(tokens)
