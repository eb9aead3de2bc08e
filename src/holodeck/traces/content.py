"""Captured content, one line of text a field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from holodeck.traces import names
from holodeck.traces.cells import MAX_SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holodeck.traces.records import SpanRecord

__all__ = ["content_of"]

_MAX_PARSED: Final = 200_000  # characters; a longer conversation is shown as it stands
_MESSAGES: Final = ("system", "input", "output")
_SPEAKERS: Final = ("system", "user", "assistant")  # who speaks follows from the field; a tool's answer says so


def content_of(span: SpanRecord) -> Iterator[tuple[str, str]]:
    """The captured fields of a span as (label, text). Of a conversation that goes to a model, only the last message is shown."""
    for label, keys in names.CONTENT:
        value = next((found for key in keys if (found := span.attributes.get(key)) is not None), None)
        value = _numbered(span.attributes, label) if value is None else value
        if value is not None:
            yield label, _readable(value, label)


def _numbered(attributes: Mapping[str, Any], label: str) -> Any:
    """The last of the messages that have an attribute each, None if there are none."""
    for pattern in names.NUMBERED.get(label, ()):
        if (key := pattern.format(0)) in attributes:
            last, number = attributes[key], 1
            while (key := pattern.format(number)) in attributes:
                last, number = attributes[key], number + 1
            return last
    return None


def _readable(value: Any, label: str) -> str:
    """Messages as what was said in them, anything else as it stands."""
    try:
        said = _said(value, last=label == "input") if label in _MESSAGES else ""
        return said or _plain(value)
    except (ValueError, TypeError, RecursionError):  # no JSON, nested without end, or not to be had as JSON
        return value if isinstance(value, str) else f"<{type(value).__name__}>"


def _said(value: Any, *, last: bool) -> str:
    parsed = json.loads(value) if isinstance(value, str) and len(value) <= _MAX_PARSED else value
    items = parsed if isinstance(parsed, list) else [parsed]
    return " ".join(filter(None, map(_message, items[-1:] if last else items)))


def _message(item: Any) -> str:
    """What a message (or a part of one) says; "" for what is no message."""
    if not isinstance(item, dict):
        return ""
    if not isinstance(parts := item.get("parts"), list):
        return _part(item)
    text = " ".join(filter(None, map(_part, parts)))
    role = item.get("role")
    return text if role in _SPEAKERS or not isinstance(role, str) else f"{role}: {text}"


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    if part.get("type") == "tool_call":
        return f"{part.get('name')}({_plain(part.get('arguments'))})"
    if part.get("type") == "tool_call_response":
        return _plain(part.get("response", part.get("result")))
    return text if isinstance(text := part.get("content"), str) else ""


def _plain(value: Any) -> str:
    """A value as text: text as it stands, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, default=lambda odd: f"<{type(odd).__name__}>")[: MAX_SHOWN + 1]
