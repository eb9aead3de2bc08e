"""What comes out of a tool, as text: values that it returned, and exceptions that it raised."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from types import GeneratorType
from typing import Any, Final

from pydantic_core import to_json

from holodeck.errors import ToolError
from holodeck.lib.validation import MAX_TOOL_CHARS, exportable, shorten, terminal_safe

__all__ = ["as_text", "collected", "failure"]

MAX_ITEMS: Final = 100_000
"""Most items that a tool may yield."""
_TYPE_CHARS: Final = 100


def as_text(value: Any) -> str:
    """A tool's result as the model gets it; always text that UTF-8 can carry.

    Text stays as it is, None is the empty text, bytes are read as UTF-8 with replacement, everything else becomes JSON: pydantic models,
    dataclasses, dates, collections and so on, NaN and infinities as strings, and anything that JSON has no form for as its ``str()``.
    An iterator is read to its end.

    Raises:
        ToolError: There is no end to it, or to a generator inside the value.
        Exception: Whatever an iterator, or such a generator, raises.
    """
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        value = _read(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return exportable(str.__str__(value))  # the content, also of a (str, Enum) member
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return _as_json(_without_generators(value) if _holds_generator(value) else value)


async def collected(items: AsyncIterator[Any]) -> list[Any]:
    """What an asynchronous tool yields.

    Raises:
        ToolError: There is no end to it.
    """
    found: list[Any] = []
    async for item in items:
        found.append(item)
        if len(found) > MAX_ITEMS:
            raise _endless()
    return found


def failure(exc: BaseException) -> ToolError:
    """The :class:`~holodeck.errors.ToolError` for an exception that a tool raised; the caller chains ``exc`` as its cause."""
    name = shorten(" ".join(terminal_safe(type(exc).__name__).split()), _TYPE_CHARS)
    text = shorten(exportable(_said(exc)), MAX_TOOL_CHARS)
    return ToolError(f"{name}: {text}" if text else name, error_type=name)


def _read(items: Iterable[Any]) -> list[Any]:
    found = list(itertools.islice(items, MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:
        raise _endless()
    return found


def _endless() -> ToolError:
    return ToolError(f"it yields more than {MAX_ITEMS:,} items: return fewer, or a file's name")


def _as_json(value: Any) -> str:
    try:
        return to_json(value, fallback=_simpler, inf_nan_mode="strings").decode()
    except Exception:  # noqa: BLE001 - bytes that are not UTF-8, lone surrogates, circles, hostile objects: the slow way takes them
        return _as_json_slowly(value)


def _as_json_slowly(value: Any) -> str:
    try:
        return exportable(json.dumps(_plain(value), ensure_ascii=False))
    except (ValueError, RecursionError):
        return exportable(_said(value))


def _holds_generator(value: Any) -> bool:
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, GeneratorType):
            return True
        if isinstance(part, dict | list | tuple) and id(part) not in seen:
            seen.add(id(part))
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return False


def _without_generators(value: Any) -> Any:
    """``value`` with a list for each generator: it can be read once only, and whoever writes it would not stop at one without end."""
    if isinstance(value, GeneratorType):
        return [_without_generators(item) for item in _read(value)]
    if isinstance(value, dict):
        return {key: _without_generators(item) for key, item in value.items()}
    return [_without_generators(item) for item in value] if isinstance(value, list | tuple) else value


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
        return json.loads(to_json(value, fallback=_simpler, inf_nan_mode="strings"))
    except Exception:  # noqa: BLE001 - one value that cannot be written must not take its neighbours along
        return _said(value)


def _simpler(value: Any) -> Any:
    """A value that JSON has no form for, as one that it has: collections of every kind and arrays as lists, anything else as text."""
    if hasattr(value, "tolist"):  # NumPy's and its kin, scalars too
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | AbstractSet | ValuesView):
        return list(value)
    return _said(value)


def _said(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - a hostile __str__, SystemExit included, must not hide what happened
        return f"<{type(value).__name__}>"
