from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from holodeck.models.agent import AgentConfig, FunctionTool, Instructions, McpTool, PromptTool, ToolConfig

MODEL = {"provider": "local", "name": "smollm2"}
TOOL: TypeAdapter[Any] = TypeAdapter(ToolConfig)


def agent(**fields: Any) -> AgentConfig:
    """An agent with these fields."""
    return AgentConfig.model_validate({"name": "a", "model": MODEL} | fields)


def test_an_agent_is_a_name_and_a_model() -> None:
    """Everything else has a default."""
    found = agent()
    assert (found.description, found.instructions, found.tools, found.max_rounds) == (None, None, [], 10)
    assert found.observability.enabled is None


@pytest.mark.parametrize("field", ["name", "model"])
def test_name_and_model_are_required(field: str) -> None:
    """An agent without either is refused."""
    fields: dict[str, Any] = {"name": "a", "model": MODEL}
    del fields[field]
    with pytest.raises(ValidationError, match=f"{field}\n  Field required"):
        AgentConfig.model_validate(fields)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "  "),
        ("name", "x" * 201),
        ("name", 1.1),
        ("name", "\ud83e"),
        ("max_rounds", 0),
        ("max_rounds", True),
        ("surprise", 1),
        ("tools", {}),
    ],
)
def test_what_makes_no_sense_is_refused(field: str, value: Any) -> None:
    """Blank and endless names, text that UTF-8 cannot carry, no rounds, unknown fields."""
    with pytest.raises(ValidationError, match=field):
        agent(**{field: value})


def test_a_name_is_stripped_and_may_be_any_text() -> None:
    """Spaces, slashes and accents are fine in a name."""
    assert agent(name=" weather bot/é ").name == "weather bot/é"


def test_rules_hold_for_assignments() -> None:
    """A program that changes a field gets the same checks."""
    found = agent()
    with pytest.raises(ValidationError, match="cannot be blank"):
        found.name = " "


@pytest.mark.parametrize("fields", [{}, {"inline": "a", "file": "b"}])
def test_instructions_are_one_of_two(fields: dict[str, str]) -> None:
    """Exactly one of inline and file."""
    with pytest.raises(ValidationError, match="exactly one of 'inline' and 'file'"):
        Instructions.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"type": "function", "file": "t.py", "function": "f"}, FunctionTool),
        ({"type": "function", "function": "package.module:f"}, FunctionTool),
        ({"type": "mcp", "command": "npx", "args": ["-y"], "env": {"A": "b"}}, McpTool),
        ({"type": "mcp", "transport": "http", "url": "https://x/mcp", "headers": {"A": "b"}}, McpTool),
        ({"type": "prompt", "template": "{{x}}"}, PromptTool),
        ({"type": "prompt", "file": "t.md", "model": MODEL}, PromptTool),
    ],
)
def test_a_tool_is_what_its_type_says(fields: dict[str, Any], kind: type) -> None:
    """The type picks the model; a description is optional, a call may take a minute."""
    tool = TOOL.validate_python({"name": "t"} | fields)
    assert type(tool) is kind
    assert (tool.description, tool.timeout) == ("", 60.0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"type": "vectorstore"}, "does not match any of the expected tags"),
        ({}, "Unable to extract tag"),
        ({"type": "function", "function": "f"}, "needs 'file: tools.py', or 'function: module:name'"),
        ({"type": "function", "file": "t.py"}, "function"),
        ({"type": "function", "function": "a:b", "parameters": "x"}, "parameters"),
        ({"type": "mcp"}, "transport 'stdio' needs 'command'"),
        ({"type": "mcp", "transport": "http"}, "transport 'http' needs 'url'"),
        ({"type": "mcp", "transport": "http", "url": "http://x", "command": "npx"}, "'command' does nothing for transport 'http'"),
        ({"type": "mcp", "transport": "http", "url": "http://x", "env": {"A": "b"}}, "'env' does nothing for transport 'http'"),
        ({"type": "mcp", "command": "x", "headers": {"A": "b"}}, "'headers' does nothing for transport 'stdio'"),
        ({"type": "mcp", "transport": "http", "url": "localhost:1"}, r"url\s.*needs a scheme"),
        ({"type": "mcp", "transport": "http", "url": "http://h:99999/mcp"}, r"url\s.*port is not a number"),
        ({"type": "mcp", "transport": "http", "url": "http://[::1/mcp"}, r"url\s.*is not a URL"),
        ({"type": "mcp", "transport": "http", "url": "http:///mcp"}, r"url\s.*has no host"),
        ({"type": "mcp", "transport": "http", "url": "http://h/a b"}, r"url\s.*white space"),
        ({"type": "mcp", "transport": "sse", "url": "http://x"}, "transport"),
        ({"type": "mcp", "command": "x", "env": {"PORT": 80}}, r"env\.PORT"),
        ({"type": "mcp", "command": "x", "args": [80]}, r"args\.0"),
        ({"type": "prompt"}, "exactly one of 'template' and 'file'"),
        ({"type": "prompt", "template": "a", "file": "b"}, "exactly one of 'template' and 'file'"),
        ({"type": "prompt", "template": "a", "model": {"provider": "openai"}}, "needs 'name'"),
        ({"type": "prompt", "template": "a", "command": "x"}, "Extra inputs"),
        ({"type": "mcp", "command": "x", "timeout": 0}, "timeout"),
        ({"type": "mcp", "command": "x", "timeout": float("nan")}, "timeout"),
    ],
)
def test_a_tool_that_could_not_run_is_refused(fields: dict[str, Any], words: str) -> None:
    """What is missing, contradictory or without effect is found when the file is read."""
    with pytest.raises(ValidationError, match=words):
        TOOL.validate_python({"name": "t"} | fields)


