"""What a model passes to a tool: from JSON text to arguments that fit the tool's schema.

Every refusal says what was wrong in words for the model, which gets it as the call's result and can correct itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import ToolRefused
from holodeck.lib.validation import exportable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["parse_arguments", "refusal"]

_MOST_FAULTS: Final = 5
_FAULT_CHARS: Final = 300


def parse_arguments(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call as a JSON object; lone surrogates in strings become U+FFFD.

    Args:
        arguments: JSON text, or what it stands for. None and blank text are no arguments: models send both for tools without parameters.

    Raises:
        ToolRefused: Not JSON (NaN and infinities are not), or not an object.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    value = _json_value(arguments)
    if not isinstance(value, dict):
        raise ToolRefused(f"The arguments must be a JSON object such as {{}}, not {_json_type(value)}.")
    return value


def _json_value(arguments: str | Mapping[str, Any]) -> Any:
    try:
        value = json.loads(arguments, parse_constant=_no_constant) if isinstance(arguments, str) else dict(arguments)
        return json.loads(exportable(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except RecursionError as exc:
        raise ToolRefused("The arguments are nested too deeply.") from exc
    except (ValueError, TypeError) as exc:
        raise ToolRefused(f"The arguments are not valid JSON: {shorten(exportable(str(exc)), _FAULT_CHARS)}.") from exc


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _json_type(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), "null")


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
