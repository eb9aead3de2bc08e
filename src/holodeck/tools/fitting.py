"""What a model means, where it misses the form: arguments brought to the types that a JSON Schema names.

Models send ``"5"`` for a number, ``5.0`` for an integer, a list as JSON text, and null for what they leave out. Each of these has one
meaning, where the schema takes nothing else. Whatever is not so clear stays as it is, and the check that follows refuses it: a number is
no text, and true is no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holodeck.lib.json_text import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["fitted", "kind_of", "stray_booleans"]

_MOST_STEPS: Final = 16
"""References that are followed, one after the other."""
_READABLE: Final = frozenset({"integer", "number", "boolean", "array", "object"})
_NUMBERS: Final = frozenset({"integer", "number", "null"})
_ANY: Final = _READABLE
_ANYTHING: Final[dict[str, Any]] = {}
_KINDS: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def kind_of(value: Any) -> str:
    """The JSON type of a value, as JSON Schema calls it."""
    return _KINDS.get(type(value), "object")


def fitted(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """``arguments`` in the types of an object schema, at any depth.

    Text becomes the number, boolean, list or object whose JSON it is, where the schema takes that and no text. A whole number becomes an
    integer where the schema takes no other numbers. Null for a property that is not required and takes no null is left out.

    Args:
        arguments: A JSON object.
        schema: A JSON Schema; parts of it that cannot be read are passed over.
    """
    result = _Fitter(schema).value(arguments, schema)
    return result if isinstance(result, dict) else arguments


def stray_booleans(arguments: dict[str, Any], schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of where (dotted) and what for each true or false where a number is wanted: Python would take them for 1 and 0."""
    return [(".".join(where), "must be a number, not a boolean") for where in _Fitter(schema).strays(arguments, schema)]


class _Fitter:
    """Walks a value and its schema side by side."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[int, frozenset[str] | None] = {}

    def value(self, value: Any, schema: Any) -> Any:
        schema = self._resolved(schema)
        value = _converted(value, self._kinds(schema))
        schema = self._branch(schema, kind_of(value))
        if isinstance(value, dict) and isinstance(properties := schema.get("properties"), dict):
            return self._object(value, properties, schema.get("required"))
        if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
            return [self.value(item, items) for item in value]
        return value

    def strays(self, value: Any, schema: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """Where in ``value`` a boolean stands in place of a number."""
        schema = self._branch(self._resolved(schema), kind_of(value))
        if isinstance(value, bool) and (self._kinds(schema) or _ANY) <= _NUMBERS:
            yield where
        elif isinstance(value, dict) and isinstance(properties := schema.get("properties"), dict):
            for name, item in value.items():
                yield from self.strays(item, properties.get(name), (*where, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.strays(item, schema.get("items"), (*where, str(index)))

    def _object(self, value: dict[str, Any], properties: dict[str, Any], required: Any) -> dict[str, Any]:
        needed = required if isinstance(required, list) else []
        return {
            name: self.value(item, properties.get(name))
            for name, item in value.items()
            if item is not None or name in needed or name not in properties or self._takes_null(properties[name])
        }

    def _takes_null(self, schema: Any) -> bool:
        kinds = self._kinds(self._resolved(schema))
        return kinds is None or "null" in kinds

    def _resolved(self, schema: Any) -> dict[str, Any]:
        for _ in range(_MOST_STEPS):
            if not isinstance(schema, dict) or not isinstance(reference := schema.get("$ref"), str):
                break
            schema = self._at(reference)
        return schema if isinstance(schema, dict) and "$ref" not in schema else _ANYTHING

    def _at(self, reference: str) -> Any:
        """What a reference inside this schema leads to; None for any other, which is the check's matter."""
        found: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found if reference.startswith("#") else None

    def _kinds(self, schema: dict[str, Any]) -> frozenset[str] | None:
        """The types that a schema takes; None if it does not say. Each part is looked at once, however often it is referred to."""
        if id(schema) not in self._known:
            self._known[id(schema)] = None  # for those inside who refer to it
            self._known[id(schema)] = self._found_kinds(schema)
        return self._known[id(schema)]

    def _found_kinds(self, schema: dict[str, Any]) -> frozenset[str] | None:
        kind = schema.get("type")
        if isinstance(kind, str):
            return frozenset({kind})
        if isinstance(kind, list):
            return frozenset(map(str, kind))
        if isinstance(values := schema.get("enum"), list):
            return frozenset(map(kind_of, values))
        if not (alternatives := self._alternatives(schema)):
            return None
        found = [self._kinds(self._resolved(alternative)) for alternative in alternatives]
        return None if None in found else frozenset().union(*(kinds for kinds in found if kinds))

    def _branch(self, schema: dict[str, Any], kind: str) -> dict[str, Any]:
        """The one alternative of ``schema`` that is about values of ``kind``, or else the schema itself."""
        fitting = [
            branch
            for alternative in self._alternatives(schema)
            if kind in (self._kinds(branch := self._resolved(alternative)) or frozenset({kind}))
        ]
        return fitting[0] if len(fitting) == 1 else schema

    @staticmethod
    def _alternatives(schema: dict[str, Any]) -> list[Any]:
        found = schema.get("anyOf", schema.get("oneOf"))
        return found if isinstance(found, list) else []


def _converted(value: Any, kinds: frozenset[str] | None) -> Any:
    if kinds is None:
        return value
    if isinstance(value, str) and "string" not in kinds:
        value = _read(value, kinds)
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        return int(value)
    return value


def _read(text: str, kinds: frozenset[str]) -> Any:
    """The value whose JSON ``text`` is, if it is of one of ``kinds``; ``text`` itself if not."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return text
    kind = kind_of(value)
    wanted = kind in kinds or (kind == "integer" and "number" in kinds) or (kind == "number" and "integer" in kinds)
    return value if wanted and kind in _READABLE else text
