"""Bars on a time axis."""

import math
from dataclasses import replace

import pytest

from holodeck.traces.bars import ASCII, BLOCKS, Axis
from traces.spans import START, chat, record


def bar(begin: float, end: float, glyphs=BLOCKS) -> str:
    """A bar on an axis of ten cells and 80 milliseconds: one millisecond is an eighth of a cell."""
    return "".join(Axis(START, START + 80_000_000, 10).bar(record(1, None, "s", begin, end), glyphs))


@pytest.mark.parametrize(
    ("begin", "end", "text"),
    [
        (0, 80, "██████████"),
        (0, 0, "▎"),
        (0, 1, "▎"),
        (0, 12, "█▌"),
        (0, 17, "██"),
        (0, 23, "██▉"),
        (16, 24, "  █"),
        (19, 24, "  █"),
        (20, 24, "   ▎"),
        (80, 80, "         ▎"),
        (-50, 200, "██████████"),
        (40, 20, "     ▎"),
    ],
)
def test_blocks(begin, end, text) -> None:
    """Ends go by eighths of a cell, starts by cells; one eighth alone is never drawn, as it is the sign of a first token."""
    assert bar(begin, end) == text


@pytest.mark.parametrize(("begin", "end", "text"), [(0, 80, "##########"), (0, 0, "#"), (0, 12, "##"), (16, 24, "  #")])
def test_ascii(begin, end, text) -> None:
    """Without blocks a bar is made of whole cells."""
    assert bar(begin, end, ASCII) == text


@pytest.mark.parametrize(
    ("seconds", "parts"),
    [
        (0.0, ("", "▏", "█████████")),
        (0.04, ("█████", "▏", "████")),
        (0.08, ("█████████", "▏", "")),
        (0.09, ("██████████", "", "")),
        (-1, ("██████████", "", "")),
        (math.nan, ("██████████", "", "")),
        (10**400, ("██████████", "", "")),
        (True, ("██████████", "", "")),
        ("soon", ("██████████", "", "")),
    ],
)
def test_first_token_marks(seconds, parts) -> None:
    """The mark stands where the first token came; a time that cannot be makes no mark."""
    span = chat(1, None, 0, 80, response__time_to_first_chunk=seconds)
    assert Axis(START, START + 80_000_000, 10).bar(span, BLOCKS) == parts


def test_a_bar_of_one_cell_has_no_mark() -> None:
    """A mark would be all that is left of it."""
    assert Axis(START, START + 80_000_000, 10).bar(chat(1, None, 0, 8, response__time_to_first_chunk=0.004), BLOCKS) == ("█", "", "")


def test_the_axis_holds_all_spans_that_have_a_time() -> None:
    """From the earliest start to the latest end, without spans that do not say when they were."""
    spans = [record(1, None, "a", 5, 10), record(2, 1, "b", 1, 3), record(3, 1, "c", 30, 2), replace(record(4, 1, "d", 0, 0), start=0)]
    assert Axis.over(spans, 10) == Axis(START + 1_000_000, START + 30_000_000, 10)
    assert Axis.over([], 10) == Axis(0, 0, 10)
