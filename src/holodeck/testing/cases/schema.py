"""JSON Schemas of case files and scripts, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from holodeck.backends.script import Script
from holodeck.config.schema import DIALECT, describe
from holodeck.testing.cases.case_file import CaseFile
from holodeck.testing.matching import Given

__all__ = ["case_schema", "script_schema"]


def case_schema() -> dict[str, Any]:
    """A JSON Schema of what a case file may hold."""
    return _schema(CaseFile, "HoloDeck case file")


def script_schema() -> dict[str, Any]:
    """A JSON Schema of what a script or a recording may hold."""
    return _schema(Script, "HoloDeck script")


def _schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    models = _models(model)
    for name, section in {model.__name__: schema, **definitions}.items():
        describe(section, models.get(name))
        if name in models and issubclass(models[name], Given):
            _refuse_null(section)
    _allow_short_forms(definitions)
    return {"$schema": DIALECT, "title": title, **{k: v for k, v in schema.items() if k != "title"}, "$defs": definitions}


def _refuse_null(section: dict[str, Any]) -> None:
    """A key that is there has a value; that it may be left out is no value of it."""
    for value in section.get("properties", {}).values():
        if "anyOf" in value:
            value["anyOf"] = [form for form in value["anyOf"] if form != {"type": "null"}]
        if value.get("default", "") is None:
            del value["default"]


def _models(root: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """All models that ``root`` is made of, by name."""
    found: dict[str, type[BaseModel]] = {}
    pending: list[Any] = [root]
    while pending:
        each = pending.pop()
        if isinstance(each, type) and issubclass(each, BaseModel):
            if each.__name__ not in found:
                found[each.__name__] = each
                pending += [field.annotation for field in each.model_fields.values()]
        else:
            pending += [argument for argument in getattr(each, "__args__", ()) if argument is not each]
    return found


_SHORT: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("Case", "input"): [{"type": "string"}],
    ("Expect", "answer"): [{"type": "string"}],
    ("ExpectedAnswer", "contains"): [{"type": "string"}],
    ("ExpectedAnswer", "excludes"): [{"type": "string"}],
    ("ExpectedTool", "times"): [{"type": "integer"}],
    ("Reply", "usage"): [{"const": "none"}],
    **{("Expect", name): [{"type": "number"}] for name in ("tokens", "input_tokens", "output_tokens", "cost", "duration", "requests")},
}
"""Forms that are converted before a value is checked, so that pydantic does not know of them."""


def _allow_short_forms(definitions: dict[str, Any]) -> None:
    for (model, key), forms in _SHORT.items():
        if model in definitions:
            value = definitions[model]["properties"][key]
            kept = {name: value.pop(name) for name in ("default", "description", "title") if name in value}
            definitions[model]["properties"][key] = {"anyOf": [*value.pop("anyOf", [value] if value else []), *forms], **kept}
    lists = (("Expect", "tools"), ("Case", "input"))
    for model, key in lists:
        if model in definitions:
            for form in _lists(definitions[model]["properties"][key]):
                form["items"] = {"anyOf": [form["items"], {"type": "string"}]}


def _lists(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [form for form in (value, *value.get("anyOf", ())) if "items" in form]
