"""Pure text rules: what a user may send, what a tool's answer is reduced to, what a terminal may be given.

Three doors, one set of character classes:

* :class:`ValidationPipeline` refuses what a user typed, with a sentence that says why.
* :func:`sanitize_tool_output` and :func:`sanitize_parameters` clean what tools got and returned.
* :func:`terminal_safe` is the gate for any text on its way to a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from holodeck.errors import InputError

__all__ = [
    "CUT",
    "MAX_MESSAGE_CHARS",
    "MAX_TOOL_CHARS",
    "ValidationPipeline",
    "exportable",
    "sanitize_parameters",
    "sanitize_tool_output",
    "shorten",
    "terminal_safe",
    "with_whole_characters",
]

MAX_MESSAGE_CHARS: Final = 10_000
"""Longest message a user may send, in characters (data model, Message)."""
MAX_TOOL_CHARS: Final = 50_000
"""Longest sanitized tool result or set of parameters, in characters, marker included."""
_MAX_DEPTH: Final = 32

# ECMA-48: CSI with its parameters, the string sequences (OSC, DCS, SOS, PM, APC) with their payload, and two-character escapes.
# A string that is never terminated is taken to the end of its line: a terminal would swallow it too.
_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# What nobody sees, and what can carry words that nobody sees: zero-width spaces, soft hyphens, tags, supplementary variation selectors.
# The joiners U+200C and U+200D stay: scripts and emoji are written with them.
_INVISIBLE: Final = "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}{_INVISIBLE}]")
_MARK: Final = "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
_MARKS: Final = re.compile(f"({_MARK}{{8}}){_MARK}+")
_TYPED_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_LINE_ENDS: Final = re.compile("\r\n?|[\u2028\u2029]")
_TYPED_LINE_ENDS: Final = re.compile("\r\n?")

CUT: Final = re.compile(r"… \[cut: [0-9]+ characters\]\Z")
"""The marker with which :func:`shorten` ends a text."""

Rule = Callable[[str], None]


def exportable(text: str) -> str:
    """``text`` with lone surrogates replaced by U+FFFD, so that UTF-8 can carry it.

    A lone surrogate makes the OTLP encoder drop the whole batch that it stands in.
    """
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def with_whole_characters(text: str) -> str:
    """``text`` with the two halves of a surrogate pair joined to their character, and what is still alone made :func:`exportable`.

    JSON may spell a character as a pair of escapes, and a stream may cut it between them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shorten(text: str, limit: int, original: int | None = None) -> str:
    """``text`` cut to at most ``limit`` characters, a marker with the original length included.

    Args:
        text: Any text.
        limit: In characters.
        original: Length of the text that ``text`` is the beginning of; the marker is there then, also where ``text`` would fit.
    """
    if len(text) <= limit and original is None:
        return text
    marker = f"… [cut: {len(text) if original is None else original} characters]"
    return (text[: limit - len(marker)] + marker) if limit > len(marker) else text[:limit]


def terminal_safe(text: str) -> str:
    """``text`` as a terminal may be given it; newline and tab stay.

    Without escape sequences (payload included), controls, characters that change the direction of what follows, and invisible ones. Line
    separators are newlines, and of accents that are heaped on one character eight are left.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _CONTROLS.sub("", exportable(_ESCAPES.sub("", _LINE_ENDS.sub("\n", text))))
    return text if text.isascii() else _MARKS.sub(r"\1", text)


def sanitize_tool_output(text: str, limit: int = MAX_TOOL_CHARS) -> str:
    """What a tool returned, made safe to keep and to show.

    Args:
        text: Anything a tool returned.
        limit: Longest answer in characters, the cut marker included.

    Returns:
        The text as :func:`terminal_safe` leaves it, and no longer than ``limit``.
    """
    return shorten(terminal_safe(text), limit)


def sanitize_parameters(parameters: dict[str, Any], limit: int = MAX_TOOL_CHARS) -> dict[str, Any]:
    """Tool parameters as JSON-safe values whose keys and values together hold about ``limit`` characters at most.

    What does not fit is left out. Values that JSON cannot carry (bytes, NaN, integers over 64 bits, objects) become text; nesting
    deeper than 32 levels is cut.
    """
    return _Sanitizer(limit).mapping(parameters, 0)


class _Sanitizer:
    """Walks nested values with one budget of characters for all keys and values together."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        return {self.text(str(k)): self.value(v, depth + 1) for k, v in value.items() if self.left > 0}

    def value(self, value: Any, depth: int) -> Any:
        self.left -= 3  # quotes and a comma: whatever it is, it takes room; a million nulls are no small value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self.number(value)
        if isinstance(value, dict | list | tuple) and depth > _MAX_DEPTH:
            return self.text("… [cut: too deep]")
        if isinstance(value, dict):
            return self.mapping(value, depth)
        if isinstance(value, list | tuple):
            return [self.value(v, depth + 1) for v in value if self.left > 0]
        return self.text(value if isinstance(value, str) else _as_text(value))

    def number(self, value: float) -> int | float | str:
        self.left -= len(str(value)) if isinstance(value, float) else value.bit_length() // 3
        fits = math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63
        return value if fits else self.text(str(value))

    def text(self, value: str) -> str:
        clean = sanitize_tool_output(value, max(self.left, 0))
        self.left -= len(clean)
        return clean


def _as_text(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a hostile __str__ must not break the turn that only wants to record it
        return f"<{type(value).__name__}>"


def _not_empty(text: str) -> None:
    if not text.strip():
        raise InputError("The message is empty: type something, or /help.")


def _is_text(text: str) -> None:
    if _SURROGATES.search(text):
        raise InputError("The message is not valid UTF-8 text: send it again as UTF-8.")


def _no_controls(text: str) -> None:
    if found := _TYPED_CONTROLS.search(text):
        raise InputError(f"The message contains the control character U+{ord(found.group()):04X}: remove it and send again.")


def _not_too_long(text: str) -> None:
    if len(text) > MAX_MESSAGE_CHARS:
        raise InputError(f"The message has {len(text):,} characters; the limit is {MAX_MESSAGE_CHARS:,}: shorten it or split it.")


class ValidationPipeline:
    """The rules for what a user types, applied in order; the first that fails says why.

    Args:
        rules: Callables that raise :class:`~holodeck.errors.InputError`; by default empty, not text, control characters, too long.
    """

    DEFAULT: Final[tuple[Rule, ...]] = (_is_text, _not_empty, _no_controls, _not_too_long)

    def __init__(self, rules: Sequence[Rule] = DEFAULT) -> None:
        self._rules = tuple(rules)

    def validate(self, text: str | bytes) -> str:
        """``text`` as a clean message: line ends are newlines, white space around it is stripped.

        Raises:
            InputError: The message is empty, over 10,000 characters, has control characters, or is not valid UTF-8.
        """
        clean = _TYPED_LINE_ENDS.sub("\n", _decode(text)).strip()
        for rule in self._rules:
            rule(clean)
        return clean


def _decode(text: str | bytes) -> str:
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