@pytest.mark.parametrize("name", ["a b", "", "é", "a.b", "x" * 65, "a\n"])
def test_a_tool_name_can_be_called(name: str) -> None:
    """Providers allow 1 to 64 letters, digits, underscores and dashes."""
    assert McpTool(name="A-b_9", type="mcp", command="x").name == "A-b_9"
    with pytest.raises(ValidationError, match="cannot be a tool name"):
        McpTool(name=name, type="mcp", command="x")


def test_tool_names_differ() -> None:
    """Two tools of one name are refused, whatever their types."""
    tools = [{"name": "t", "type": "mcp", "command": "x"}, {"name": "t", "type": "prompt", "template": "y"}]
    with pytest.raises(ValidationError, match="two tools are named 't'"):
        agent(tools=tools)


def test_paths_are_paths() -> None:
    """Files of tools and instructions arrive as paths."""
    found = agent(instructions={"file": "i.md"}, tools=[{"name": "t", "type": "function", "file": "t.py", "function": "f"}])
    assert found.instructions is not None
    assert found.instructions.file == Path("i.md")
    assert isinstance(found.tools[0], FunctionTool)
    assert found.tools[0].file == Path("t.py")


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"traces": {"sample_rate": 1.1}}, "sample_rate"),
        ({"traces": {"sample_rate": float("nan")}}, "sample_rate"),
        ({"traces": {"max_queue_size": 0}}, "max_queue_size"),
        ({"metrics": {"export_interval_ms": 0}}, "export_interval_ms"),
        ({"logs": {"level": "LOUD"}}, "level"),
        ({"exporters": {"otlp": {"protocol": "udp"}}}, "protocol"),
        ({"exporters": {"otlp": {"compression": "zip"}}}, "compression"),
        ({"exporters": {"otlp": {"headers": {"a": 1}}}}, "headers"),
        ({"exporters": {"file": {}}}, "Extra inputs"),
        ({"resource_attributes": {"a": [1]}}, "resource_attributes"),
        ({"resource_attributes": {"a": float("inf")}}, "resource_attributes"),
        ({"service_name": ""}, "service_name"),
    ],
)
def test_the_observability_section_is_strict(section: dict[str, Any], key: str) -> None:
    """Values out of range and unknown keys are refused at every level."""
    with pytest.raises(ValidationError, match=key):
        agent(observability=section)


def test_resource_attributes_keep_their_types() -> None:
    """Switches and numbers stay what they are."""
    attributes = {"a": True, "b": 1, "c": 1.5, "d": "x"}
    found = agent(observability={"resource_attributes": attributes}).observability.resource_attributes
    assert [(key, value, type(value)) for key, value in found.items()] == [(key, value, type(value)) for key, value in attributes.items()]


@pytest.mark.parametrize("value", ["no", "on", "yes", "off", 1, 0, "1"])
def test_a_switch_is_true_or_false(value):
    """What only looks like a switch is refused; text that says true or false, as a variable does, is taken."""
    from holodeck.models.observability import ObservabilityConfig

    with pytest.raises(ValueError, match="true or false"):
        ObservabilityConfig(enabled=value)
    assert ObservabilityConfig(enabled="TRUE").enabled is True
    assert ObservabilityConfig(enabled="false").enabled is False
