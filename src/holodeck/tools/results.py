"""What comes out of a tool, as text: values that it returned, and exceptions that it raised."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_json

from holodeck.errors import ToolError
from holodeck.lib.validation import exportable

__all__ = ["as_text", "failure"]


def as_text(value: Any) -> str:
    """A tool's result as the model gets it; always text that UTF-8 can carry.

    Text stays as it is, None is the empty text, bytes are read as UTF-8 with replacement, everything else becomes JSON: pydantic models,
    dataclasses, dates, sets, enums and so on, NaN and infinities as strings, and anything that JSON has no form for as its ``str()``.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return exportable(str.__str__(value))  # the content, also of a (str, Enum) member
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return _as_json(value)


def failure(exc: BaseException) -> ToolError:
    """The :class:`~holodeck.errors.ToolError` for an exception that a tool raised; the caller chains ``exc`` as its cause."""
    name = exportable(type(exc).__name__)
    text = exportable(_said(exc))
    return ToolError(f"{name}: {text}" if text else name, error_type=name)


def _as_json(value: Any) -> str:
    try:
        return to_json(value, fallback=_said, inf_nan_mode="strings").decode()
    except Exception:  # noqa: BLE001 - bytes that are not UTF-8, lone surrogates, circles, hostile objects: the slow way takes them
        return _as_json_slowly(value)


def _as_json_slowly(value: Any) -> str:
    try:
        return exportable(json.dumps(_plain(value), ensure_ascii=False))
    except (ValueError, RecursionError):
        return exportable(_said(value))


def _plain(value: Any) -> Any:
    """``value`` made of what JSON has, container by container."""
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str | bytes | bytearray | memoryview):
        return as_text(value)
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> Any:
    try:
        return json.loads(to_json(value, fallback=_said, inf_nan_mode="strings"))
    except Exception:  # noqa: BLE001 - one value that cannot be written must not take its neighbours along
        return _said(value)


def _said(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a hostile __str__ must not hide what happened
        return f"<{type(value).__name__}>"
