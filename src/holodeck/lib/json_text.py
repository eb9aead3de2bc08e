"""JSON as models write it: read strictly, because a tool acts on it, and without what stands around it by mistake."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from holodeck.lib.validation import shorten

__all__ = ["read_json", "unwrapped"]

_MOST_DIGITS: Final = 1000


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is not JSON (NaN and infinities are not), a key stands twice, or a number has more than 1,000 digits or is too large.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=_no_constant, parse_int=_integer, parse_float=_float, object_pairs_hook=_object)


def unwrapped(text: str) -> str:
    """``text`` without a byte order mark; if it is a JSON string that holds an object, that object: some models encode twice."""
    text = text.removeprefix("\ufeff")
    if not text.lstrip().startswith('"'):
        return text
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, and at most {_MOST_DIGITS:,} are taken")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {shorten(digits, 40)} is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(shorten(twice, 100))} stands twice")
    return value
