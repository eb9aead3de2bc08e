"""Numbers as short text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holodeck.traces import format_count, format_duration, format_tokens
from holodeck.traces.numbers import format_clock, format_date


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"),
        (-1, "0 µs"),
        (0.0000004, "0 µs"),
        (0.00024, "240 µs"),
        (0.0009994, "999 µs"),
        (0.0009996, "1.0 ms"),
        (0.00124, "1.2 ms"),
        (0.00994, "9.9 ms"),
        (0.00996, "10 ms"),
        (0.086, "86 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.24, "1.24 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 m 00 s"),
        (125, "2 m 05 s"),
        (3599.6, "1 h 00 m"),
        (3720, "1 h 02 m"),
        (86_399, "23 h 59 m"),
        (273_600, "3 d 04 h"),
        (math.nan, "?"),
        (math.inf, "?"),
    ],
)
def test_durations(seconds, text) -> None:
    """Two or three digits that count, in the unit that fits; no rounding ends in 1000 ms or 60.0 s."""
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"),
        (0, "0"),
        (412, "412"),
        (1_412, "1,412"),
        (999_999, "999,999"),
        (1_000_000, "1M"),
        (2_345_678, "2.35M"),
        (999_400_000, "999M"),
        (999_600_000, "1G"),
        (12_340_000_000, "12.3G"),
        (5 * 10**12, "5e+12"),
        (2**63 - 1, "9.2e+18"),
    ],
)
def test_counts(count, text) -> None:
    """Exact below a million, three digits above, a question mark for what is not known."""
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((412, 38), "412→38"),
        ((None, None), "?→?"),
        ((1_412, 0, 300), "1,412→0 (300 cached)"),
        ((412, 38, 0), "412→38"),
    ],
)
def test_tokens(arguments, text) -> None:
    """In and out, the cached part in brackets where there is one."""
    tokens, cached = arguments[:2], arguments[2] if len(arguments) > 2 else None
    assert format_tokens(*tokens, cached=cached) == text


def test_ascii_forms() -> None:
    """A terminal without Unicode gets us and an arrow of two characters."""
    assert format_duration(0.00024, ascii_only=True) == "240 us"
    assert format_tokens(1, 2, ascii_only=True) == "1->2"


@given(st.floats(), st.integers(0, 2**63))
def test_texts_are_short(seconds, count) -> None:
    """No number makes a column wide."""
    assert len(format_duration(seconds)) <= 13 or seconds > 2**64 / 1e9
    assert len(format_count(count)) <= 7


def test_wall_clock() -> None:
    """Times are in UTC to the millisecond and as wide as the blank for a missing one."""
    assert (format_clock(1_754_229_802_125_000_000), format_date(1_754_229_802_125_000_000)) == ("14:03:22.125Z", "2025-08-03")
    assert (format_clock(0), format_date(0)) == (" " * 13, "no date")
    assert format_clock(2**64 - 1) == "23:34:33.709Z"
