"""Markdown for a terminal."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from holodeck.cli.blocks import BlockSplitter
from holodeck.cli.console import ASCII, UNICODE, Glyphs, Notes
from holodeck.cli.live import MarkdownStream
from holodeck.cli.markdown import MarkdownRenderer


def _console(width: int = 60, *, colour: bool = True) -> Console:
    return Console(
        file=io.StringIO(), width=width, height=30, force_terminal=True, color_system="standard" if colour else None, no_color=not colour
    )


def _lines(text: str, *, width: int = 60, glyphs: Glyphs = UNICODE, colour: bool = True) -> list[str]:
    renderer = MarkdownRenderer(_console(width, colour=colour), glyphs)
    splitter = BlockSplitter(width)
    return [line.plain for block in (*splitter.feed(text), *splitter.finish()) for line in renderer.lines(block)]


def _streamed(pieces: list[str], width: int = 40, height: int = 12) -> str:
    file = io.StringIO()
    notes = Notes(file)
    notes.console = Console(
        file=file, width=width, height=height, force_terminal=True, color_system="standard", markup=False, highlight=False
    )
    notes.glyphs = UNICODE
    stream = MarkdownStream(notes, lambda: height - 6)
    for piece in pieces:
        stream.write(piece)
        _ = stream.unfinished()
    stream.end()
    return file.getvalue()


_TEXT = st.lists(
    st.sampled_from(
        [
            "word ",
            "**b** ",
            "`c` ",
            "*",
            "_",
            "[l](http://x) ",
            "\n",
            "\n\n",
            "- ",
            "  ",
            "```py\n",
            "def f(): 'x'\n",
            "| a |",
            "|-|",
            "> ",
            "日本 ",
            "# ",
            *("\x1b[2J", "\x1b]8;;u\x07", "&#27;", "<b>", "x" * 30, "\r\n", "\t", "\u202e"),
        ]
    ),
    max_size=40,
)


@settings(deadline=None)
@given(_TEXT, st.lists(st.integers(1, 20), min_size=1))
def test_any_chunking_gives_the_same_final_screen(words, sizes):
    """What has been printed in the end, colours included, depends on the text alone."""
    text, pieces, place = "".join(words), [], 0
    while place < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[place : place + size])
        place += size
    assert _streamed(pieces) == _streamed([text])


@settings(deadline=None)
@given(_TEXT)
def test_nothing_acts_on_the_terminal(words):
    """Whatever comes, the only escape sequences are our own colours."""
    shown = re.sub(r"\x1b\[[0-9;]*m", "", _streamed(["".join(words)]))
    assert not [c for c in shown if c != "\n" and not c.isprintable()]


@settings(deadline=None)
@given(_TEXT, st.integers(20, 60))
def test_no_line_is_too_wide(words, width):
    """Everything but code fits the window."""
    text = re.sub(r"[ \t]+", " ", "".join(words).replace("```py\n", ""))  # deep indentation makes code
    assert all(cell_len(line) <= width for line in _lines(text, width=width))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# A *b*", ["A b"]),
        ("**a** _b_ ~~c~~ `d`", ["a b c d"]),
        ("line one\nline two", ["line one", "line two"]),
        ("[a](http://b) <http://c>", ["a (http://b) http://c"]),
        ("![alt](pic.png)", ["alt (pic.png)"]),
        ("3. c\n4. d", ["3. c", "4. d"]),
        ("- a\n  - b\n\n    c", ["• a", "  • b", "", "    c"]),
        ("> a\n>\n> b", ["│ a", "│", "│ b"]),
        ("***", ["─" * 40]),
        ("<b>x</b> &amp; [y]: z", ["<b>x</b> &amp; [y]: z"]),
        ("list[int] and :smile: [bold]", ["list[int] and :smile: [bold]"]),
        ("| a | b |\n|:-:|--:|\n| 1 | 22 |", ["a │  b", "──┼───", "1 │ 22"]),
        ("```py\nx = 1\n\ny\n```", ["```py", "x = 1", "", "y", "```"]),
        ("    indented\n    code", ["indented", "code"]),
        ("a\n\nb\nc", ["a", "", "b", "c"]),
    ],
)
def test_each_kind(text, shown):
    """What each kind of Markdown looks like."""
    assert _lines(text) == shown


@pytest.mark.parametrize("formula", [r"\(a_1 * b * c_2\)", r"\[a*b*c \\ d\]", "$$_x_ < *y* \\\\ z$$", "\\[\nE = mc^2 \\\\\n\\]"])
def test_formulas_are_as_they_were_written(formula):
    """Nothing in them is taken for an escape or for formatting."""
    assert "\n".join(_lines(f"So {formula} holds, for $5 and *more*.")) == f"So {formula} holds, for $5 and more."


def test_half_a_formula_is_text():
    """Without its end it is what it is without formulas."""
    assert _lines(r"\(open and \*this\* $$") == ["(open and *this* $$"]


@pytest.mark.parametrize("width", [12, 20, 40, 80, 200])
@pytest.mark.parametrize("columns", [2, 8, 30])
def test_nothing_of_a_table_is_lost(columns, width):
    """However many columns it has for however narrow a terminal; where they do not fit side by side, they stand as they were written."""
    rows = [[f"{row}{chr(97 + column % 26)}{column}" for column in range(columns)] for row in ("head", 1, 2)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * columns, *rows[1:]))
    lines = _lines(text, width=width)
    assert all(cell_len(line) <= width for line in lines)
    if columns == 30 and width < 200:
        assert " ".join(lines).replace("- ", "-").split(" | ")[1:5] == rows[0][1:5]
    shown = "".join(lines)
    for character in "".join(map("".join, rows)):
        assert character in shown
        shown = shown.replace(character, "", 1)


def test_without_unicode():
    """Bullets, quotations, rules and tables are drawn in ASCII."""
    shown = _lines("- a\n\n> b\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |", glyphs=ASCII)
    assert shown == ["- a", "", "| b", "", "-" * 40, "", "a | b", "--+--", "1 | 2"]


def test_without_colours_code_can_still_be_told():
    """Its marks stay where nothing else shows that it is code."""
    assert _lines("some `code`", colour=False) == ["some `code`"]


def test_code_is_as_it_was_written():
    """No line of code is broken, padded, indented or cut, whatever the language or the width."""
    code = "def f():\n    return 'x'   \n\n" + "y" * 200
    for info in ("python", "no-such-language", ""):
        assert _lines(f"```{info}\n{code}\n```", width=40)[1:-1] == code.split("\n")


def test_code_has_colours():
    """A keyword is one."""
    assert "\x1b[35mdef\x1b[0m" in _streamed(["```python\ndef f(): pass\n```"])
