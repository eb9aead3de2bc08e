from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holodeck.config import agent_schema, load_agent_config
from holodeck.config.ignored import ELSEWHERE, IGNORED_KEYS
from holodeck.errors import ConfigError
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
    """Keys that nothing is done with are accepted, and shown as deprecated; those that another command reads are not."""
    found = sections(agent_schema())
    for group in IGNORED_KEYS:
        for key in group.keys:
            assert found[group.model]["properties"][key].get("deprecated", False) is (key not in ELSEWHERE)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document, but the document itself."""
    for part, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, part)
        yield from places(item, (*path, part))


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """A copy of ``document`` with ``value`` at ``path``."""
    copy = json.loads(json.dumps(document))
    section = copy
    for part in path[:-1]:
        section = section[part]
    section[path[-1]] = value
    return copy


VALUES = (None, True, "", "x", 0, 5, -1, 0.5, 2**63, [], [None], {}, {"a": None}, {"a": "b"}, "${N}", "${ON}", "true", "5", "0.5", "info")


def test_what_loads_is_never_marked(tmp_path: Path) -> None:
    """Whatever stands at any key: if the loader takes it, the editor does not complain."""
    (tmp_path / "t.py").write_text("def f(): ...", encoding="utf-8")
    environ = {"N": "5", "K": "k", "T": "5", "P": "ollama", "ON": "true", "PATH": os.environ["PATH"]}
    base = parse_yaml(FULL.replace("npx", "ls"), "a.yaml").data
    schema = jsonschema.Draft202012Validator(agent_schema())
    path, loaded, marked = tmp_path / "a.yaml", 0, []
    for place in list(places(base)):
        for value in VALUES:
            path.write_text(json.dumps(document := changed(base, place, value)), encoding="utf-8")
            try:
                load_agent_config(path, environ)
            except ConfigError:
                continue
            loaded += 1
            marked += [] if schema.is_valid(document) else [(place, value)]
    assert loaded > 200
    assert marked == []


@pytest.mark.parametrize(
    "change",
    [("name: a,", "name: a b,"), ("{inline: hi}", "{}"), ("{inline: hi}", "{inline: hi, file: f}"), ("template: t,", ""),
     ("name: support", "name: ' '"), ("max_tokens: \"${N}\"", "max_tokens: 9223372036854775808"), ("enabled: true", "enabled: maybe")],
)  # fmt: skip
def test_rules_of_the_models_are_in_the_schema(change: tuple[str, str]) -> None:
    """Names that cannot be called, sections that need exactly one of two keys, and numbers over 64 bits are marked."""
    assert errors(FULL.replace(*change)) != []
