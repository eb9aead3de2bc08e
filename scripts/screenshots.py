"""Take the pictures of the documentation from a real session in a real terminal: ``python scripts/screenshots.py [DIRECTORY]``.

What is drawn is what stood on the screen: the command runs in a pseudo-terminal, a terminal emulator reads it, and its cells become an SVG.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.command import Terminal  # noqa: E402 - the tests' terminal is not installed

_COLUMNS, _ROWS = 100, 40
_ANSWERED = re.compile(r"trace [0-9a-f]{32}")


@dataclass(frozen=True)
class Picture:
    """A picture and the session that it shows.

    Attributes:
        name: Of the file.
        title: Above the picture.
        session: Types what has to be typed.
        first: The line that the picture begins with begins with this.
    """

    name: str
    title: str
    session: Callable[[Terminal], None]
    first: str


def _ask(terminal: Terminal, text: str, answers: int) -> None:
    terminal.line(text)
    terminal.wait_for(_ANSWERED, timeout=30, count=answers)


def _chat(terminal: Terminal) -> None:
    _ask(terminal, "Where is order 1042?", 1)
    _ask(terminal, "Is the desk lamp in stock, and what does shipping to Norway cost?", 2)
    terminal.type("/re")
    terminal.wait_for("begin a new conversation")


def _trace(terminal: Terminal) -> None:
    _ask(terminal, "Track the parcel of order 1042", 1)
    terminal.line("/trace")
    terminal.wait_for("└─ chat support-script")
    terminal.wait_for(re.compile(r"^>$", re.MULTILINE))


PICTURES = (
    Picture("chat.svg", "holodeck chat examples/support/agent.yaml", _chat, "support"),
    Picture("trace.svg", "/trace", _trace, "> Track"),
)


def take(picture: Picture, directory: Path) -> Path:
    """Run the session and write its last screen."""
    command = ["chat", ROOT / "examples/support/agent.yaml", "--no-history"]
    with Terminal(command, columns=_COLUMNS, lines=_ROWS, cwd=ROOT) as terminal:
        terminal.wait_for("> ")
        picture.session(terminal)
        lines = _lines(terminal)
    first = next(number for number, line in enumerate(lines) if line.plain.startswith(picture.first))
    while not lines[-1].plain.strip():
        lines.pop()
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)
    console.print(Text("\n").join(lines[first:]), soft_wrap=True)
    path = directory / picture.name
    path.write_text(_portable(console.export_svg(title=picture.title, unique_id=f"holodeck-{path.stem}")), encoding="utf-8")
    return path


def _portable(svg: str) -> str:
    """Without fonts from elsewhere: a page that shows the picture fetches nothing."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _lines(terminal: Terminal) -> list[Text]:
    emulator = terminal._emulator  # noqa: SLF001 - only it knows the colours of the cells
    with terminal._changed:  # noqa: SLF001 - as above
        return [_line([emulator.buffer[y][x] for x in range(_COLUMNS)]) for y in range(_ROWS)]


def _line(cells: list[Any]) -> Text:
    text = Text()
    for style, run in groupby(cells, _style):
        text.append("".join(cell.data for cell in run), style)
    text.rstrip()
    return text


def _style(cell: Any) -> Style:
    colour = None if cell.fg == "default" else cell.fg.replace("brown", "yellow").replace("bright", "bright_")
    back = None if cell.bg == "default" else cell.bg
    if colour and re.fullmatch("[0-9a-f]{6}", colour):
        colour = f"#{colour}"
    if back and re.fullmatch("[0-9a-f]{6}", back):
        back = f"#{back}"
    return Style(color=colour, bgcolor=back, bold=cell.bold, italic=cell.italics, underline=cell.underscore, reverse=cell.reverse)


def main(arguments: list[str]) -> int:
    """Take all of them."""
    directory = Path(arguments[0]) if arguments else ROOT / "docs/images"
    directory.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        sys.stdout.write(f"{take(picture, directory)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
