"""The agent files that tests write."""

from __future__ import annotations

import asyncio
import runpy

import pytest
import yaml

from holodeck.models.agent import AgentConfig
from support.agents import TOOLS, write_agent
from support.model_server import ModelServer


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "anthropic", "ollama"])
def test_the_file_is_a_valid_agent_of_each_provider(tmp_path, provider):
    """What is written fits the data model and points at the server."""
    with ModelServer() as server:
        path = write_agent(tmp_path, server, provider=provider)
        agent = AgentConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        assert agent.model.endpoint.startswith(server.base_url)
    assert [tool.name for tool in agent.tools] == list(TOOLS)


def test_overrides_merge_replace_and_remove(tmp_path):
    """Mappings are merged, None removes, tools can be named."""
    path = write_agent(tmp_path / "new", model={"timeout": 1, "api_key": None}, tools=["slow"], description=None, max_rounds=2)
    agent = AgentConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert (agent.model.timeout, agent.model.api_key, agent.model.name) == (1, None, "test-model")
    assert [tool.name for tool in agent.tools] == ["slow"]
    assert (agent.description, agent.max_rounds) == (None, 2)


def test_each_tool_is_in_the_tools_file(tmp_path):
    """The functions do what their names say."""
    write_agent(tmp_path)
    functions = runpy.run_path(str(tmp_path / "tools.py"))
    assert set(TOOLS) <= set(functions)
    assert functions["lookup_order"]("1042") == {"order_id": "1042", "status": "shipped"}
    assert asyncio.run(functions["weather"]("Paris")) == "Paris: sunny for 1 day(s)"
    assert functions["slow"](0) == asyncio.run(functions["slow_async"](0)) == "slept 0 s"
    with pytest.raises(ValueError, match="broken"):
        functions["fails"]("broken")
