"""The one gate that every string passes on its way into telemetry.

Labels (names, models, descriptions) and identifiers always pass: made exportable, capped; labels redacted too. Content (prompts, replies,
tool arguments and results, exception text) passes only while the gate is open, and redacted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from holodeck.lib.redaction import Redactor
from holodeck.lib.validation import CUT, sanitize_parameters, shorten, terminal_safe

__all__ = ["Gate"]

_LABEL_LIMIT: Final = 1024
_REMEMBERED: Final = 2048
"""Longest label that is remembered, in characters."""
_BEYOND: Final = 4096
"""How far beyond the limit it is looked for the end of a secret, in characters."""
# What may be the first half of a secret where a text was cut before it came here.
_HALF: Final = re.compile(r"(?:[^\s\"'<>,;(){}\[\]]{1,256}|[0-9](?:[0-9 .-]{0,30}))\Z")
_TAIL: Final = 320


class Gate:
    """Decides what may enter telemetry, and in which form.

    Args:
        capture_content: The gate is open for content.
        redaction_patterns: The user's own RE2 patterns.
        limit: Longest value in characters.
    """

    def __init__(self, *, capture_content: bool = False, redaction_patterns: Iterable[str] = (), limit: int = 65_536) -> None:
        self.open = capture_content
        self._limit = limit
        self._redact = Redactor(redaction_patterns)
        self._known_label = lru_cache(maxsize=512)(self._label)

    def label(self, text: str) -> str:
        """A name or a description, redacted and at most 1,024 characters long."""
        return self._known_label(text) if len(text) <= _REMEMBERED else self._label(text)

    def _label(self, text: str) -> str:
        return self._clean(text, min(_LABEL_LIMIT, self._limit))

    def identifier(self, text: str) -> str:
        """An id from outside, without controls and capped; never redacted, or ids would no longer match the provider's."""
        return shorten(terminal_safe(text), min(_LABEL_LIMIT, self._limit))

    def text(self, text: str) -> str | None:
        """Content as text; None while the gate is shut."""
        return self._clean(text, self._limit) if self.open else None

    def _clean(self, text: str, limit: int) -> str:
        # Escape sequences go first: they could hide a secret from the patterns, and what is left would be whole again without them.
        text = _without_half(terminal_safe(text))
        # Redacted before it is cut: a cut could leave half a secret that no pattern knows.
        clean = self._redact(text[: limit + _BEYOND], limit)
        return shorten(clean, limit, len(text)) if len(text) > limit or len(clean) > limit else clean

    def structure(self, value: Any) -> str | None:
        """Content as JSON whose strings are redacted, at most the limit long; None while the gate is shut."""
        if not self.open:
            return None
        budget, size = self._limit, 0
        while budget > 0:
            encoded = json.dumps(self._structure(value, budget), ensure_ascii=False)
            if len(encoded) <= self._limit:
                return encoded
            budget, size = budget // 2, len(encoded)
        marker = json.dumps(f"[cut: {size} characters of JSON]")
        return marker if len(marker) <= self._limit else '""'[: self._limit]

    def _structure(self, value: Any, budget: int) -> Any:
        """``value`` as what JSON has, and within the budget, before it is searched: that bounds the time, whatever was given."""
        return self._redact.structure(_without_halves(sanitize_parameters({"v": value}, budget)["v"]))


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return _without_half(value)
    if isinstance(value, dict):
        return {key: _without_halves(inner) for key, inner in value.items()}
    return [_without_halves(inner) for inner in value] if isinstance(value, list) else value


def _without_half(text: str) -> str:
    """``text`` without the last word before a cut: it may be half a secret, that no pattern knows."""
    if not text.endswith("]") or (cut := CUT.search(text, max(len(text) - 64, 0))) is None:
        return text
    start = max(cut.start() - _TAIL, 0)
    return text[:start] + _HALF.sub("", text[start : cut.start()]) + cut.group()
