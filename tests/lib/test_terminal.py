"""The terminal gate for text that arrives in pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holodeck.lib.terminal import TerminalGate
from holodeck.lib.validation import terminal_safe

_PARTS = [
    "\x1b",
    "\x1b[",
    "\x9b",
    "\x1b]",
    "\x9d",
    "\x90",
    "\x1b\\",
    "\x9c",
    "\x07",
    "\r",
    "\n",
    "\r\n",
    "31",
    ";",
    "m",
    " ",
    "!",
    "[",
    "]",
    "P",
    "\\",
]
_PARTS += ["a", "hello", "é", "✓", "\x00", "\u202e", "\ud83e", "\t", "\x7f", "~", "?"]
_PARTS += ["\u0301", "\u0301" * 9, "\u200d", "\u200b", "\u2028", "\u200f", "\U000e0041"]
_texts = st.lists(st.sampled_from(_PARTS), max_size=20).map("".join) | st.text(max_size=30)


def _fed(pieces: list[str]) -> str:
    gate = TerminalGate()
    return "".join(gate.feed(piece) for piece in pieces) + gate.flush()


@settings(max_examples=1500, deadline=None)
@given(_texts, st.data())
def test_cutting_a_text_changes_nothing(text, data):
    """Pieces of any size give what terminal_safe gives for the whole."""
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    bounds = sorted({0, len(text), *cuts})
    assert _fed([text[a:b] for a, b in pairwise(bounds)]) == terminal_safe(text)
    assert _fed(list(text)) == terminal_safe(text)


@pytest.mark.parametrize("start", ["\x1b]52;c;", "\x1b[", "\x9b", "\x1b ", "\x90"])
def test_a_sequence_without_an_end_takes_no_memory(start):
    """What is held back stays a few characters long, however long the sequence is."""
    gate = TerminalGate()
    gate.feed(start)
    for _ in range(100):
        assert gate.feed("0000 " if start in {"\x1b]52;c;", "\x90"} else "    ") == ""
        assert len(gate._held) <= 4


def test_text_that_is_harmless_is_shown_at_once():
    """Nothing of an ordinary piece waits for the next one."""
    gate = TerminalGate()
    assert [gate.feed(piece) for piece in ("Hel", "lo wörld", "\n", "✓")] == ["Hel", "lo wörld", "\n", "✓"]


def test_a_gate_can_be_used_again():
    """After flush nothing is left of the text before."""
    gate = TerminalGate()
    gate.feed("a\x1b]0;title")
    assert gate.flush() == ""
    assert gate.feed("b\r") == "b"
    assert gate.flush() == "\n"
    assert gate.feed("c") == "c"


def test_a_long_hostile_piece_is_quick():
    """A piece full of beginnings is read once, not once for each of them."""
    gate = TerminalGate()
    assert gate.feed("\x9d" * 300_000 + "\x07" + "\x1b" * 300_000) == ""
