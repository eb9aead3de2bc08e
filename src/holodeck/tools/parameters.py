"""``parameters`` as an agent file writes them: a JSON Schema object, or the short form ``name: {type, description, …}``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holodeck.lib.validation import exportable
from holodeck.tools.arguments import refusal
from holodeck.tools.fitting import fitted

if TYPE_CHECKING:
    from holodeck.errors import AgentFileError
    from holodeck.tools.tool import Place

__all__ = ["Parameters", "names_of"]


class Parameters:
    """The parameters of one tool, read and checked.

    In the short form a parameter is required unless it says ``required: false``, has a ``default``, or is among ``optional``.
    Arguments that the schema does not name are refused, unless it says ``additionalProperties``.

    Args:
        written: The value of ``parameters``.
        place: Where it stands.
        optional: Names that need not be given although the file does not say so, e.g. those with a default in Python.

    Attributes:
        place: As given.
        schema: The JSON Schema that the model is offered.
        defaults: Values for arguments that the model leaves out.

    Raises:
        AgentFileError: It is not a valid schema, a default does not fit it, or a keyword is unknown.
    """

    def __init__(self, written: dict[str, Any], place: Place, optional: frozenset[str] = frozenset()) -> None:
        from holodeck.tools.schema import SchemaCheck, UnusableSchemaError  # noqa: PLC0415 - see holodeck.tools.schema

        self.place = place
        self._is_full = _is_full(written)
        self.schema = _full(written) if self._is_full else _expand(written, place, optional)
        self.schema = _as_json(self.schema, place)
        try:
            self._check = SchemaCheck(self.schema)
        except UnusableSchemaError as exc:
            raise self._fault(exc.path, exc.reason) from exc
        properties = self.schema["properties"]
        self.defaults = {name: entry["default"] for name, entry in properties.items() if isinstance(entry, dict) and "default" in entry}
        self._check_defaults()

    def _fault(self, path: str, what: str) -> AgentFileError:
        if not path:
            return self.place.error(what)
        return self.place.at(path if self._is_full else path.removeprefix("properties.")).error(what)

    def place_of(self, name: str) -> Place:
        """Where the parameter ``name`` stands."""
        return self.place.at(f"properties.{name}" if self._is_full else name)

    def _check_defaults(self) -> None:
        for where, what in self._check.faults(self.defaults):
            if (name := where.partition(".")[0]) in self.defaults:  # missing arguments are no fault of the defaults
                raise self.place_of(name).error(f"the default does not fit: {where}: {what}")

    def require(self, names: list[str]) -> None:
        """Makes ``names`` required, if the file does not say so already."""
        required = self.schema.setdefault("required", [])
        required.extend(name for name in names if name not in required)

    def complete(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """``arguments`` in the types of the schema (see :func:`holodeck.tools.fitting.fitted`), with the defaults filled in.

        Raises:
            ToolRefused: They do not fit the schema.
        """
        whole = self.defaults | fitted(arguments, self.schema)
        if faults := self._check.faults(whole):
            raise refusal(tool, faults, names_of(self.schema))
        return whole


def names_of(schema: dict[str, Any]) -> list[str]:
    """The names of an object schema's properties, in order."""
    return list(schema.get("properties", {}))


def _is_full(written: dict[str, Any]) -> bool:
    """A JSON Schema has ``type: object`` or ``properties``; in the short form both would be parameters, and so mappings of keywords."""
    properties = written.get("properties")
    return written.get("type") == "object" or (isinstance(properties, dict) and all(isinstance(p, dict) for p in properties.values()))


def _full(written: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False} | written


def _expand(written: dict[str, Any], place: Place, optional: frozenset[str]) -> dict[str, Any]:
    properties = {str(name): _entry(entry, place.at(str(name))) for name, entry in written.items()}
    required = [name for name, entry in properties.items() if _is_required(name, entry, optional)]
    shown = {name: {k: v for k, v in entry.items() if not (k == "required" and isinstance(v, bool))} for name, entry in properties.items()}
    return {"type": "object", "properties": shown, "required": required, "additionalProperties": False}


def _entry(entry: Any, place: Place) -> dict[str, Any]:
    from holodeck.tools.schema import KEYWORDS  # noqa: PLC0415 - see holodeck.tools.schema

    if not isinstance(entry, dict):
        raise place.error("needs a mapping such as {type: string, description: …}")
    if unknown := next((key for key in entry if key not in KEYWORDS), None):
        raise place.at(str(unknown)).error("is no keyword of JSON Schema; known are type, description, required, enum, default, …")
    return entry


def _is_required(name: str, entry: dict[str, Any], optional: frozenset[str]) -> bool:
    said = entry.get("required")
    return said if isinstance(said, bool) else "default" not in entry and name not in optional


def _as_json(schema: dict[str, Any], place: Place) -> dict[str, Any]:
    try:
        pure = json.loads(exportable(json.dumps(schema, ensure_ascii=False, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as exc:
        raise place.error(f"holds a value that JSON has not: {exc}") from exc
    return dict(pure)
