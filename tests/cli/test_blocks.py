"""Markdown cut into blocks while it streams."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holodeck.cli.blocks import Block, BlockSplitter

_PIECES = st.lists(
    st.sampled_from(
        [
            "word ",
            "- ",
            "\n",
            "\n\n",
            "  ",
            "    ",
            "```\n",
            "~~~",
            "**",
            "日本",
            "> ",
            "x" * 13,
            "1. ",
            "7) ",
            "# ",
            "---",
            "===",
            "| ",
            "a b c d e",
        ]
    ),
    max_size=40,
)


def _blocks(pieces: list[str], width: int = 80, rows: int = 16) -> list[Block]:
    splitter = BlockSplitter(width, rows)
    found = []
    for piece in pieces:
        found += splitter.feed(piece)
        _ = splitter.unfinished
    return [*found, *splitter.finish()]


def _rows(blocks: list[Block]) -> list[object]:
    """Blocks as what is printed of them: rows of a plain block are printed one after the other however they come."""
    rows: list[object] = []
    for block in blocks:
        if block.plain:
            rows += [(line, block.gap and not number) for number, line in enumerate(block.lines)]
        else:
            rows.append((tuple(block.lines), block.gap, block.code, block.info, block.opening, block.closing))
    return rows


@settings(deadline=None)
@given(_PIECES, st.lists(st.integers(1, 30), min_size=1), st.integers(8, 20), st.integers(3, 6))
def test_however_a_text_is_cut_the_blocks_are_the_same(pieces, sizes, width, rows):
    """Blocks depend on the text alone."""
    text = "".join(pieces)
    cut, place = [], 0
    while place < len(text):
        size = sizes[len(cut) % len(sizes)]
        cut.append(text[place : place + size])
        place += size
    assert _rows(_blocks(cut, width, rows)) == _rows(_blocks([text], width, rows))


@settings(deadline=None)
@given(_PIECES, st.integers(8, 80))
def test_no_word_is_lost(pieces, width):
    """Every character but white space is in some block, in order."""
    text = "".join(pieces)
    shown = "".join((b.opening or "") + b.text + (b.closing or "") for b in _blocks([text], width, 4))
    assert "".join(shown.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("# head\ntext", ["# head", "text"]),
        ("- a\n- b\n  more\n\n  and more\n- c", ["- a", "- b\n  more\n\n  and more", "- c"]),
        ("text\n- a", ["text", "- a"]),
        ("in the year\n1984. It", ["in the year\n1984. It"]),
        ("Title\n---\ntext", ["Title\n---\ntext"]),
        ("- a\n\n---\n\ntext", ["- a", "---", "text"]),
        ("- a\n  ```\n  x\n\n  y\n  ```\n- b", ["- a\n  ```\n  x\n\n  y\n  ```", "- b"]),
        ("1. a\n```\nx\n```\n2. b", ["1. a", "x", "2. b"]),
        ("> a\n> b\n\nc", ["> a\n> b", "c"]),
        ("| a |\n|---|\n| b |", ["| a |\n|---|\n| b |"]),
    ],
)
def test_where_blocks_end(text, blocks):
    """Each kind of block ends where Markdown says."""
    assert [block.text for block in _blocks([text])] == blocks


def test_long_code_comes_in_parts():
    """It is not waited for: the parts together are the code, the fences stand at its ends."""
    code = "\n".join(f"x{n}" for n in range(50))
    blocks = _blocks([f"```py\n{code}\n```"], rows=16)
    assert "\n".join(block.text for block in blocks) == code
    assert [block.opening for block in blocks] == ["```py", None, None, None]
    assert [block.closing for block in blocks] == [None, None, None, "```"]
    assert {block.info for block in blocks} == {"py"}


def test_a_block_that_outgrows_the_screen_comes_row_by_row():
    """Rows come as they are full, none wider than the window, before the block has ended."""
    splitter = BlockSplitter(20, 4)
    found = [row for n in range(100) for block in splitter.feed(f"word{n} ") for row in block.lines]
    assert len(found) > 30
    assert all(len(row) <= 20 for row in found)


@pytest.mark.parametrize("line", ["x" * 1000, "word " * 200, "日本語" * 200, "x\n"])
def test_the_cost_is_linear(line):
    """Ten times the text is no more than about ten times the work, also in one line without end."""

    def seconds(times: int) -> float:
        start = time.process_time()
        _blocks([line[n : n + 20] for n in range(0, len(line), 20)] * times)
        return time.process_time() - start

    few, many = max(min(seconds(20) for _ in range(3)), 0.002), min(seconds(200) for _ in range(3))
    assert many / few < 30
