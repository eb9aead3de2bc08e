"""The one gate that every string passes on its way into telemetry.

Labels (names, models, descriptions) and identifiers always pass: made exportable, capped; labels redacted too. Content (prompts, replies,
tool arguments and results, exception text) passes only while the gate is open, and redacted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from holodeck.lib.redaction import REDACTED, Redactor
from holodeck.lib.validation import exportable, sanitize_parameters, shorten

__all__ = ["Gate"]

_LABEL_LIMIT: Final = 1024
_MAX_DEPTH: Final = 24
_KEY_LIMIT: Final = 64
"""Longest key that is remembered, in characters."""


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
        self.label = lru_cache(maxsize=512)(self._label)
        self._known_key = lru_cache(maxsize=512)(self._key)  # messages repeat theirs: role, parts, type, content

    def _label(self, text: str) -> str:
        # Redacted before it is cut: a cut could leave half a secret that no pattern knows.
        return shorten(self._redact(exportable(text)), min(_LABEL_LIMIT, self._limit))

    def identifier(self, text: str) -> str:
        """An id from outside, exportable and capped; never redacted, or ids would no longer match the provider's."""
        return shorten(exportable(text), min(_LABEL_LIMIT, self._limit))

    def text(self, text: str) -> str | None:
        """Content as text; None while the gate is shut."""
        return shorten(self._redact(exportable(text)), self._limit) if self.open else None

    def structure(self, value: Any) -> str | None:
        """Content as JSON whose strings are redacted, at most the limit long; None while the gate is shut."""
        if not self.open:
            return None
        budget, size = self._limit, 0
        while budget > 0:
            encoded = json.dumps(self._clean(value, budget), ensure_ascii=False)
            if len(encoded) <= self._limit:
                return encoded
            budget, size = budget // 2, len(encoded)
        marker = json.dumps(f"[cut: {size} characters of JSON]")
        return marker if len(marker) <= self._limit else '""'[: self._limit]

    def _clean(self, value: Any, budget: int) -> Any:
        return sanitize_parameters({"v": self._redacted(value, 0)}, budget)["v"]

    def _redacted(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._redact(exportable(value))
        if isinstance(value, dict | list | tuple) and depth > _MAX_DEPTH:
            return "[cut: too deep]"
        if isinstance(value, dict):
            return dict(self._pair(str(k), v, depth + 1) for k, v in value.items())
        if isinstance(value, list | tuple):
            return [self._redacted(v, depth + 1) for v in value]
        return value

    def _pair(self, key: str, value: Any, depth: int) -> tuple[str, Any]:
        # A secret's name may stand in the key: {"password": "hunter2"} is only recognisable as a pair.
        name, secret = self._known_key(key) if len(key) <= _KEY_LIMIT else self._key(key)
        return name, REDACTED if secret and isinstance(value, str | int | float) else self._redacted(value, depth)

    def _key(self, key: str) -> tuple[str, bool]:
        """A key as it may go out, and whether it is the name of a secret."""
        return self._redact(exportable(key)), self._redact.names_secret(key)
