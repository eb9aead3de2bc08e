"""Patterns of RE2."""

from __future__ import annotations

import pytest

from holodeck.lib.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("a(?!b)", "invalid perl operator '(?!' at character 2"),
        (r"(a)\1", r"invalid escape sequence '\1' at character 4"),
        ("(?=a)b(?=c)", "invalid perl operator '(?='"),
        ("a(b", "missing )"),
        ("[b-a]", "invalid character class range 'b-a' at character 2"),
        ("a{2000}", "{2000}' at character 2"),
        ("a\ud83e", "half a character at character 2"),
    ],
)
def test_what_is_no_pattern_is_said_with_its_place(pattern: str, fault: str) -> None:
    """What RE2 does not have, then RE2's own words, and the character where that is known."""
    with pytest.raises(ValueError, match="not a pattern of RE2, which has no look-around and no back-references: ") as caught:
        compile_pattern(pattern)
    assert str(caught.value).endswith(fault)


def test_no_pattern_backtracks() -> None:
    """The classic bomb ends at once."""
    assert compile_pattern(r"(a+)+$").search("a" * 50_000 + "b") is None
