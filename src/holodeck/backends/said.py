"""What a provider says about a failure, in its own words: found in the answer, and made fit to be shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any, Final

from holodeck.lib.redaction import REDACTED, Redactor
from holodeck.lib.validation import terminal_safe
from holodeck.models.llm import LLMConfig

__all__ = ["ReportedError", "code_of", "header_of", "wait_of", "words_of"]

_LONGEST: Final = 160
_READ: Final = 4_000  # characters of an error message that are looked at
_NAMES: Final = ("message", "error", "msg", "detail", "errors", "error_message", "error_description", "reason", "title")
_SHORTEST_KEY: Final = 6  # characters; what is shorter stands in ordinary words, too
_LONGEST_WAIT: Final = 86_400  # seconds


class ReportedError(Exception):
    """An error that a server reports in the middle of an answer, or in place of it with status 200.

    Args:
        body: The error as the server wrote it.
    """

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body


def words_of(cause: BaseException, config: LLMConfig) -> str:
    """The provider's own words, short, on one line, safe for a terminal and without keys; "" for markup, or if there are none."""
    text = _words(getattr(cause, "body", None)) or _words(_text_of_response(cause)) or _own_message(cause)
    text = " ".join(terminal_safe(text[:_READ]).split())
    if text.startswith("<"):
        return ""
    text = _without_secrets(text, config)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _words(value: Any, depth: int = 0) -> str:
    """The message in an error's body, whatever the vendor calls it and however often it is wrapped."""
    if isinstance(value, dict):
        return next((words for name in _NAMES if (words := _words(value.get(name), depth + 1))), "")
    if isinstance(value, list | tuple):
        return next((words for entry in value[:9] if (words := _words(entry, depth + 1))), "")
    if not isinstance(value, str):
        return "" if value is None or isinstance(value, bool) or depth == 0 else str(value)
    if depth < 5 and value.lstrip()[:1] in ("{", "[") and len(value) < _READ:
        try:
            return _words(json.loads(value), depth + 1)
        except (ValueError, RecursionError):
            return value
    return value


def _text_of_response(cause: BaseException) -> str:
    try:
        return str(cause.response.text)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - there is none, or it was not read
        return ""


def _own_message(cause: BaseException) -> str:
    text = str(getattr(cause, "message", None) or getattr(cause, "error", None) or cause)
    return "" if text.startswith("Error code:") else text  # the client's own; the status is said anyway


def _without_secrets(text: str, config: LLMConfig) -> str:
    key = config.api_key.get_secret_value() if config.api_key else ""
    if len(key) >= _SHORTEST_KEY:
        text = text.replace(key, REDACTED)
    return Redactor()(text)


def code_of(cause: BaseException) -> str:
    """The provider's codes and types for the failure, in lower case, and "" if it gives none."""
    body = getattr(cause, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    places = [inner, inner.get("innererror")] if isinstance(inner, dict) else []
    said = [place.get(name) for place in places if isinstance(place, dict) for name in ("code", "type", "status")]
    return " ".join(str(value) for value in [getattr(cause, "code", None), *said] if value).lower()


def header_of(cause: BaseException, name: str) -> str:
    """A header of the response; "" if there is none."""
    headers = getattr(getattr(cause, "response", None), "headers", None) or {}
    return str(headers.get(name, ""))


def wait_of(cause: BaseException) -> str:
    """How long the provider asks to wait, as `` 12 s`` or `` 5 min``; "" if it does not say, or says nothing that makes sense."""
    text = header_of(cause, "retry-after").strip()
    try:
        seconds = float(text) if text else float(header_of(cause, "retry-after-ms")) / 1000
    except ValueError:
        seconds = _until(text)
    if not 0 < seconds <= _LONGEST_WAIT:
        return ""
    return f" {ceil(seconds)} s" if seconds <= 120 else f" {ceil(seconds / 60)} min"


def _until(date: str) -> float:
    try:
        when = parsedate_to_datetime(date)
        return (when - datetime.now(when.tzinfo or UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
