"""Notes, glyphs, and what a terminal is spared."""

from __future__ import annotations

import io

import pytest

from holodeck.cli.console import ASCII, UNICODE, Notes, glyphs_for


def _stream(encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="\n")


def _said(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize(
    ("encoding", "glyphs"), [("utf-8", UNICODE), ("ascii", ASCII), ("cp1252", ASCII), ("nonsense", ASCII), (None, ASCII)]
)
def test_glyphs_fit_the_encoding(encoding, glyphs):
    """Where one glyph cannot be shown none is used."""
    assert glyphs_for(encoding, {}) is glyphs


@pytest.mark.parametrize(("locale", "glyphs"), [("C", ASCII), ("de_DE.ISO-8859-1", ASCII), ("en_US.UTF-8", UNICODE)])
def test_glyphs_fit_the_locale(locale, glyphs):
    """Python's streams are UTF-8 whatever the locale says, the terminal is not."""
    assert glyphs_for("utf-8", {"LC_ALL": locale}) is glyphs


def test_the_ascii_glyphs_are_ascii():
    """What stands for a glyph can be shown everywhere."""
    assert all(str(value).isascii() for value in vars(ASCII).values())


@pytest.mark.parametrize("text", ["[/etc/passwd]", "list[int]", ":smile: and [bold]", "[link=http://x]y[/link]"])
def test_text_is_never_markup(text):
    """What looks like rich's markup is shown as it is."""
    notes = Notes(stream := _stream())
    notes.line(text)
    notes.error(text)
    notes.hint(text)
    assert _said(stream) == f"{text}\nerror: {text}\n{text}\n"


def test_escape_sequences_never_get_through():
    """Whatever is printed passes the gate, styled or not."""
    notes = Notes(stream := _stream())
    hostile = "a\x1b]52;c;ZXZpbA==\x07b\x9b31mc\u202ed\x07"
    notes.line(hostile, (hostile, "bold"))
    notes.warning(hostile)
    assert _said(stream) == "abcdabcd\nwarning: abcd\n"


def test_an_error_is_one_line():
    """A message with line ends is folded."""
    Notes(stream := _stream()).error("first\r\n  second\n")
    assert _said(stream) == "error: first second\n"


def test_an_error_of_many_lines_can_be_shown_whole():
    """The lines of a diff stand below each other, and pass the gate."""
    Notes(stream := _stream()).error("differs:\n  - a\n  + b\x1b[2J\n", whole=True)
    assert _said(stream) == "error: differs:\n    - a\n    + b\n"


def test_lines_in_a_file_are_not_broken():
    """Only a terminal has a width."""
    Notes(stream := _stream()).error("word " * 100)
    assert _said(stream).count("\n") == 1


def test_what_the_encoding_lacks_becomes_a_question_mark():
    """No message raises because of the stream that it goes to."""
    Notes(stream := _stream("ascii")).line("grün ✓")
    assert _said(stream) == "gr?n ?\n"


def test_a_note_to_nobody_does_no_harm():
    """The chat goes on when stderr is gone."""
    stream = _stream()
    notes = Notes(stream)
    notes.error("heard")
    assert _said(stream) == "error: heard\n"
    stream.close()
    notes.error("x")


def test_a_report_to_nobody_is_an_error():
    """What was asked for must not be lost without a word."""
    stream = _stream()
    notes = Notes(stream, lossless=True)
    stream.close()
    with pytest.raises(ValueError, match="closed file"):
        notes.line("x")


def test_fit_counts_cells():
    """Wide characters take two cells; what is cut ends with an ellipsis."""
    notes = Notes(_stream())
    assert notes.fit("日本語日本語", 7) == "日本語…"
    assert notes.fit("a\nb", 7) == "a b"
    assert Notes(_stream("ascii")).fit("abcdefghij", 7) == "abcd..."
