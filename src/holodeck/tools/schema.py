"""JSON Schema: is it one, and do arguments fit it.

Imports ``jsonschema``, which costs 50 ms: imported by those who have a schema to check, when they have one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError  # type: ignore[import-untyped] # it brings no types
from jsonschema.validators import extend, validator_for  # type: ignore[import-untyped] # as above
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from holodeck.lib.patterns import compile_pattern
from holodeck.lib.problems import choices
from holodeck.lib.validation import shorten
from holodeck.tools.fitting import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["KEYWORDS", "SchemaCheck", "UnusableSchemaError"]

_ANNOTATIONS: Final = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format", "$comment"}
)
KEYWORDS: Final = frozenset(Draft202012Validator.VALIDATORS) | _ANNOTATIONS
"""What may stand in a schema: the keywords that validate, and those that describe."""

_FAULT_CHARS: Final = 300
_VALUE_CHARS: Final = 100
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_MOST_REFERENCES: Final = 10_000
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
    """Not a valid JSON Schema, or not one that is tried here.

    Attributes:
        path: Dotted path of the fault inside the schema; "" for the whole.
        reason: What is wrong there.
        is_valid: It is a schema all the same, only not one that is tried here.
    """

    def __init__(self, path: str, reason: str, *, is_valid: bool = False) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason, self.is_valid = path, reason, is_valid


class SchemaCheck:
    """Checks arguments against a JSON Schema, in bounded time. References are resolved inside the schema only, never over the network.

    Patterns run on RE2, whose time is linear in the text; Python's engine is asked only for those that RE2 cannot read.

    Args:
        schema: An object schema; the dialect is its ``$schema``, 2020-12 by default.
        is_foreign: It comes from somebody whose patterns may be made to hang those who use them: what RE2 cannot read is passed over.

    Raises:
        UnusableSchemaError: It is not a valid schema, or a foreign one with ``patternProperties``.
    """

    def __init__(self, schema: dict[str, Any], *, is_foreign: bool = False) -> None:
        dialect = _dialect(schema)
        formats = FormatChecker(()) if is_foreign else dialect.FORMAT_CHECKER  # among formats: regular expressions, as Python has them
        try:
            dialect.check_schema(schema, format_checker=formats)
        except SchemaError as exc:
            raise UnusableSchemaError(_dotted(exc.absolute_path), _schema_fault(exc.instance, exc.message)) from exc
        except RecursionError as exc:
            raise UnusableSchemaError("", "it is nested too deeply") from exc
        _resolve_references(schema)
        if is_foreign and any("patternProperties" in part for part in _mappings(schema)):
            raise UnusableSchemaError("", "patternProperties of others are not tried", is_valid=True)
        self._is_foreign, self._references = is_foreign, 0
        followed = {word: self._counted(dialect.VALIDATORS[word]) for word in _REFERENCES if word in dialect.VALIDATORS}
        keywords = {"pattern": self._pattern, "uniqueItems": _unique, **followed}
        self._validator = extend(dialect, keywords)(schema, registry=Registry())

    def faults(self, arguments: Any) -> list[tuple[str, str]]:
        """What does not fit, as pairs of where (dotted) and what; empty when all does."""
        self._references = 0
        try:
            return [fault for error in self._validator.iter_errors(arguments) for fault in _faults(error)]
        except RecursionError:  # a schema that refers to itself without end
            return [("", "the schema cannot be applied: it refers to itself without end, or too often")]
        except Unresolvable:  # what leads somewhere from the whole schema, and not from a part with an $id of its own
            return [("", "the schema cannot be applied: it refers to what is not in it")]

    def _counted(self, follow: Callable[..., Iterable[ValidationError] | None]) -> Callable[..., Iterator[ValidationError]]:
        def reference(*args: Any) -> Iterator[ValidationError]:
            self._references += 1
            if self._references > _MOST_REFERENCES:  # each may double the work of the one before
                raise RecursionError
            yield from follow(*args) or ()

        return reference

    def _pattern(self, _validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not self._matches(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def _matches(self, pattern: str, text: str) -> bool:
        try:
            return compile_pattern(pattern).search(text) is not None
        except ValueError:
            return self._is_foreign or re.search(pattern, text) is not None


def _unique(_validator: Any, is_asked: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    """``uniqueItems`` in linear time: the library compares each object with each other."""
    if is_asked and isinstance(instance, list) and len(set(map(_identity, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _identity(value: Any) -> tuple[Any, ...]:
    """The same for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((name, _identity(item)) for name, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_identity, value))
    return isinstance(value, bool), value


def _dialect(schema: dict[str, Any]) -> Any:
    named = schema.get("$schema")
    return validator_for(schema, default=Draft202012Validator) if isinstance(named, str) else Draft202012Validator


def _mappings(schema: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a schema, itself included."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _faults(error: Any) -> list[tuple[str, str]]:
    """One error of ``jsonschema`` in the words of JSON, each at the key that it is about."""
    path = list(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
        strange = [name for name in error.instance if name not in known and not any(re.search(pattern, name) for pattern in patterns)]
        return [(_dotted([*path, name]), "is not allowed") for name in strange]
    return [(_dotted(path), _WORDS[error.validator](error) if error.validator in _WORDS else _plain_message(error))]


def _type_words(error: Any) -> str:
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    return f"must be {choices([_a(kind) for kind in wanted])}, not {_a(kind_of(error.instance))}"


def _any_words(error: Any) -> str:
    kinds = [sub.validator_value for sub in error.context or () if sub.validator == "type" and not sub.path]
    if len(kinds) == len(error.validator_value) and all(isinstance(kind, str) for kind in kinds):
        return f"must be {choices([_a(kind) for kind in kinds])}, not {_a(kind_of(error.instance))}"
    return "fits none of the forms that are allowed here"


_WORDS: Final[dict[str, Callable[[Any], str]]] = {
    "type": _type_words,
    "enum": lambda error: f"must be {choices([_json(value) for value in error.validator_value])}",
    "const": lambda error: f"must be {_json(error.validator_value)}",
    "anyOf": _any_words,
    "oneOf": _any_words,
}


def _plain_message(error: Any) -> str:
    """The library's words, which begin with the value as Python writes it."""
    written = repr(error.instance)
    return f"{_json(error.instance)}{error.message.removeprefix(written)}" if error.message.startswith(written) else error.message


def _a(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[:1] in "aio" else f"a {kind}"


def _json(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), _VALUE_CHARS)


def _resolve_references(schema: dict[str, Any]) -> None:
    resource: Resource[Any] = DRAFT202012.create_resource(schema)
    uri = resource.id() or ""
    resolver = Registry().with_resource(uri, resource).resolver(uri)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable as exc:
            raise UnusableSchemaError("", f"the reference {reference!r} does not lead anywhere inside this schema") from exc


def _references(schema: Any) -> Iterable[str]:
    return (found for part in _mappings(schema) for word in _REFERENCES if isinstance(found := part.get(word), str))


def _dotted(path: Iterable[str | int]) -> str:
    return ".".join(str(part) for part in path)


def _schema_fault(instance: Any, message: str) -> str:
    if isinstance(instance, str) and instance in _PYTHON_NAMES:
        return f"{instance!r} is not a JSON Schema type: write {_PYTHON_NAMES[instance]!r}"
    return shorten(message.replace("is not a 'regex'", "is not a regular expression (regex)"), _FAULT_CHARS)
