"""What must not be kept or sent: keys, tokens, passwords, e-mail addresses, card numbers, and the user's own patterns.

Patterns run on RE2, which cannot backtrack: the time is linear in the text whatever the pattern. A text that cannot be checked is
hidden whole.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from holodeck.lib.cards import DIGITS, SHORTEST_CARD, Span, cards
from holodeck.lib.disguises import without_disguise
from holodeck.lib.patterns import compile_pattern
from holodeck.lib.secret_patterns import CERTAIN, LIKELY, MAIL, MAYBE_NAME, NAME, RULES, mailbox, rest_of_value

__all__ = ["REDACTED", "Redactor"]

REDACTED: Final = "[redacted]"
_FAILED: Final = "[redacted: could not be checked]"
_MAX_DEPTH: Final = 40
_SHORTEST_TOKEN: Final = 8
"""Characters of a text that is a secret only because it stands under ``token``."""
_KEY_LIMIT: Final = 64
"""Longest key that is remembered, in characters."""
_SHORTEST_OF_LETTERS: Final = 20
"""Characters of the shortest secret that may be made of nothing but letters, a key of AWS."""
_QUOTES: Final = "\"'`\\"
_SMALLEST_CARD: Final = 10**12
_SCHEMA: Final = frozenset(("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"))
_SAMPLES: Final = frozenset(("default", "const", "enum", "example", "examples"))
_NAME_KEYS: Final = ("name", "key", "Key", "Name", "header", "field", "variable", "id")
_VALUE_KEYS: Final = ("value", "Value", "values")


@functools.cache
def _compiled(pattern: str) -> Any:
    return compile_pattern(pattern)


class Redactor:
    """Hides secrets in text and in structures.

    Args:
        patterns: RE2 patterns of the user, beside the built-in ones; a match is replaced whole, an empty one is none.

    Raises:
        ValueError: A pattern cannot be compiled.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._own = [compile_pattern(p) for p in patterns]
        # Structures repeat their keys: role, parts, type, content.
        self._known_key = functools.lru_cache(maxsize=512)(lambda key: (self._plain(key), self._names_secret(key)))

    def __call__(self, text: str, end: int | None = None) -> str:
        """``text`` with every secret replaced by ``[redacted]``; hidden whole if it cannot be checked. Idempotent.

        Args:
            text: Any text.
            end: Leave out what begins from here on. It is looked at all the same, for a secret that begins before.
        """
        try:
            return self._text(text, 0) if end is None or end >= len(text) else self._plain(text, end)
        except Exception:  # noqa: BLE001 - fails closed: whatever went wrong, the text does not get out
            return _FAILED

    def _plain(self, text: str, end: int | None = None) -> str:
        end = len(text) if end is None else end
        clean, found = self._hidden(text, end)
        if not text.isascii() and (bare := without_disguise(text)) != text:
            undisguised, more = self._hidden(bare, end)
            return undisguised if more > found else clean
        return clean

    def _hidden(self, text: str, end: int) -> tuple[str, int]:
        """``text`` up to ``end`` without its secrets, and how many characters of it were hidden."""
        spans = sorted(self._spans(text))
        if not spans:
            return text[:end], 0
        pieces, place, hidden = [], 0, 0
        for start, stop in _merged(sorted([*spans, *_hidden_before(text)])):
            if start >= end:
                break
            pieces += [text[place:start], REDACTED]
            place, hidden = stop, hidden + stop - start
        return "".join([*pieces, text[place:end]]), hidden

    def _spans(self, text: str) -> Iterator[Span]:
        if len(text) >= _SHORTEST_OF_LETTERS or not text.isalpha():
            yield from _known(text)
        for pattern in self._own:
            yield from (match.span() for match in pattern.finditer(text) if match.group())

    def names_secret(self, name: str) -> bool:
        """Whether a value under this name is a secret whatever it looks like (``password``, ``api_key``, …), or a name that holds one."""
        return self._names_secret(name) or self(name) != name

    def _names_secret(self, name: str) -> bool:
        name = without_disguise(name)
        if _compiled(NAME).search(name) or _compiled(MAYBE_NAME).search(name):
            return True
        return any(match.end() > len(name) for pattern in self._own for match in pattern.finditer(f"{name}=1"))

    def structure(self, value: Any) -> Any:
        """``value``, made of what JSON has, without secrets in its texts, keys and numbers, and without what is named like a secret."""
        try:
            return self._structure(value, 0)
        except Exception:  # noqa: BLE001 - fails closed
            return _FAILED

    def _structure(self, value: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return _FAILED
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return list(self._items(value, depth + 1))
        if isinstance(value, int | float) and abs(value) >= _SMALLEST_CARD and self._plain(str(value)) != str(value):
            return REDACTED
        return value

    def _items(self, values: list[Any] | tuple[Any, ...], depth: int) -> Iterator[Any]:
        """What is in a list: also pairs of a name and a value, and the arguments of a command."""
        option = ""
        for each in values:
            if isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[0], str) and self._is_secret(each[0], each[1]):
                yield [each[0], REDACTED]
            else:
                yield REDACTED if option and self._is_secret(option, each) else self._structure(each, depth)
            option = each if isinstance(each, str) and each.startswith("--") else ""

    def _text(self, text: str, depth: int) -> str:
        """A text, which may be JSON itself: there a secret may be spelled with escapes, and what is left has to be JSON again."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self._plain(text)
            clean = self._structure(inner, depth + 1)
            text = text if clean == inner else json.dumps(clean, ensure_ascii=False)
            if not any(pattern.search(text) for pattern in self._own):
                return text
        return self._plain(text)

    def _key(self, key: str) -> tuple[str, bool]:
        """A key as it may go out, and whether it is the name of a secret."""
        return self._known_key(key) if len(key) <= _KEY_LIMIT else (self._plain(key), self._names_secret(key))

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        held = next((key for key in _VALUE_KEYS if key in value), None)
        said = held and next((n for key in _NAME_KEYS if isinstance(n := value.get(key), str)), "")
        return {self._key(str(k))[0]: self._under(said if said and k == held else str(k), v, depth + 1) for k, v in value.items()}

    def _under(self, name: str, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            if name.endswith(("s", "S")) and not _SCHEMA & value.keys() and self._key(name)[1] and depth <= _MAX_DEPTH:
                return {self._key(str(key))[0]: self._under(name, each, depth + 1) for key, each in value.items()}  # secrets by name
            inner = self._structure(value, depth)
            return _without_samples(inner) if _SCHEMA & value.keys() and self._key(name)[1] else inner
        if isinstance(value, list) and self._is_secret(name, "…" * _SHORTEST_TOKEN):
            return [self._under(name, each, depth + 1) for each in value]
        return REDACTED if self._is_secret(name, value) else self._structure(value, depth)

    def _is_secret(self, name: str, value: Any) -> bool:
        if value is None or isinstance(value, bool | dict | list | tuple) or value == "":
            return False
        return self._key(name)[1] and (not _compiled(MAYBE_NAME).search(name) or len(str(value)) >= _SHORTEST_TOKEN)


def _known(text: str) -> Iterator[Span]:
    """Where secrets of the built-in forms are. Each pattern takes its time even on a word, so what it needs is looked for first."""
    for match in _compiled(CERTAIN).finditer(text):
        start, stop = _part(match)
        if stop > start:
            yield start, stop
    if "@" in text or "%40" in text:
        for match in _compiled(MAIL).finditer(text):
            if (start := mailbox(text, match.start())) < match.start():
                yield start, match.end()
    for match in _compiled(LIKELY).finditer(text):
        start, stop = _part(match)
        if stop > start:
            yield _between_quotes(text, start, stop) if text[start] in _QUOTES else (start, rest_of_value(text, stop))
    if len(text) >= SHORTEST_CARD:
        for match in _compiled(DIGITS).finditer(text):
            first = match.start(1)
            yield from ((first + start, first + stop) for start, stop in cards(match[1]))


def _part(match: Any) -> Span:
    """The part of a match that is the secret; empty if its rule says that it is none."""
    for name, index in _groups(match.re.pattern):
        if (text := match[index]) is not None:
            rule = RULES.get(name)
            start, stop = match.span(index)
            return (start, stop) if rule is None or rule(text) else (stop, stop)
    start, stop = match.span()
    return start, stop


def _between_quotes(text: str, start: int, stop: int) -> Span:
    """A value without its quotes, so that what was JSON stays it."""
    while stop - start > 1 and text[start] in _QUOTES:
        start += 1
    while stop - start > 1 and text[stop - 1] in _QUOTES:
        stop -= 1
    return start, stop


@functools.cache
def _groups(pattern: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(_compiled(pattern).groupindex.items(), key=lambda item: item[1]))


def _hidden_before(text: str) -> Iterator[Span]:
    """Where it says ``[redacted]`` already: what overlaps with it must not hide a part of these words."""
    place = text.find(REDACTED)
    while place >= 0:
        yield place, place + len(REDACTED)
        place = text.find(REDACTED, place + 1)


def _merged(spans: list[Span]) -> Iterator[Span]:
    first, last = spans[0]
    for start, stop in spans[1:]:
        if start >= last:
            yield first, last
            first, last = start, stop
        last = max(last, stop)
    yield first, last


def _without_samples(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is a secret, without values that it may have."""
    return {key: REDACTED if key in _SAMPLES and value is not None else value for key, value in schema.items()}
