"""How a waterfall divides its width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holodeck.traces.cells import width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holodeck.traces.rows import Row

__all__ = ["GAP", "NARROW", "Columns", "divide", "levels_for"]

GAP: Final = "  "
NARROW: Final = 60
"""Below this width there are no bars."""
_GOOD_NAME: Final = 28  # cells of a name that are worth giving up the cached tokens for
_MIN_NAME: Final = 10  # cells of a name that are worth giving up all tokens for
_MIN_BAR: Final = 14
_MAX_BAR: Final = 80


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; a column of width 0 is not there.

    Attributes:
        name: Tree and name.
        bar: Time axis.
        time: Duration.
        input: Input tokens.
        output: Output tokens.
        cached: Whether there is room for cached tokens.
    """

    name: int
    bar: int
    time: int
    input: int
    output: int
    cached: bool


def levels_for(available: int) -> int:
    """How many levels of the tree are indented: a third of the width at most."""
    return max(available // 9, 1)


def divide(rows: Sequence[Row], available: int, arrow: int) -> Columns:
    """The widest columns that fit; shortens the operations of the rows if their names do not fit otherwise.

    Gives up, in this order: bars (in narrow terminals), cached tokens, tokens. What is left over goes to the bars.

    Args:
        rows: All rows.
        available: Cells for all columns.
        arrow: Cells between input and output tokens.
    """
    time, inputs, outputs, cached = _widest(rows)
    bar = max(_MIN_BAR, available // 5) + len(GAP) if available >= NARROW else 0
    room = available - time - len(GAP) - bar
    tokens = inputs + arrow + outputs + len(GAP) if inputs else 0
    taken = _tokens_shown(rows, room, tokens, cached)
    name = _fit_names(rows, room - taken)
    return Columns(
        name=name,
        bar=min(bar - len(GAP) + room - taken - name, _MAX_BAR) if bar else 0,
        time=time,
        input=inputs if taken else 0,
        output=outputs if taken else 0,
        cached=taken > tokens,
    )


def _tokens_shown(rows: Sequence[Row], room: int, tokens: int, cached: int) -> int:
    """Cells for tokens: with the cached ones, without them or none at all, whichever leaves enough for the names."""
    short = _longest((row, row.short_operation) for row in rows)
    lead = max(row.lead for row in rows)
    choices = ((tokens + cached, lead + _GOOD_NAME), (tokens, lead + _MIN_NAME))
    return next((cells for cells, enough in choices if room - cells >= min(short, enough)), 0)


def _fit_names(rows: Sequence[Row], room: int) -> int:
    """Cells for tree and names; shortens the operations if the names do not fit otherwise."""
    natural = _longest((row, row.operation) for row in rows)
    if natural > room:
        for row in rows:
            row.operation = row.short_operation
        natural = _longest((row, row.operation) for row in rows)
    return min(natural, max(room, 1))


def _longest(operations: Iterable[tuple[Row, str]]) -> int:
    return max(row.lead + width(operation) + width(row.name) for row, operation in operations)


def _widest(rows: Sequence[Row]) -> tuple[int, int, int, int]:
    """The longest duration, input tokens, output tokens, cached tokens."""
    return (
        max(len(row.duration) for row in rows),
        max(len(row.input) for row in rows),
        max(len(row.output) for row in rows),
        max(len(row.cached) for row in rows),
    )
