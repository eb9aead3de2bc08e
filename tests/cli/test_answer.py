"""An answer on its way out."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from holodeck.cli.answer import AnswerWriter


def _written(*pieces: str | None, shared: bool = False) -> str:
    """What a file gets; None stands for a note."""
    file = io.StringIO()
    answer = AnswerWriter(file, shared=shared)
    for piece in pieces:
        if piece is None:
            answer.note_follows()
            file.write("[note]\n")
        else:
            answer.write(piece)
    answer.end()
    return file.getvalue()


@given(st.text("ab \n", max_size=30).filter(lambda text: text == text.lstrip()), st.integers(0, 30))
def test_a_pipe_gets_the_answer_and_one_line_end(text, cut):
    """Wherever it is cut, the answer comes out exactly, without the white space at its end."""
    expected = text.strip() + "\n" if text.strip() else ""
    assert _written(text[:cut], text[cut:]) == expected


def test_pieces_are_shown_at_once():
    """Nothing but white space waits for what comes after it."""
    file = io.StringIO()
    answer = AnswerWriter(file, shared=False)
    answer.write("Hel")
    assert file.getvalue() == "Hel"
    answer.write("lo ")
    assert file.getvalue() == "Hello"
    answer.write("you")
    assert file.getvalue() == "Hello you"


def test_on_one_screen_a_note_has_a_line_of_its_own():
    """The answer's line is ended before a note, and goes on after a blank line."""
    assert _written("Let me look.", None, None, "\n\nFound it.", shared=True) == "Let me look.\n[note]\n[note]\n\nFound it.\n"


def test_a_pipe_does_not_know_of_notes():
    """Notes on another stream leave the answer alone."""
    assert _written("Let me look.", None, "\n\nFound it.") == "Let me look.[note]\n\n\nFound it.\n"


def test_no_answer_is_no_line():
    """A turn without text writes nothing."""
    assert _written() == ""
    assert _written(None, shared=True) == "[note]\n"


def test_the_next_answer_begins_anew():
    """After its end a writer is ready for the next answer."""
    file = io.StringIO()
    answer = AnswerWriter(file, shared=True)
    answer.write("one \x1b[")
    answer.end()
    answer.write("two")
    answer.end()
    assert file.getvalue() == "one\ntwo\n"


def test_escape_sequences_that_come_in_pieces_are_taken_out():
    """A sequence does not get through by being split."""
    assert _written("a\x1b", "]52;c;ZX", "Zp\x1b", "\\b\r", "\nc") == "ab\nc\n"
