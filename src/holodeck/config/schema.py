"""A JSON Schema of agent files, for editors."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from holodeck.config.ignored import ELSEWHERE, IGNORED_KEYS, IGNORED_TOOL_TYPES
from holodeck.models import agent, llm, observability
from holodeck.models.tool_name import TOOL_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DIALECT", "agent_schema", "describe"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ATTRIBUTE: Final = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)
_REFERENCE: Final = r"\$\{.+\}"
_WRITTEN: Final = {
    "integer": r"^\s*[-+]?[0-9]+(\.0*)?\s*$",
    "number": r"^\s*[-+]?(\.[0-9]|[0-9])",
    "boolean": r"^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\s*$",
}
"""What numbers and switches look like in text: what stands in a variable is text, and so may be what stands in its place."""
_NOTHING: Final = {"type": "null"}
_LARGEST: Final = 2**63 - 1
# pydantic leaves its own words where a limit stands on a validated optional number.
_LIMITS: Final = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_ONE_OF: Final = {"Instructions": ("inline", "file"), "PromptTool": ("template", "file")}
_NOT_TEXT: Final = frozenset({"integer", "number", "boolean"})


def agent_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) of what an agent file may hold, for editors.

    It is made from the models, with the descriptions in their docstrings. Numbers, switches and choices may be ``${VAR}`` or text; a key
    that may be left out may also stand there without a value; the keys that are known and not acted upon are accepted and marked as
    deprecated. What depends on other keys, on files or on the environment is the loader's matter.
    """
    schema = agent.AgentConfig.model_json_schema()
    definitions = schema.pop("$defs")
    sections = {"AgentConfig": schema, **definitions}
    schema["properties"]["tools"]["items"] = _tool_items(schema["properties"]["tools"]["items"])
    for name, section in sections.items():
        describe(section, _models().get(name))
        _allow_references(section, definitions)
        _allow_nothing(section)
        _add_rules(name, section)
    _allow_ignored(sections)
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
    """Let numbers, switches and choices be ``${VAR}`` and text too; a plain text can hold one anyway, and a tool's type cannot."""
    for value in section.get("properties", {}).values():
        parts = value.get("anyOf", [value])
        for part in parts:
            part.update({_LIMITS[word]: part.pop(word) for word in _LIMITS if word in part})
            if part.get("type") == "integer":
                part.setdefault("maximum", _LARGEST)
        kinds = [part["type"] for part in parts if part.get("type") in _NOT_TEXT]
        if kinds or any("enum" in _resolved(part, definitions) for part in parts):
            pattern = "|".join([_REFERENCE, *(_WRITTEN[kind] for kind in kinds)])
            _alternatives(value).append({"type": "string", "pattern": pattern, "description": "From the environment: ${VAR}."})


def _allow_nothing(section: dict[str, Any]) -> None:
    """Let every key that may be left out stand there without a value."""
    for key, value in section.get("properties", {}).items():
        if key not in section.get("required", ()) and _NOTHING not in _alternatives(value):
            value["anyOf"].append(dict(_NOTHING))


def _alternatives(value: dict[str, Any]) -> list[Any]:
    """The alternatives of a property, which has them afterwards; what is said about the property itself stays beside them."""
    if "anyOf" not in value:
        value["anyOf"] = [{word: value.pop(word) for word in list(value) if word not in ("default", "description", "title")}]
    found: list[Any] = value["anyOf"]
    return found


def _add_rules(name: str, section: dict[str, Any]) -> None:
    """What the models check themselves, as far as a schema can say it."""
    if name in _ONE_OF:
        texts = ({"required": [key], "properties": {key: {"type": "string"}}} for key in _ONE_OF[name])
        section["oneOf"] = list(texts)
    if name.endswith("Tool"):
        section["properties"]["name"]["pattern"] = rf"^({TOOL_NAME}|.*\$\{{.+\}}.*)$"
    if name == "AgentConfig":
        section["properties"]["name"]["pattern"] = r"\S"
    if name == "LogsConfig":
        level = section["properties"]["level"]["anyOf"]
        level.append({"type": "string", "pattern": f"^({'|'.join(map(_in_any_case, level[0]['enum']))})$"})


def _in_any_case(word: str) -> str:
    return "".join(f"[{letter}{letter.lower()}]" for letter in word)


def _resolved(value: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions.get(value.get("$ref", "").rpartition("/")[2], value)
    return found


def _allow_ignored(sections: dict[str, dict[str, Any]]) -> None:
    for group in IGNORED_KEYS:
        for key, advice in group.keys.items():
            text = ELSEWHERE.get(key, f"Known and not acted upon{f': {advice}' if advice else ''}.").replace("'", "`")
            sections[group.model]["properties"][key] = {"description": text, **({} if key in ELSEWHERE else {"deprecated": True})}


def _tool_items(items: dict[str, Any]) -> dict[str, Any]:
    left_out = {
        "type": "object",
        "description": "Known and not acted upon.",
        "properties": {"type": {"enum": list(IGNORED_TOOL_TYPES)}},
        "required": ["type"],
    }
    return {"oneOf": [*items["oneOf"], left_out]}
