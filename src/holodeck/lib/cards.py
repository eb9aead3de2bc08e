"""Card numbers, told from other numbers: by the lengths and beginnings of brands, the check digit, and how digits are grouped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["DIGITS", "SHORTEST_CARD", "Span", "cards"]

Span = tuple[int, int]
"""Where something begins and ends in a text."""
SHORTEST_CARD: Final = 13
"""Digits of a card number, at least."""
_LONGEST_CARD: Final = 19
_WIDEST_GROUP: Final = 7
DIGITS: Final = r"(?:^|[^0-9A-Fa-f]|[g-zG-Z][A-Fa-f]{1,3})(?P<digits>[0-9](?:[ .-]?[0-9]){12,})"
"""Runs of digits in which card numbers may be."""


def cards(digits: str) -> Iterator[Span]:
    """Where card numbers are in a run of digits: whole groups of it, of the length of a brand, with the right check digit."""
    groups = list(re.finditer("[0-9]+", digits))
    place = 0
    while place < len(groups):
        length = _single_digits(groups, place)
        if length > 1:
            found = _is_card("".join(group[0] for group in groups[place : place + min(length, _LONGEST_CARD + 1)]), 1)
        else:
            length = _card_at(groups, place)
            found = length > 0
        if found:
            yield groups[place].start(), groups[place + length - 1].end()
        place += length or 1


def _single_digits(groups: list[re.Match[str]], place: int) -> int:
    """How many digits from ``place`` on stand each by itself: only all of them can be a card, or every list of digits would hold one."""
    end = place
    while end < len(groups) and len(groups[end][0]) == 1:
        end += 1
    return end - place


def _card_at(groups: list[re.Match[str]], place: int) -> int:
    """How many groups from ``place`` on are one card number; 0 if none are."""
    number, widest = "", 0
    for count, group in enumerate(groups[place : place + 6], start=1):
        number, widest = number + group[0][: _LONGEST_CARD + 1], max(widest, len(group[0]))
        if len(number) > _LONGEST_CARD:
            return 0
        if count == 1 and place and group.string[group.start() - 1] == ".":
            continue  # the decimals of a number
        if _is_card(number, 1 if count == 1 else widest):
            return count
    return 0


def _is_card(number: str, widest: int) -> bool:
    # The first and the last group of a UUID are wider than any group of a card.
    return SHORTEST_CARD <= len(number) <= _LONGEST_CARD and widest <= _WIDEST_GROUP and _is_brand(number) and _luhn(number)


def _is_brand(number: str) -> bool:
    length, two, four = len(number), number[:2], number[:4]
    return (
        (number[0] == "4" and length in (13, 16, 18, 19))
        or (length == 16 and ("51" <= two <= "55" or "2221" <= four <= "2720"))
        or (length == 15 and two in ("34", "37"))
        or (length == 14 and (two in ("36", "38", "39") or "300" <= number[:3] <= "305"))
        or (length >= 16 and (two in ("50", "56", "57", "58", "60", "62", "63", "65", "67", "81", "82") or "644" <= number[:3] <= "649"))
        or (length >= 16 and ("3528" <= four <= "3589" or "2200" <= four <= "2204" or four == "9792"))
    )


_DOUBLED: Final = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))


def _luhn(number: str) -> bool:
    return (sum(map(int, number[-1::-2])) + sum(map(_DOUBLED.__getitem__, number[-2::-2]))) % 10 == 0
