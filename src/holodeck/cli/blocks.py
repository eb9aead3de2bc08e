"""Markdown that streams in, cut into blocks as soon as each is complete.

Where it is cut depends on the text alone, never on the pieces that it came in. Each line is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len, chop_cells

__all__ = ["Block", "BlockSplitter"]

_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`\n]*)$")
_INNER_FENCE: Final = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(?P<mark>`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_INTERRUPTS: Final = re.compile(r" {0,3}(?:[-*+]\s+\S|1[.)]\s+\S|>|#{1,6}(?:\s|$)|`{3,}|~{3,})")
"""What begins a new block in the line below a paragraph (CommonMark 0.31, "Paragraphs" and what may interrupt them)."""
_RULE: Final = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE: Final = re.compile(r" {0,3}(?:-+|=+)\s*$")
"""Below a paragraph it makes a heading."""
_INDENTED: Final = re.compile(r"(?: {2}|\t)")


@dataclass
class Block:
    """A part of the text that is shown as a whole.

    Attributes:
        lines: Its lines without their ends; of code without the fences.
        gap: A blank line stands before it.
        code: It is code, or a part of it.
        info: What stands behind the opening fence.
        opening: The line that opens the code, where this is its first part.
        closing: The line that closes it, where this is its last part.
        plain: It is part of something too large to wait for: rows that are shown as they were written.
    """

    lines: list[str] = field(default_factory=list)
    gap: bool = False
    code: bool = False
    info: str = ""
    opening: str | None = None
    closing: str | None = None
    plain: bool = False

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


class BlockSplitter:
    """Takes text in any pieces and gives complete blocks.

    A block is a paragraph, a heading, a rule, a quotation, a table, one item of a list with all that is in it, or a part of fenced code.
    One that outgrows ``rows`` is not waited for: it comes row by row, as it was written.

    Attributes:
        width: Cells of a row.
        rows: Most rows that wait for the end of their block.
    """

    def __init__(self, width: int = 80, rows: int = 16) -> None:
        self.width, self.rows = width, rows
        self._pieces: list[str] = []  # of the line that has not ended
        self._piece_cells = 0
        self._mid_line = False  # the beginning of that line has been given already
        self._forget()
        self._blank = self._begun = False

    def _forget(self) -> None:
        self._open: Block | None = None
        self._height = 0  # rows of the complete lines of the open block
        self._fence = ""  # what closes the code
        self._inner = ""  # the same for code within a list item
        self._item = False

    def feed(self, text: str) -> Iterator[Block]:
        """The blocks that are complete now."""
        first, *lines = text.split("\n")
        self._add(first)
        for line in lines:
            yield from self._take(self._end_line())
            self._add(line)
        if self._piece_cells > self.width and not self._fence:
            yield from self._take_long()

    def finish(self) -> Iterator[Block]:
        """What is left at the end of the text; the splitter is as new then."""
        if self._pieces:
            yield from self._take(self._end_line())
        yield from self._close()
        self._blank = self._begun = False

    @property
    def unfinished(self) -> Block | None:
        """What has begun and is not complete: how it looks so far."""
        line, block = "".join(self._pieces), self._open
        if block is None and not line.strip():
            return None
        if block is not None and not line:
            return block
        if block is None and (found := _FENCE.match(line)):
            return Block([], self._gap(), code=True, info=found["info"].strip(), opening=line)
        if block is None:
            return Block([line], self._gap())
        blanks = [""] if self._blank and not block.code else []
        return Block([*block.lines, *blanks, line], block.gap, block.code, block.info, block.opening, plain=block.plain)

    def _add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)
            self._piece_cells += cell_len(piece)

    def _end_line(self) -> str:
        line = "".join(self._pieces)
        self._pieces.clear()
        self._piece_cells = 0
        return line

    def _gap(self) -> bool:
        return self._blank and self._begun

    def _is_plain(self) -> bool:
        return self._open is not None and self._open.plain

    def _take(self, line: str) -> Iterator[Block]:
        if self._fence:
            yield from self._take_code(line)
        elif self._mid_line and self._open is not None:
            self._open.lines += [line] * bool(line.strip())
            self._mid_line = False
            yield from self._plain_rows(whole=True)
        elif not line.strip():
            yield from self._take_blank()
        else:
            yield from self._take_text(line)

    def _take_code(self, line: str) -> Iterator[Block]:
        assert self._open is not None
        if _closes(line, self._fence):
            self._open.closing, self._fence = line, ""
            yield from self._close()
            return
        self._open.lines.append(line)
        self._height += self._rows_of(line)
        if self._height >= self.rows:
            yield self._open
            self._open, self._height = Block(code=True, info=self._open.info), 0

    def _take_blank(self) -> Iterator[Block]:
        if self._item and self._open is not None and not self._open.plain:
            if self._inner:
                self._open.lines.append("")
                self._height += 1
            else:
                self._blank = True  # the item may go on below
            return
        yield from self._close()
        self._blank = True

    def _take_long(self) -> Iterator[Block]:
        """Look at a line that has not ended, and is long enough for its beginning to say what it is."""
        line = "".join(self._pieces)
        self._pieces = [line]
        if not self._mid_line:
            if not line.strip():
                return
            if self._open is not None and not self._goes_on(line):
                yield from self._close()
            self._keep_blank()
        if self._is_plain():
            yield from self._plain_rows()
        elif self._outgrown():
            yield from self._turn_plain()

    def _keep_blank(self) -> None:
        """A blank line within an item is part of it once the item has gone on."""
        if self._open is not None and self._blank:
            self._open.lines.append("")
            self._height += 1
            self._blank = False

    def _take_text(self, line: str) -> Iterator[Block]:
        if self._open is not None and not self._goes_on(line):
            yield from self._close()
        if self._open is None:
            yield from self._begin(line)
        else:
            self._keep_blank()
            self._open.lines.append(line)
            self._height += self._rows_of(line)
            self._watch_inner_fence(line)
        if self._is_plain():
            yield from self._plain_rows(whole=True)
        elif self._open is not None and not self._fence and self._outgrown():
            yield from self._turn_plain(whole=True)

    def _begin(self, line: str) -> Iterator[Block]:
        self._open, self._blank, self._begun = Block([line], self._gap()), False, True
        self._height = self._rows_of(line)
        self._item = bool(_ITEM.match(line)) and not self._is_rule(line)
        if (found := _FENCE.match(line)) and not self._outgrown():
            self._fence, self._height, self._item = found["mark"], 0, False
            self._open = Block([], self._open.gap, code=True, info=found["info"].strip(), opening=line)
        elif (_HEADING.match(line) or self._is_rule(line)) and not self._outgrown():
            yield from self._close()
        elif self._item:
            self._watch_inner_fence(line)

    def _goes_on(self, line: str) -> bool:
        """Whether ``line`` belongs to the open block."""
        assert self._open is not None
        breaks = bool(_INTERRUPTS.match(line)) or self._is_rule(line)
        if self._open.plain:
            return not breaks
        if self._item:
            if self._inner or _INDENTED.match(line):
                return True
            return not self._blank and not _ITEM.match(line) and not breaks
        if self._open.lines[0].lstrip().startswith(">") and line.lstrip().startswith(">"):
            return True
        return (cell_len(line) <= self.width and bool(_UNDERLINE.match(line))) or not breaks

    def _is_rule(self, line: str) -> bool:
        return cell_len(line) <= self.width and bool(_RULE.match(line))  # a longer one might go on with something else

    def _watch_inner_fence(self, line: str) -> None:
        if not self._item:
            return
        if self._inner:
            if _closes(line.strip(), self._inner):
                self._inner = ""
        elif found := _INNER_FENCE.match(line):
            self._inner = found["mark"]

    def _rows_of(self, line: str) -> int:
        return max(-(-cell_len(line) // self.width), 1)

    def _outgrown(self) -> bool:
        return self._height + -(-self._piece_cells // self.width) > self.rows

    def _turn_plain(self, *, whole: bool = False) -> Iterator[Block]:
        """Give up waiting for the end of the open block."""
        if self._open is None:  # its first line is longer than everything that is waited for
            self._open, self._blank, self._begun = Block([], self._gap()), False, True
        self._open.plain, self._item, self._inner = True, False, ""
        yield from self._plain_rows(whole=whole)

    def _plain_rows(self, *, whole: bool = False) -> Iterator[Block]:
        """The rows of the plain block that nothing can change any more."""
        assert self._open is not None
        rows: list[str] = []
        lines = self._open.lines if whole else [*self._open.lines, *([self._end_line()] if self._pieces else [])]
        for number, line in enumerate(lines):
            *full, last = list(_wrapped(line, self.width))
            rows += full
            if number == len(lines) - 1 and not whole:
                self._add(last)
                self._mid_line = True
            elif last.strip() or not full:
                rows.append(last)
        gap = self._open.gap
        self._open = Block(plain=True, gap=gap and not rows)
        if rows:
            yield Block(rows, gap, plain=True)

    def _close(self) -> Iterator[Block]:
        block = self._open
        self._forget()
        if block is not None and (block.lines or block.code):
            yield block


def _wrapped(line: str, width: int) -> Iterator[str]:
    """``line`` in rows, broken between words; where a row ends depends on nothing that comes after its first cell too many."""
    while cell_len(line) > width:
        fits = chop_cells(line[: width + 1], width)[0]
        head, space, _ = fits.rpartition(" ") if line[len(fits)] != " " else (fits, " ", "")
        row = head if space and head.strip() else fits
        yield row
        line = line[len(row) :].removeprefix(" ")
    yield line


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(line) - len(line.lstrip(" ")) <= 3 and len(stripped) >= len(mark) and not stripped.strip(mark[0])
