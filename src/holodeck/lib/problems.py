"""What is wrong with a value in a file, in plain words: where it is, what it is, what to write instead."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from holodeck.lib.validation import shorten, terminal_safe

__all__ = ["KeyPath", "choices", "dotted", "explain", "is_secret", "nearest", "one_line"]

KeyPath = tuple[str | int, ...]
"""The way to a value: ``("tools", 0, "name")``."""
Model = type[BaseModel]
Details = Mapping[str, Any]
"""What pydantic says of one error."""
WrittenAs = Callable[[KeyPath], str | None]
"""How a plain scalar that is not text is written in the file."""

_SECRET_KEYS: Final = frozenset({"api_key", "headers"})
_SECRET_NAME: Final = re.compile(r"key|token|secret|passw|credential|auth|pin$", re.IGNORECASE)


def dotted(path: KeyPath) -> str:
    """``path`` as people write it: ``tools[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return one_line(text.removeprefix("."))


def one_line(text: str, limit: int = 120) -> str:
    """``text`` fit to stand inside a message: no controls, one line, not long."""
    return shorten(" ".join(terminal_safe(text).split()), limit)


def is_secret(path: KeyPath) -> bool:
    """Whether the value at ``path`` must not be shown in a message."""
    named = "env" in path and _SECRET_NAME.search(str(path[-1])) is not None
    return named or not _SECRET_KEYS.isdisjoint(path)


def choices(values: Sequence[str]) -> str:
    """``values`` as a sentence part: ``a, b or c``."""
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known word that ``word`` most likely is; "" if none is near."""
    close = difflib.get_close_matches(word.lower(), sorted(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def explain(error: ValidationError, data: Any, model: Model | None, written: WrittenAs) -> tuple[KeyPath, str]:
    """The first thing that ``error`` found, and how many more there are.

    Args:
        error: What pydantic says.
        data: What was validated.
        model: The model it was validated as: tells the names of union members from keys, and which keys there are.
        written: How a scalar that is not text is written.

    Returns:
        Where it is, and what is wrong.
    """
    found: dict[KeyPath, tuple[Details, list[Any]]] = {}
    # A misspelt key is an unknown one and a missing one: the unknown one says more.
    for details in sorted(error.errors(include_url=False), key=lambda each: each["type"] == "missing"):
        path, models = _locate(details, data, model)
        found.setdefault(path, (details, models))
    (path, (first, models)), more = next(iter(found.items())), len(found) - 1
    message = _Explanation(path, first, models, written).text()
    return path, message + (f" (and {more} more)" if more else "")


def _locate(details: Details, data: Any, model: Model | None) -> tuple[KeyPath, list[Any]]:
    """Where the error is, without the names of union members, and the models of the section it is in."""
    path: list[str | int] = []
    section = here = [model] if model is not None else []
    location = details["loc"]
    for number, part in enumerate(location):
        if len(here) > 1 and (tagged := [each for each in here if _tag(each) == part]):
            here = tagged
        elif _has(data, part) or (number == len(location) - 1 and details["type"] == "missing"):
            path.append(part)
            data = data[part] if _has(data, part) else None
            section, here = here, [inner for each in here for inner in _step(each, part)]
    return tuple(path), here if details["type"].startswith("union_tag") else section


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _step(model: Any, part: str | int) -> list[Any]:
    if isinstance(part, int):
        return [model]
    return _members(model.model_fields[part].annotation) if _is_model(model) and part in model.model_fields else []


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _tag(model: Any) -> str | None:
    field = model.model_fields.get("type") if _is_model(model) else None
    return str(get_args(field.annotation)[0]) if field is not None and get_args(field.annotation) else None


def _members(annotation: Any) -> list[Any]:
    """The classes that an annotation is made of."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (list, Union, types.UnionType):
        return [member for argument in get_args(annotation) for member in _members(argument) if member is not type(None)]
    return [annotation]


class _Explanation:
    """Puts one error of pydantic into plain words."""

    def __init__(self, path: KeyPath, details: Details, models: list[Any], written: WrittenAs) -> None:
        self._path, self._details, self._models, self._written = path, details, models, written
        self._context: Mapping[str, Any] = details.get("ctx", {})

    def text(self) -> str:
        kind = self._details["type"]
        if kind in _WANTED:
            return f"must be {_WANTED[kind]}"
        explain_kind = getattr(self, f"_{kind}", None)
        return explain_kind() if explain_kind else one_line(str(self._details["msg"]).replace("Input should be", "must be"), 300)

    def _value_error(self) -> str:
        return one_line(str(self._context["error"]), 300)

    def _too_short(self) -> str:
        least = self._context["min_length"]
        return f"needs at least {least} {'entry' if least == 1 else 'entries'}"

    def _string_too_long(self) -> str:
        return f"must be text of at most {self._context['max_length']:,} characters"

    def _missing(self) -> str:
        return f"the key '{self._path[-1]}' is missing"

    def _extra_forbidden(self) -> str:
        known = sorted({name for model in self._models if _is_model(model) for name in model.model_fields})
        hint = f"; known here: {', '.join(known)}" if known else ""
        if (key := str(self._path[-1])) not in known and one_line(key) in known:
            return "unknown key: there are characters in it that are not shown; type it again"
        return "unknown key" + (nearest(str(self._path[-1]), known) or hint)

    def _string_type(self) -> str:
        value, written = self._details["input"], self._written(self._path)
        if isinstance(value, dict | list) or not written:
            return "must be text"
        kind = "nothing" if value is None else "true or false" if isinstance(value, bool) else "a number"
        advice = "quote it" if is_secret(self._path) else f'quote it: "{one_line(written, 60)}"'
        return f"must be text, and YAML reads it as {kind}: {advice}"

    _path_type = _string_type

    def _union_tag_invalid(self) -> str:
        tag = str(self._context.get("tag", ""))
        return f"type {self._shown(tag)} is unknown: {self._use(self._tags(), tag)}"

    def _union_tag_not_found(self) -> str:
        return f"the key 'type' is missing: {self._use(self._tags())}"

    def _tags(self) -> list[str]:
        return [tag for model in self._models if (tag := _tag(model))]

    def _literal_error(self) -> str:
        known = [part.strip("' ") for part in str(self._context["expected"]).replace(" or ", ",").split(",")]
        return f"{self._shown(self._details['input'])} is unknown: {self._use(known, str(self._details['input']))}"

    _enum = _literal_error

    def _shown(self, value: Any) -> str:
        return "the value" if is_secret(self._path) else f"'{one_line(str(value), 40)}'"

    @staticmethod
    def _use(known: Sequence[str], word: str = "") -> str:
        return f"use {choices(known)}{nearest(word, known) if word else ''}"


_MAPPING: Final = "a mapping (keys and values)"
_WANTED: Final = {
    "string_too_short": "text that is not empty",
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dict_type": _MAPPING,
    "list_type": "a list (lines that start with '- ')",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of at most 64 bits",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
}
