"""Text in cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from holodeck.traces.cells import MAX_SHOWN, clean, fit, pad, width


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain", "plain"),
        ("a\n\tb\r\nc\u2028d", "a b c d"),
        ("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07", "red link"),
        ("\x9b31mred\x00\x7f", "red"),
        ("abc\u202edcb\u200f", "abcdcb"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨👩👧 ❤"),
        ("zalgo" + "\u0301" * 50, "zalgo" + "\u0301" * 3),
        ("\ue000\ud800", "��"),
    ],
)
def test_clean(text, safe) -> None:
    """Escape sequences go with their payload, line ends become spaces, joiners and overrides go, piles of marks are cut."""
    assert clean(text) == safe


def test_clean_to_ascii() -> None:
    """In ASCII every other character is a question mark."""
    assert clean("naïve 注文", ascii_only=True) == "na?ve ??"


def test_very_long_text_is_cut_first() -> None:
    """What no line can hold is not even looked at, and the cut shows."""
    assert clean("x" * 10**6) == "x" * MAX_SHOWN + "…"


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("注文を照会", 6, "注文…"),
        ("ab cd", 4, "ab…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("abc", -3, ""),
    ],
)
def test_fit(text, limit, cut) -> None:
    """Cuts between characters, wide ones whole, with an ellipsis."""
    assert fit(text, limit) == cut


def test_fit_in_ascii() -> None:
    """The ellipsis is three dots, or a tilde where there is no room for them."""
    assert [fit("abcdefg", limit, ascii_only=True) for limit in (6, 4, 3, 1)] == ["abc...", "a...", "ab~", "~"]


def test_pad_counts_cells() -> None:
    """Wide characters take two cells."""
    assert pad("注文", 6) == "注文  "


def test_spacing_marks_count() -> None:
    """Where terminals disagree about a mark, the wider reading counts: a line is rather too short than too long."""
    assert width("क\u093f") == 2


@given(st.text(), st.integers(0, 30))
def test_what_was_fitted_fits(text, limit) -> None:
    """Whatever the text, the result is one harmless line of at most the cells that were allowed."""
    result = fit(clean(text), limit)
    assert width(result) <= limit
    assert 0 <= wcswidth(result) <= limit
    assert result.isprintable()
