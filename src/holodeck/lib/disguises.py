"""Text as it reads, whatever it is written with: full-width letters, zero-width spaces inside a key, the digits of another script."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["without_disguise"]

_INVISIBLE: Final = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0200),
)
_LOOKALIKES: Final = (
    *range(0x2070, 0x209D),
    *range(0x2460, 0x24EB),
    *range(0xFE50, 0xFE70),
    *range(0xFF01, 0xFF5F),
    *range(0x1D400, 0x1D800),
)
_HYPHENS: Final = (*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63, 0xFF0D)
_QUOTES: Final = {0x201C: '"', 0x201D: '"', 0x201E: '"', 0x2018: "'", 0x2019: "'", 0x201A: "'", 0xAB: '"', 0xBB: '"'}


class _Table(dict[int, "int | str | None"]):
    """What each character stands for; found out when it is met first."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = found = _meaning(code)
        return found


def _meaning(code: int) -> int | str | None:
    character = chr(code)
    if unicodedata.category(character) == "Zs":
        return " "
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", character) if code in _LOOKALIKES else ""
    return plain if len(plain) == 1 and plain.isascii() else code


_TABLE: Final = _Table(_QUOTES | dict.fromkeys(_HYPHENS, "-") | dict.fromkeys(_INVISIBLE))


def without_disguise(text: str) -> str:
    """``text`` without invisible characters, in plain letters, digits, hyphens, quotes and spaces where it has variants of them."""
    return text if text.isascii() else text.translate(_TABLE)
