"""One block of Markdown as lines for a terminal.

Nothing is left out that the author wrote: HTML, entities, references and anything else that is not formatting is shown as it stands. Links
are text: a model's words never become something that a click opens unseen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.text import Text

from holodeck.cli.blocks import Block
from holodeck.cli.code import code_lines
from holodeck.cli.console import Glyphs
from holodeck.lib.validation import terminal_safe

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from rich.console import Console

__all__ = ["CODE", "MarkdownRenderer"]

CODE: Final = "cyan"
"""Style of code within a sentence."""
_HEADINGS: Final = {"h1": "bold underline", "h2": "bold", "h3": "bold italic"}
_MARKS: Final = {"strong_open": "bold", "em_open": "italic", "s_open": "strike"}
_FENCE_STYLE: Final = "dim"
_RULE_CELLS: Final = 40
_LEAST_COLUMN: Final = 6
"""Cells of a column of a table, unless all of it is shorter."""
_BETWEEN: Final = 3
_FORMULAS: Final = {r"\(": r"\)", r"\[": r"\]", "$$": "$$"}
"""How formulas begin, and how they end."""


class MarkdownRenderer:
    """Turns blocks into lines.

    Args:
        console: Says how wide lines may be, and lays out tables.
        glyphs: What bullets, quotations and rules are drawn with.
    """

    def __init__(self, console: Console, glyphs: Glyphs) -> None:
        self._console, self._glyphs = console, glyphs
        self._colour = console.color_system is not None and not console.no_color

    def lines(self, block: Block) -> list[Text]:
        """The lines of ``block``, none of them wider than the terminal save for code, which has to stay as it is."""
        lines = list(self._lines(block))
        return [Text(), *lines] if block.gap else lines

    def _lines(self, block: Block) -> Iterator[Text]:
        if block.plain:
            yield from (Text(line) for line in block.lines)
        elif block.code:
            yield from self._code_block(block)
        else:
            yield from _Layout(self._console, self._glyphs, colour=self._colour).lines(_parser().parse(block.text))

    def _code_block(self, block: Block) -> Iterator[Text]:
        if block.opening is not None:
            yield Text(block.opening.strip(), _FENCE_STYLE)
        if block.lines:
            yield from code_lines(block.text, block.info, colour=self._colour)
        if block.closing is not None:
            yield Text(block.closing.strip(), _FENCE_STYLE)


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - the prompt has to be quick

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "formula", _formula)
    return parser.disable(["reference", "entity", "html_block", "html_inline"])


def _formula(state: StateInline, silent: bool) -> bool:
    r"""A rule of the parser: ``\(a_1\)``, ``\[a_1\]`` and ``$$a_1$$`` stand there as they were written."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in _FORMULAS or (end := state.src.find(_FORMULAS[opening], state.pos + 2, state.posMax)) < 0:
        return False
    if not silent:
        state.push("text", "", 0).content = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


