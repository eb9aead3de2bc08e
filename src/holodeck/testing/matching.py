"""Values that are compared: by value, by pattern, by JSON Schema; numbers within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, PrivateAttr, model_validator

from holodeck.lib.redaction import compile_pattern
from holodeck.models.base import Float, Strict
from holodeck.testing.calls import value_text

if TYPE_CHECKING:
    from holodeck.tools.schema import SchemaCheck

__all__ = ["AtMost", "Bounds", "Exactly", "Match", "matcher_of", "schema_check", "schema_problem"]


class Match(Strict):
    """How a value has to look like; everything that is given has to hold.

    Attributes:
        equals: The value itself.
        contains: Text that stands in it.
        pattern: RE2 pattern that is searched in it.
        json_schema: JSON Schema that it fits.
    """

    equals: Any = None
    contains: str | None = None
    pattern: str | None = None
    json_schema: dict[str, Any] | None = None
    _compiled: Any = PrivateAttr(default=None)
    _schema: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("needs one of 'equals', 'contains', 'pattern' and 'json_schema'")
        if self.pattern is not None:
            self._compiled = compile_pattern(self.pattern)
        self._schema = schema_check(self.json_schema)
        return self

    def problem(self, value: Any) -> str:
        """What is wrong with ``value``; "" if nothing is."""
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if "equals" in self.model_fields_set and not same(self.equals, value):
            return f"expected {value_text(self.equals)}, got {value_text(value)}"
        if self.contains is not None and self.contains not in text:
            return f"expected something with {self.contains!r} in it, got {value_text(value)}"
        if self._compiled is not None and not self._compiled.search(text):
            return f"expected something like {self.pattern!r}, got {value_text(value)}"
        return schema_problem(self._schema, value)


def matcher_of(value: Any) -> Match:
    """A matcher for a value of a case file: a mapping of nothing but the keys of :class:`Match` is one, anything else is a value.

    Raises:
        ValueError: A pattern or a schema is none.
    """
    if isinstance(value, Mapping) and value and set(value) <= set(Match.model_fields):
        return Match.model_validate(value)
    return Match(equals=value)


def same(expected: Any, value: Any) -> bool:
    """Equal as JSON values are: ``true`` is not 1, and 1 is 1.0."""
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, dict) and isinstance(value, dict):
        return expected.keys() == value.keys() and all(same(each, value[key]) for key, each in expected.items())
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple):
        return len(expected) == len(value) and all(map(same, expected, value))
    return bool(expected == value)


def schema_check(schema: dict[str, Any] | None) -> SchemaCheck | None:
    """A check for a JSON Schema; None for None.

    Raises:
        ValueError: It is no schema.
    """
    if schema is None:
        return None
    from holodeck.tools.schema import SchemaCheck, UnusableSchemaError  # noqa: PLC0415 - only who uses schemas waits for it

    try:
        return SchemaCheck(schema)
    except UnusableSchemaError as error:
        place = f" at {error.path}" if error.path else ""
        raise ValueError(f"this is not a JSON Schema{place}: {error.reason}") from error


def schema_problem(check: SchemaCheck | None, value: Any) -> str:
    """How ``value`` breaks a schema; "" if it does not."""
    faults = check.faults(value) if check else []
    if not faults:
        return ""
    (place, what), more = faults[0], f" (and {len(faults) - 1} more)" if faults[1:] else ""
    return f"does not fit the JSON Schema{f' at {place}' if place else ''}: {what}{more}"


class Bounds(Strict):
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
        return {key: value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    return convert


AtMost = Annotated[Bounds, BeforeValidator(_number_as("max"))]
"""Bounds; a number alone is the most."""
Exactly = Annotated[Bounds, BeforeValidator(_number_as("equals"))]
"""Bounds; a number alone is exactly that."""
