"""Text in terminal cells: made harmless, measured, cut and padded.

Marks whose width terminals disagree about (joiners, variation selectors) are taken out, so that what is measured here is what is drawn.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from holodeck.lib.validation import terminal_safe

__all__ = ["MAX_SHOWN", "clean", "fit", "head", "pad", "width"]

MAX_SHOWN: Final = 2_000
"""Characters of a text that are looked at; a line of a waterfall is far shorter."""
_SELECTORS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_MAX_MARKS: Final = 3  # combining marks on one character; more are an attack on the lines above and below


def clean(text: str, *, ascii_only: bool = False) -> str:
    """``text`` on one line and without anything that a terminal acts upon.

    Args:
        text: Anything that was written on a span.
        ascii_only: Replaces what is not ASCII by ``?``.
    """
    cut = text[:MAX_SHOWN].strip()
    if not (cut.isascii() and cut.isprintable()):
        cut = " ".join(terminal_safe(cut).split())
        if ascii_only:
            cut = "".join(c if " " <= c <= "~" else "?" for c in cut)
        elif not cut.isascii():
            cut = _settle(cut)
    return cut if len(text) <= MAX_SHOWN else cut + ("..." if ascii_only else "…")


def _settle(text: str) -> str:
    kept, marks = [], 0
    for character in _SELECTORS.sub("", text):
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if character.isprintable() and marks <= _MAX_MARKS:
            kept.append(character)
        elif unicodedata.category(character) not in {"Cf", "Mn", "Me"}:
            kept.append("�")
    return "".join(kept)


def width(text: str) -> int:
    """Cells that clean ``text`` takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if character < "\u0300":
        return 1
    from wcwidth import wcwidth  # noqa: PLC0415 - its tables take longer to load than this package; most traces are ASCII

    return max(wcwidth(character), unicodedata.category(character) == "Mc")  # a spacing mark takes a cell in some terminals, none in others


def fit(text: str, limit: int, *, ascii_only: bool = False) -> str:
    """Clean ``text`` cut to ``limit`` cells, with an ellipsis where something was cut."""
    if width(text) <= limit:
        return text
    ellipsis = "..." if ascii_only and limit > 3 else "~" if ascii_only else "…"
    return head(text, limit - len(ellipsis)).rstrip() + ellipsis if limit > 0 else ""


def head(text: str, limit: int) -> str:
    """As many characters of clean ``text`` as fit into ``limit`` cells."""
    if text.isascii():
        return text[: max(limit, 0)]
    used = 0
    for position, character in enumerate(text):
        used += _cells(character)
        if used > limit:
            return text[:position]
    return text


def pad(text: str, limit: int) -> str:
    """Clean ``text`` followed by spaces up to ``limit`` cells."""
    return text + " " * (limit - width(text))