class _Layout:
    """Walks through the tokens of one block."""

    def __init__(self, console: Console, glyphs: Glyphs, *, colour: bool) -> None:
        self._console, self._glyphs, self._colour = console, glyphs, colour
        self._width = max(console.width, 1)
        self._prefixes: list[str] = []  # of the first line, of each open list item and quotation
        self._further: list[str] = []  # of the lines below it
        self._numbers: list[int | None] = []

    def lines(self, tokens: Sequence[Token]) -> Iterator[Text]:
        """The lines that ``tokens`` stand for; an empty line between parts where the author left one."""
        end = tokens[0].map[1] if tokens and tokens[0].map else 0
        place = 0
        while place < len(tokens):
            token = tokens[place]
            last = place
            if token.type in _LEAVES or token.type == "table_open":
                last = _end_of(tokens, place)
                if token.map:
                    if token.map[0] > end and place:
                        yield self._empty()
                    end = _last_line(token)
                yield from self._leaf(tokens[place : last + 1])
            else:
                self._nest(token)
            place = last + 1

    def _nest(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                self._numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._push(self._marker(token.markup))
            case "blockquote_open":
                bar = "| " if self._glyphs.ascii else "│ "
                self._push(bar, bar)
            case "list_item_close" | "blockquote_close":
                self._prefixes.pop()
                self._further.pop()

    def _marker(self, markup: str) -> str:
        number = self._numbers[-1]
        if number is None:
            return "- " if self._glyphs.ascii else "• "
        self._numbers[-1] = number + 1
        return f"{number}{markup} "

    def _push(self, first: str, further: str | None = None) -> None:
        self._prefixes.append(first)
        self._further.append(" " * len(first) if further is None else further)

    def _leaf(self, tokens: Sequence[Token]) -> Iterator[Text]:
        token = tokens[0]
        match token.type:
            case "fence" | "code_block":
                yield from self._code(token)
            case "hr":
                yield self._line(Text(("-" if self._glyphs.ascii else "─") * min(_RULE_CELLS, self._room), "dim"))
            case "table_open":
                yield from self._table(tokens)
            case _:
                style = _HEADINGS.get(token.tag, "bold") if token.type == "heading_open" else ""
                yield from self._wrapped(self._inline(tokens[1].children or [], style))

    def _code(self, token: Token) -> Iterator[Text]:
        fence = token.type == "fence"
        if fence:
            yield self._line(Text(terminal_safe(f"{token.markup}{token.info}"), _FENCE_STYLE))
        if content := terminal_safe(token.content.removesuffix("\n")):
            for line in code_lines(content, token.info, colour=self._colour):
                yield self._line(line)
        if fence:
            yield self._line(Text(token.markup, _FENCE_STYLE))

    @property
    def _room(self) -> int:
        return max(self._width - sum(map(cell_len, self._further)), 8)

    def _wrapped(self, text: Text) -> Iterator[Text]:
        for line in text.split("\n", allow_blank=True):
            for row in line.wrap(self._console, self._room) or [Text()]:
                row.rstrip()
                yield self._line(row)

    def _line(self, text: Text) -> Text:
        """``text`` behind the marks of the lists and quotations that it is in; a marker is shown once."""
        lead = "".join(self._prefixes)
        self._prefixes = list(self._further)
        return Text().append(lead, "dim" if "│" in lead or "|" in lead else None).append_text(text)

    def _empty(self) -> Text:
        begun = (further for first, further in zip(self._prefixes, self._further, strict=True) if first == further)
        return Text("".join(begun).rstrip(), "dim")

    def _inline(self, tokens: Sequence[Token], style: str = "") -> Text:
        text, styles, links = Text(), [style] if style else [], list[tuple[str, int]]()
        for token in tokens:
            if token.type in _MARKS:
                styles.append(_MARKS[token.type])
            elif token.type in ("strong_close", "em_close", "s_close"):
                styles.pop()
            elif token.type == "link_open":
                styles.append("underline")
                links.append((terminal_safe(str(token.attrs.get("href", ""))), len(text)))
            elif token.type == "link_close":
                styles.pop()
                _append_target(text, *links.pop())
            else:
                self._append(text, token, " ".join(styles))
        return text

    def _append(self, text: Text, token: Token, style: str) -> None:
        content = terminal_safe(token.content)
        match token.type:
            case "softbreak" | "hardbreak":
                text.append("\n")
            case "code_inline":
                text.append(content if self._colour else f"`{content}`", f"{style} {CODE}".strip())
            case "image":
                text.append(f"{content} ({terminal_safe(str(token.attrs.get('src', '')))})".lstrip(), style or None)
            case _:
                text.append(content, style or None)

    def _table(self, tokens: Sequence[Token]) -> Iterator[Text]:
        rows: list[list[Text]] = []
        for place, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                rows[-1].append(self._inline(tokens[place + 1].children or []))
        justify = [_justify(token) for token in tokens if token.type == "th_open"]
        if _least_width(rows) <= self._room:
            yield from self._laid_out(rows, justify)
            return
        for number, row in enumerate(rows):  # too many columns for this terminal: in cells of a letter or two nothing could be read
            yield from self._wrapped(Text("| ").append_text(Text(" | ").join(row)).append(" |"))
            if not number:
                yield from self._wrapped(Text("|" + "---|" * len(row), "dim"))

    def _laid_out(self, rows: Sequence[Sequence[Text]], justify: Sequence[Any]) -> Iterator[Text]:
        from rich import box  # noqa: PLC0415 - the prompt has to be quick
        from rich.table import Table  # noqa: PLC0415 - as above

        table = Table(box=box.ASCII2 if self._glyphs.ascii else box.SQUARE, header_style="bold", show_edge=False, pad_edge=False)
        for heading, side in zip(rows[0], justify, strict=True):
            table.add_column(heading, justify=side, overflow="fold")
        for row in rows[1:]:
            table.add_row(*row)
        for segments in self._console.render_lines(table, self._console.options.update(width=self._room), pad=False):
            line = Text()
            for segment in segments:
                line.append(segment.text, segment.style)
            line.rstrip()
            yield self._line(line)


_LEAVES: Final = frozenset({"paragraph_open", "heading_open", "fence", "code_block", "hr"})


def _end_of(tokens: Sequence[Token], place: int) -> int:
    """Where what begins at ``place`` ends."""
    kind = tokens[place].type
    if not kind.endswith("_open"):
        return place
    return next(n for n in range(place, len(tokens)) if tokens[n].type == kind.removesuffix("open") + "close")


def _last_line(token: Token) -> int:
    assert token.map is not None
    return token.map[1]


def _least_width(rows: Sequence[Sequence[Text]]) -> int:
    """Cells that a table needs to be read: some for each column, and what stands between them."""
    widest: list[int] = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    return sum(min(cells, _LEAST_COLUMN) + _BETWEEN for cells in widest) - _BETWEEN


def _justify(token: Token) -> Any:
    return str(token.attrs.get("style", "text-align:left")).rpartition(":")[2]


def _append_target(text: Text, target: str, start: int) -> None:
    """Show where a link leads, unless its text says so."""
    if target and text.plain[start:] not in (target, target.removeprefix("mailto:")):
        text.append(f" ({target})", "dim")
