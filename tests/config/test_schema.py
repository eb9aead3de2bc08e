from __future__ import annotations

from typing import Any

import pytest

from holodeck.config import agent_schema
from holodeck.config.ignored import IGNORED_KEYS
from holodeck.lib.strict_yaml import parse_yaml

jsonschema = pytest.importorskip("jsonschema")

FULL = """
name: support
description: x
author: me
model: {provider: openai, name: m, temperature: 0.3, max_tokens: "${N}", api_key: "${K}", auth_provider: api_key}
instructions: {inline: hi}
tools:
  - {name: a, type: function, file: t.py, function: f, parameters: {x: {type: string}}}
  - {name: b, type: mcp, command: npx, args: [-y], env: {A: b}, env_file: .env, timeout: "${T:-5}"}
  - {name: c, type: prompt, template: t, model: {provider: "${P}", name: m}}
  - {name: d, type: vectorstore, source: x, top_k: 5}
evaluations: {metrics: []}
observability:
  enabled: "${ON}"
  traces: {sample_rate: 0.5, redaction_patterns: [x]}
  logs: {level: INFO, filter_namespaces: [a]}
  exporters:
    otlp: {endpoint: "http://h:4318", protocol: http, headers: {a: b}, insecure: true}
    prometheus: {port: 1}
    console: {enabled: true}
"""


def errors(text: str) -> list[str]:
    """What the schema says against a file."""
    validator = jsonschema.Draft202012Validator(agent_schema())
    return [error.message for error in validator.iter_errors(parse_yaml(text, "a.yaml").data)]


def test_the_schema_is_a_schema() -> None:
    """It is valid in the dialect that it names."""
    schema = agent_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_full_file_fits() -> None:
    """Every kind of key, references for numbers, and the keys of other programs are accepted."""
    assert errors(FULL) == []


@pytest.mark.parametrize(
    "change",
    [("author: me", "autor: me"), ("temperature: 0.3", "temperature: 3"),
     ("temperature: 0.3", "temperature: warm"), ("protocol: http", "protocol: http/json"),
     ("type: mcp", "type: mpc"), ("name: support", "nom: support"), ("template: t", "tmplate: t")],
)  # fmt: skip
def test_what_the_loader_refuses_does_not_fit(change: tuple[str, str]) -> None:
    """Unknown keys, values out of range and unknown types are marked in an editor."""
    assert errors(FULL.replace(*change)) != []


def sections(schema: dict[str, Any]) -> dict[str, Any]:
    """Every section of the schema by the name of its model."""
    return {"AgentConfig": schema, **schema["$defs"]}


def test_every_key_has_a_description() -> None:
    """An editor can say something about each key."""
    for name, section in sections(agent_schema()).items():
        assert section.get("description"), name
        for key, value in section.get("properties", {}).items():
            assert value.get("description"), f"{name}.{key}"
            assert "``" not in value["description"]


def test_descriptions_come_from_the_docstrings() -> None:
    """Wrapped lines are joined, inherited attributes are found, the rest of a docstring stays out."""
    found = sections(agent_schema())
    assert (
        found["LLMConfig"]["properties"]["timeout"]["description"]
        == "Longest silence between two chunks in seconds; not a limit on the whole answer."
    )
    assert found["McpTool"]["properties"]["name"]["description"].startswith("Name the model calls")
    assert found["FunctionTool"]["properties"]["parameters"]["description"].endswith("without it signature and docstring say so.")
    assert "Attributes" not in found["LLMConfig"]["description"]


def test_ignored_keys_are_marked() -> None:
    """Keys that nothing is done with are accepted, and shown as deprecated."""
    found = sections(agent_schema())
    for group in IGNORED_KEYS:
        for key in group.keys:
            assert found[group.model]["properties"][key]["deprecated"] is True
