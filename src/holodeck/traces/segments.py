"""Styled text, and what a waterfall is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Line", "Segment", "WaterfallOptions", "plain"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line.

    Attributes:
        text: Harmless text without line ends.
        style: What it is, for whoever gives it a colour: ``name``, ``operation``, ``tree``, ``bar``, ``bar.error``, ``time``, ``tokens``,
            ``error``, ``dim``, ``mark``, ``added`` or ``removed``.
    """

    text: str
    style: str


Line = tuple[Segment, ...]
"""One line of a waterfall, without its line end."""


@dataclass(frozen=True, slots=True)
class WaterfallOptions:
    """How a waterfall is drawn.

    Attributes:
        width: Cells that no line exceeds. Made for 40 to 200; below 60 there are no bars.
        ascii: Nothing but ASCII; other characters of names and content become ``?``.
        timestamps: Puts the wall-clock time of each start (UTC) before the tree.
        content: Shows prompts, answers, arguments and results that were captured, one shortened line each.
    """

    width: int = 80
    ascii: bool = False
    timestamps: bool = False
    content: bool = True


def plain(lines: Iterable[Line]) -> str:
    """The lines as text without styles, joined by line ends."""
    return "\n".join("".join(segment.text for segment in line) for line in lines)
