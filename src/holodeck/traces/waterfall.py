"""The waterfall of a trace as styled text: a tree, bars on a common time axis, durations, tokens, errors in place.

What it looks like::

    invoke_agent support · 2.41 s · trace 4bf92f3577b34da6a3ce929d0e0e4736
    invoke_agent support           ██████████████████  2.41 s  1,924→96 (300 cached)
    ├─ chat gpt-4o-mini            ██▏███              812 ms    412→38
    ├─ execute_tool lookup_order         ▋              86 ms
    ├─ execute_tool refund_policy        █▍            185 ms
    │  ✗ timeout: the tool did not answer in time
    └─ chat gpt-4o-mini                   ███▏██████▉  1.41 s  1,512→58 (300 cached)

Styles are names with a meaning; whoever prints the lines gives them colours. Everything can be read without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holodeck.traces import bars, names
from holodeck.traces.cells import clean, fit, pad, width
from holodeck.traces.columns import GAP, NARROW, Columns, divide, levels_for
from holodeck.traces.content import content_of
from holodeck.traces.numbers import format_clock, format_date
from holodeck.traces.rows import Row, duration_of, rows_of
from holodeck.traces.segments import Line, Segment, WaterfallOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holodeck.traces.records import SpanRecord
    from holodeck.traces.tree import Node

__all__ = ["error_of", "iter_waterfall", "waterfall"]

_CLOCK = len(format_clock(0)) + 1
_LABEL = 9  # cells of the longest label of captured content


def waterfall(root: Node, options: WaterfallOptions) -> list[Line]:
    """The tree under ``root`` as lines.

    The first line names the root, its duration and its trace (the trace id moves to a second line where it does not fit). Then follows a
    line for each span, with lines for its error and its captured content below it. Work and memory grow linearly with the number of spans,
    whatever their depth.
    """
    return list(iter_waterfall(root, options))


def iter_waterfall(root: Node, options: WaterfallOptions) -> Iterator[Line]:
    """The same line by line, for a trace that is too long to be kept as text."""
    layout = _Layout(root, options)
    for line in layout.lines():
        yield _clipped(line, options) if options.width < NARROW + _CLOCK else line


class _Layout:
    """One waterfall: its rows, the columns that they share, the time axis."""

    def __init__(self, root: Node, options: WaterfallOptions) -> None:
        self._root = root
        self._options = options
        self._ascii = options.ascii
        self._arrow = "->" if options.ascii else "→"
        self._glyphs = bars.ASCII if options.ascii else bars.BLOCKS

    def lines(self) -> Iterator[Line]:
        yield from self._header()  # before the rows are laid out, which takes its time in a long trace
        available = self._options.width - (_CLOCK if self._options.timestamps else 0)
        rows = rows_of(self._root, levels_for(available), ascii_only=self._ascii)
        self._columns: Columns = divide(rows, available, len(self._arrow))
        self._axis = bars.Axis.over((row.span for row in rows), self._columns.bar)
        for row in rows:
            yield self._row(row)
            if row.span.failed:
                yield self._below(row, "x " if self._ascii else "✗ ", error_of(row.span), "error")
            if self._options.content:
                for label, text in content_of(row.span):
                    yield self._below(row, f"{label:<{_LABEL}}  ", text, "dim")

    def _header(self) -> Iterator[Line]:
        span, dot = self._root.span, " - " if self._ascii else " · "
        facts = [Segment(dot, "dim"), Segment(duration_of(span, ascii_only=self._ascii), "time")]
        if self._options.timestamps:
            facts.append(Segment(dot + format_date(span.start), "dim"))
        if self._root.orphan:
            facts.append(Segment(dot + "parent missing", "dim"))
        trace = f"trace {self._clean(span.trace_id) or 'unknown'}"
        name = self._clean(span.name) or "(unnamed)"
        room = self._options.width - sum(width(fact.text) for fact in facts)
        fits = width(name + dot + trace) <= room
        title = Segment(fit(name, room, ascii_only=self._ascii), "name")
        yield (title, *facts, Segment(dot + trace, "dim")) if fits else (title, *facts)
        if not fits:
            yield (Segment(fit(trace, self._options.width, ascii_only=self._ascii), "dim"),)

    def _row(self, row: Row) -> Line:
        columns = self._columns
        return (
            *self._clock(format_clock(row.span.start)),
            *self._name(row),
            *(self._bar(row.span) if columns.bar else ()),
            Segment(GAP + row.duration.rjust(columns.time), "time"),
            *(self._tokens(row) if columns.input and row.input else ()),
        )

    def _name(self, row: Row) -> Iterator[Segment]:
        if row.guides:
            yield Segment(row.guides, "tree")
        if row.cut:
            yield Segment(row.cut, "dim")
        room = self._columns.name - row.lead
        text = pad(fit(row.operation + row.name, room, ascii_only=self._ascii), room)
        split = len(row.operation) if text.startswith(row.operation) else len(text)
        if row.operation:
            yield Segment(text[:split], "operation")
        yield Segment(text[split:], "name")

    def _bar(self, span: SpanRecord) -> Iterator[Segment]:
        style = "bar.error" if span.failed else "bar"
        before, mark, after = self._axis.bar(span, self._glyphs)
        rest = self._columns.bar - len(before) - len(mark)
        if not mark:
            yield Segment(GAP + before.ljust(self._columns.bar), style)
            return
        yield Segment(GAP + before, style)
        yield Segment(mark, "mark")
        yield Segment(after.ljust(rest), style)

    def _tokens(self, row: Row) -> Iterator[Segment]:
        text = GAP + row.input.rjust(self._columns.input) + self._arrow
        if self._columns.cached and row.cached:
            yield Segment(text + row.output.ljust(self._columns.output), "tokens")
            yield Segment(row.cached, "dim")
        else:
            yield Segment(text + row.output, "tokens")

    def _below(self, row: Row, label: str, text: str, style: str) -> Line:
        """A further line of a row, cut to the width."""
        lead = (*self._clock(""), *((Segment(row.below, "tree"),) if row.below else ()))
        room = self._options.width - sum(len(part.text) for part in lead)
        return (*lead, Segment(fit(label + self._clean(text), room, ascii_only=self._ascii), style))

    def _clock(self, time: str) -> Line:
        return (Segment(time.ljust(_CLOCK), "dim"),) if self._options.timestamps else ()

    def _clean(self, text: str) -> str:
        return clean(text, ascii_only=self._ascii)


def error_of(span: SpanRecord) -> str:
    """What went wrong, as far as the span says: type and message, from the span itself or from the exception that it recorded."""
    recorded = next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})
    kind = str(span.attributes.get(names.ERROR_TYPE) or recorded.get(names.EXCEPTION_TYPE) or "")
    message = span.status_message or str(recorded.get(names.EXCEPTION_MESSAGE) or "")
    if kind and message and not message.startswith(kind):
        return f"{kind}: {message}"
    return message or kind or "error"


def _clipped(line: Line, options: WaterfallOptions) -> Line:
    """The line without what is over the width: a very narrow terminal holds not even the columns that are always there."""
    kept: list[Segment] = []
    room = max(options.width, 0)
    for segment in line:
        text = fit(segment.text, room, ascii_only=options.ascii)
        room -= width(text)
        if text:
            kept.append(Segment(text, segment.style))
    return tuple(kept)
