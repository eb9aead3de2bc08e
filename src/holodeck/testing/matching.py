"""Values that are compared: by value, by pattern, by JSON Schema; numbers within bounds."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, field_validator, model_validator

from holodeck.lib.patterns import compile_pattern
from holodeck.models.base import Float, Strict
from holodeck.testing.calls import value_text

if TYPE_CHECKING:
    from holodeck.tools.schema import SchemaCheck

__all__ = [
    "AtMost",
    "Bounds",
    "Exactly",
    "Given",
    "JsonSchema",
    "Match",
    "Matched",
    "Pattern",
    "compiled",
    "is_like",
    "matcher_of",
    "same",
    "schema_problem",
]

_KEPT: Final = 1024
"""Patterns and schemas that are kept compiled."""
_LONGEST: Final = 200
"""Most characters of what is said of a schema."""
compiled = functools.lru_cache(maxsize=_KEPT)(compile_pattern)
_TYPES: Final = "string, number, integer, boolean, object, array or null"


@functools.lru_cache(maxsize=_KEPT)
def _schema_check(schema: str) -> SchemaCheck:
    from holodeck.tools.schema import SchemaCheck, UnusableSchemaError  # noqa: PLC0415 - only who uses schemas waits for it

    content = json.loads(schema)
    if not isinstance(content.get("$schema", ""), str):
        raise ValueError("this is not a JSON Schema at $schema: must be text")  # noqa: TRY004 - pydantic reports ValueError
    try:
        return SchemaCheck(content)
    except UnusableSchemaError as error:
        place, reason = f" at {error.path}" if error.path else "", error.reason
        if error.path.rpartition(".")[2] == "type" and "given schemas" in reason:  # what the meta-schema has to say of a wrong type
            reason = f"{reason.partition(' is not ')[0]} is no type: use {_TYPES}"
        raise ValueError(f"this is not a JSON Schema{place}: {_by_words(reason)}") from error


def _by_words(text: str) -> str:
    """``text`` cut between words, if it is long: the fault of a large value has the value in it."""
    if len(text) <= _LONGEST:
        return text
    begin = text[:_LONGEST]
    return (begin.rpartition(" ")[0] or begin) + " …"


def _as_key(schema: dict[str, Any]) -> str:
    return json.dumps(schema, default=str)


def _checked_pattern(pattern: str) -> str:
    compiled(pattern)
    return pattern


def _checked_schema(schema: dict[str, Any]) -> dict[str, Any]:
    _schema_check(_as_key(schema))
    return schema


Pattern = Annotated[str, AfterValidator(_checked_pattern)]
"""A pattern of RE2."""
JsonSchema = Annotated[dict[str, Any], AfterValidator(_checked_schema)]
"""A JSON Schema."""


class Given(Strict):
    """A section in which a key that is written has a value: one without any would expect nothing, and hold."""

    _NULLABLE: ClassVar[frozenset[str]] = frozenset()

    @field_validator("*", mode="before")
    @classmethod
    def _has_a_value(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None and info.field_name not in cls._NULLABLE:
            raise ValueError('there is no value: write one, or take the key out (the word "null" needs quotes)')
        return value


class Match(Given):
    """How a value has to look like; everything that is given has to hold.

    Attributes:
        equals: The value itself.
        contains: Text that stands in it.
        pattern: RE2 pattern that is searched in it.
        json_schema: JSON Schema that it fits.
    """

    equals: Any = None
    contains: str | None = None
    pattern: Pattern | None = None
    json_schema: JsonSchema | None = None
    _NULLABLE: ClassVar[frozenset[str]] = frozenset({"equals"})

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("needs one of 'equals', 'contains', 'pattern' and 'json_schema'")
        return self

    def problem(self, value: Any) -> str:
        """What is wrong with ``value``; "" if nothing is."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if "equals" in self.model_fields_set and not same(self.equals, value):
            return f"expected {value_text(self.equals)}, got {value_text(value)}"
        if self.contains is not None and self.contains not in text:
            return f"expected something with {self.contains!r} in it, got {value_text(value)}"
        if self.pattern is not None and not compiled(self.pattern).search(text):
            return f"expected something like {self.pattern!r}, got {value_text(value)}"
        return schema_problem(self.json_schema, value) if self.json_schema is not None else ""


def matcher_of(value: Any) -> Match:
    """A matcher for a value of a case file: a mapping of nothing but the keys of :class:`Match` is one, anything else is a value.

    Raises:
        ValueError: A pattern or a schema is none.
    """
    if isinstance(value, Mapping) and value and set(value) <= set(Match.model_fields):
        return Match.model_validate(value)
    return Match(equals=value)


def _checked_match(value: Any) -> Any:
    matcher_of(value)
    return value


Matched = Annotated[Any, AfterValidator(_checked_match)]
"""A value, or a mapping of the keys of :class:`Match`, kept as it is written."""


def same(expected: Any, value: Any) -> bool:
    """Equal as JSON values are: ``true`` is not 1, and 1 is 1.0."""
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, dict) and isinstance(value, dict):
        return expected.keys() == value.keys() and all(same(each, value[key]) for key, each in expected.items())
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple):
        return len(expected) == len(value) and all(map(same, expected, value))
    return bool(expected == value)


def schema_problem(schema: dict[str, Any], value: Any) -> str:
    """How ``value`` breaks a schema; "" if it does not."""
    faults = list(dict.fromkeys(_schema_check(_as_key(schema)).faults(value)))
    if not faults:
        return ""
    (place, what), more = faults[0], f" (and {len(faults) - 1} more)" if faults[1:] else ""
    return f"does not fit the JSON Schema{f' at {place}' if place else ''}: {_by_words(what)}{more}"


def is_like(text: str, pattern: str) -> bool:
    """Whether ``text`` as a whole is ``pattern``, in which ``*`` stands for anything, and nothing else has a meaning. In linear time."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *inner, last = others
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in inner:
        if (at := text.find(part, at, end)) < 0:
            return False
        at += len(part)
    return True


class Bounds(Given):
    """What a number may be.

    Attributes:
        min: At least this.
        max: At most this.
        equals: Exactly this.
    """

    min: Float | None = None
    max: Float | None = None
    equals: Float | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.min, self.max, self.equals) == (None, None, None):
            raise ValueError("needs one of 'min', 'max' and 'equals'")
        return self

    def problem(self, value: float) -> str:
        """What is wrong with ``value``; "" if nothing is."""
        if self.equals is not None and value != self.equals:
            return f"expected exactly {self.equals:g}, got {value:g}"
        if self.max is not None and value > self.max:
            return f"expected at most {self.max:g}, got {value:g}"
        if self.min is not None and value < self.min:
            return f"expected at least {self.min:g}, got {value:g}"
        return ""


def _number_as(key: str) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {key: value}
        if not isinstance(value, Mapping | Bounds):
            raise ValueError("must be a number, or a mapping of 'min', 'max' and 'equals'")  # noqa: TRY004 - pydantic reports ValueError
        return value

    return convert


AtMost = Annotated[Bounds, BeforeValidator(_number_as("max"))]
"""Bounds; a number alone is the most."""
Exactly = Annotated[Bounds, BeforeValidator(_number_as("equals"))]
"""Bounds; a number alone is exactly that."""
