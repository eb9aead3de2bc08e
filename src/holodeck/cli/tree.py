"""The waterfall that ``holodeck.traces`` lays out, in colour."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from holodeck.cli.console import Notes
from holodeck.traces import Line, WaterfallOptions, build_trees, spans_of, waterfall

__all__ = ["STYLES", "as_text", "show_tree"]

STYLES: Final = {
    "name": "bold",
    "operation": "cyan",
    "tree": "dim",
    "bar": "blue",
    "bar.error": "red",
    "time": "",
    "tokens": "green",
    "error": "red",
    "dim": "dim",
    "mark": "bright_white",
    "added": "green",
    "removed": "red",
}
"""What each style of a line of ``holodeck.traces`` looks like."""
_UNBOUNDED: Final = 120
"""Cells of a line where there is no terminal whose width could be asked for."""


def show_tree(notes: Notes, request: dict[str, Any], *, timestamps: bool) -> bool:
    """Show the spans of an OTLP/JSON export request as trees; False if there are none."""
    roots = build_trees(spans_of(request)) if request else []
    console = notes.console
    options = WaterfallOptions(width=console.width if console.is_terminal else _UNBOUNDED, ascii=notes.glyphs.ascii, timestamps=timestamps)
    for root in roots:
        for line in waterfall(root, options):
            notes.print(as_text(line), wrap=False)
    return bool(roots)


def as_text(line: Line) -> Text:
    """A line of a waterfall with colours; its text is harmless already."""
    text = Text(end="", no_wrap=True)
    for segment in line:
        text.append(segment.text, style=STYLES.get(segment.style) or None)
    return text
