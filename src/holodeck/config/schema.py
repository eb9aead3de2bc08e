"""A JSON Schema of agent files, for editors."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from holodeck.config.ignored import IGNORED_KEYS, IGNORED_TOOL_TYPES
from holodeck.models import agent, llm, observability

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DIALECT", "agent_schema", "describe"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE: Final = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)
_REFERENCE: Final = {"type": "string", "pattern": r"\$\{.+\}", "description": "From the environment: ${VAR}."}
# pydantic leaves its own words where a limit stands on a validated optional number.
_LIMITS: Final = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_NOT_TEXT: Final = frozenset({"integer", "number", "boolean"})


def agent_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) of what an agent file may hold, for editors.

    It is made from the models, with the descriptions in their docstrings. Numbers, switches and choices may be ``${VAR}``; the keys
    that are known and not acted upon are accepted and marked as deprecated.
    """
    schema = agent.AgentConfig.model_json_schema()
    definitions = schema.pop("$defs")
    sections = {"AgentConfig": schema, **definitions}
    for name, section in sections.items():
        describe(section, _models().get(name))
        _allow_references(section, definitions)
    _allow_ignored(sections)
    schema["properties"]["tools"]["items"] = _tool_items(schema["properties"]["tools"]["items"])
    return {"$schema": DIALECT, "title": "HoloDeck agent file", **{k: v for k, v in schema.items() if k != "title"}, "$defs": definitions}


def _models() -> dict[str, type[BaseModel]]:
    found = (value for module in (agent, llm, observability) for value in vars(module).values())
    return {value.__name__: value for value in found if isinstance(value, type) and issubclass(value, BaseModel)}


def describe(section: dict[str, Any], model: type[BaseModel] | None) -> None:
    """Put the docstring's parts where editors look: its first paragraph on the section, each attribute on its property."""
    if model is None:
        return
    section["description"] = _joined((inspect.getdoc(model) or "").split("\n\n")[0])
    for key, text in _attributes(model):
        if key in section.get("properties", {}):
            section["properties"][key]["description"] = text


def _attributes(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for base in reversed(model.__mro__):
        _, _, attributes = (inspect.cleandoc(base.__doc__ or "")).partition("Attributes:\n")
        for found in _ATTRIBUTE.finditer(attributes):
            for name in found["names"].split(", "):
                yield name, _joined(found["text"])


def _joined(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _allow_references(section: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Let numbers, switches and choices be ``${VAR}`` too; a plain text can hold one anyway, and a tool's type cannot."""
    for key, value in section.get("properties", {}).items():
        for part in value.get("anyOf", ()):
            part.update({_LIMITS[word]: part.pop(word) for word in _LIMITS if word in part})
        if any(part.get("type") in _NOT_TEXT or "enum" in part for part in value.get("anyOf", ())):
            value["anyOf"].append(_REFERENCE)
        elif value.get("type") in _NOT_TEXT or "enum" in _resolved(value, definitions):
            kept = {name: value.pop(name) for name in ("default", "description", "title") if name in value}
            section["properties"][key] = {"anyOf": [value, _REFERENCE], **kept}


def _resolved(value: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions.get(value.get("$ref", "").rpartition("/")[2], value)
    return found


def _allow_ignored(sections: dict[str, dict[str, Any]]) -> None:
    for group in IGNORED_KEYS:
        for key, advice in group.keys.items():
            text = f"Known and not acted upon{f': {advice}' if advice else ''}.".replace("'", "`")
            sections[group.model]["properties"][key] = {"description": text, "deprecated": True}


def _tool_items(items: dict[str, Any]) -> dict[str, Any]:
    left_out = {
        "type": "object",
        "description": "Known and not acted upon.",
        "properties": {"type": {"enum": list(IGNORED_TOOL_TYPES)}},
        "required": ["type"],
    }
    return {"oneOf": [*items["oneOf"], left_out]}
