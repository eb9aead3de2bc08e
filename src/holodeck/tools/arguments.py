"""What a model passes to a tool: from JSON text to arguments that fit the tool's schema.

Every refusal says what was wrong in words for the model, which gets it as the call's result and can correct itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import ToolRefused
from holodeck.lib.json_text import read_json, unwrapped
from holodeck.lib.validation import exportable, shorten
from holodeck.tools.fitting import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["parse_arguments", "refusal"]

_MOST_FAULTS: Final = 5
_FAULT_CHARS: Final = 300
_MOST_LEVELS: Final = 100


def parse_arguments(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call as a JSON object; lone surrogates in strings become U+FFFD.

    Args:
        arguments: JSON text, or what it stands for. None and blank text are no arguments: models send both for tools without parameters.
            A JSON string that holds the JSON of an object is that object: some models encode twice.

    Raises:
        ToolRefused: Not JSON (NaN and infinities are not), a key that stands twice, nested too deeply, or not an object.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    value = _json_value(arguments)
    if not isinstance(value, dict):
        raise ToolRefused(f"The arguments must be a JSON object such as {{}}, not {_json_type(value)}.")
    if not _is_flat_enough(value, _MOST_LEVELS):
        raise ToolRefused("The arguments are nested too deeply.")
    return value


def _json_value(arguments: str | Mapping[str, Any]) -> Any:
    try:
        value = read_json(unwrapped(arguments)) if isinstance(arguments, str) else dict(arguments)
        return json.loads(exportable(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except RecursionError as exc:
        raise ToolRefused("The arguments are nested too deeply.") from exc
    except (ValueError, TypeError) as exc:
        raise ToolRefused(f"The arguments are not valid JSON: {shorten(exportable(str(exc)), _FAULT_CHARS)}.") from exc


def _is_flat_enough(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat_enough(item, levels - 1) for item in items)


def _json_type(value: Any) -> str:
    kind = kind_of(value)
    named = {"integer": "a number", "number": "a number", "array": "an array", "object": "an object", "null": "null"}
    return named.get(kind, f"a {kind}")


def refusal(name: str, faults: Iterable[tuple[str, str]], parameters: Iterable[str]) -> ToolRefused:
    """The refusal of a call whose arguments do not fit.

    Args:
        name: The tool's name.
        faults: Pairs of where (dotted; "" for the object itself) and what.
        parameters: Names that the tool takes.
    """
    lines = [shorten(f"{where}: {what}" if where else what, _FAULT_CHARS) for where, what in faults]
    more = f"; and {len(lines) - _MOST_FAULTS} more" if len(lines) > _MOST_FAULTS else ""
    known = ", ".join(parameters) or "none"
    return ToolRefused(exportable(f"The arguments do not fit {name}: {'; '.join(lines[:_MOST_FAULTS])}{more}. Parameters: {known}."))
