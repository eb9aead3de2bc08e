"""JSON Schema: is it one, and do arguments fit it.

Imports ``jsonschema``, which costs 50 ms: imported by those who have a schema to check, when they have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped] # it brings no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped] # as above
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from holodeck.lib.validation import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KEYWORDS", "SchemaCheck", "UnusableSchemaError"]

_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "$comment"}
)
KEYWORDS: Final = frozenset(Draft202012Validator.VALIDATORS) | _ANNOTATIONS
"""What may stand in a schema: the keywords that validate, and those that describe."""

_FAULT_CHARS: Final = 300
_PYTHON_NAMES: Final = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


class UnusableSchemaError(Exception):
    """Not a valid JSON Schema.

    Attributes:
        path: Dotted path of the fault inside the schema; "" for the whole.
        reason: What is wrong there.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class SchemaCheck:
    """Checks arguments against a JSON Schema. References are resolved inside the schema only, never over the network.

    Args:
        schema: An object schema; the dialect is its ``$schema``, 2020-12 by default.

    Raises:
        UnusableSchemaError: It is not a valid schema.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        dialect = validator_for(schema, default=Draft202012Validator)
        try:
            dialect.check_schema(schema, format_checker=dialect.FORMAT_CHECKER)  # among formats: regular expressions
        except SchemaError as exc:
            raise UnusableSchemaError(_dotted(exc.absolute_path), _schema_fault(exc.instance, exc.message)) from exc
        _resolve_references(schema)
        self._validator = dialect(schema, registry=Registry())

    def faults(self, arguments: Any) -> list[tuple[str, str]]:
        """What does not fit, as pairs of where (dotted) and what; empty when all does."""
        try:
            return [(_dotted(error.absolute_path), error.message) for error in self._validator.iter_errors(arguments)]
        except RecursionError:  # a schema that refers to itself without end
            return [("", "the schema cannot be applied: it refers to itself without end")]


def _resolve_references(schema: dict[str, Any]) -> None:
    resource: Resource[Any] = DRAFT202012.create_resource(schema)
    uri = resource.id() or ""
    resolver = Registry().with_resource(uri, resource).resolver(uri)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable as exc:
            raise UnusableSchemaError("", f"$ref {reference!r} does not lead anywhere inside this schema") from exc


def _references(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _dotted(path: Iterable[str | int]) -> str:
    return ".".join(str(part) for part in path)


def _schema_fault(instance: Any, message: str) -> str:
    if isinstance(instance, str) and instance in _PYTHON_NAMES:
        return f"{instance!r} is not a JSON Schema type: write {_PYTHON_NAMES[instance]!r}"
    return shorten(message, _FAULT_CHARS)
