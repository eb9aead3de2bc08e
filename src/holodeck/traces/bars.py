"""Bars on a common time axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holodeck.traces import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holodeck.traces.records import SpanRecord

__all__ = ["ASCII", "BLOCKS", "Axis", "Glyphs"]

_EIGHTHS: Final = ("", "", "▎", "▍", "▌", "▋", "▊", "▉")  # one eighth is left to the first-token mark


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a bar: a full cell, partial cells by eighths, the first-token mark."""

    full: str
    eighths: tuple[str, ...]
    mark: str


BLOCKS: Final = Glyphs("█", _EIGHTHS, "▏")
ASCII: Final = Glyphs("#", ("", "", "#", "#", "#", "#", "#", "#"), "|")


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that a waterfall spans, and the cells that it has for it.

    Attributes:
        begin: Earliest start, Unix time in nanoseconds.
        end: Latest end.
        cells: Width of the bar column.
    """

    begin: int
    end: int
    cells: int

    @classmethod
    def over(cls, spans: Iterable[SpanRecord], cells: int) -> Axis:
        """The axis that holds all spans; clocks may be skewed, so the root need not be the first. Unknown times do not count."""
        timed = [span for span in spans if span.start]
        begin = min((span.start for span in timed), default=0)
        return cls(begin, max((max(span.start, span.end) for span in timed), default=begin), cells)

    def eighths(self, time: int) -> int:
        """How many eighths of a cell lie before ``time``."""
        span = max(self.end - self.begin, 1)
        return min(max(time - self.begin, 0), span) * self.cells * 8 // span

    def bar(self, span: SpanRecord, glyphs: Glyphs) -> tuple[str, str, str]:
        """The bar of a span: text up to the first-token mark, the mark or "", the rest. Without a start there is no bar."""
        if not span.start:
            return "", "", ""
        begin, end = self.eighths(span.start), self.eighths(span.end)
        first = min((begin + 4) // 8, self.cells - 1)
        length = max(end - 8 * first, 2) if end - begin > 1 else 2
        text = " " * first + glyphs.full * (length // 8) + glyphs.eighths[length % 8]
        mark = self.mark(span)
        if mark is None or len(text) - first < 2:
            return text, "", ""
        at = min(max(mark // 8, first), len(text) - 1)
        return text[:at], glyphs.mark, text[at + 1 :]

    def mark(self, span: SpanRecord) -> int | None:
        """Eighths before the first token, None where the span does not say or says something impossible."""
        seconds = span.attributes.get(names.TIME_TO_FIRST_CHUNK)
        if not span.asks_model or isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return None
        if not 0 <= seconds <= span.duration:  # neither do NaN and infinity pass
            return None
        return self.eighths(span.start + round(seconds * 1e9))
