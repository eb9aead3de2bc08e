"""Standard input as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holodeck.cli.stdin import InputLine, LineSplitter


def _lines(*pieces: bytes, longest: int = 100) -> list[InputLine]:
    splitter = LineSplitter(longest)
    return [line for piece in pieces for line in splitter.feed(piece)] + list(splitter.end())


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_pieces_do_not_matter(pieces):
    """However input is cut into pieces, the lines are the same."""
    whole = b"".join(pieces)
    assert _lines(*pieces) == _lines(whole)


def test_the_last_line_may_lack_its_end():
    """Input that ends in the middle of a line has that line; input that ends with a line end has no empty one."""
    assert _lines(b"a\nb") == [InputLine("a"), InputLine("b")]
    assert _lines(b"a\n") == [InputLine("a")]
    assert _lines(b"") == []
    assert _lines(b"\n\n") == [InputLine(""), InputLine("")]


def test_a_long_line_is_cut_and_said_to_be():
    """No more than the limit is kept of a line, and the next line is whole again."""
    splitter = LineSplitter(10)
    for _ in range(1000):
        assert not list(splitter.feed(b"x" * 1000))
        assert len(splitter._line) <= 10
    assert list(splitter.feed(b"\nshort\n")) == [InputLine("x" * 10, cut=True), InputLine("short")]
    assert _lines(b"x" * 10, longest=10) == [InputLine("x" * 10)]


def test_bytes_that_are_no_text_survive():
    """They become lone surrogates, which the rules for messages refuse by name."""
    assert _lines(b"a\xffb\n") == [InputLine("a\udcffb")]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    """Files that begin with one say the same as files that do not."""
    assert _lines(b"\xef\xbb\xbfexit\n\xef\xbb\xbfb") == [InputLine("exit"), InputLine("\ufeffb")]
