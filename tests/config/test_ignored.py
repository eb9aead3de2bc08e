from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holodeck.config import load_agent_config
from holodeck.config.ignored import ELSEWHERE, IGNORED_KEYS
from holodeck.errors import AgentFileError

Write = Callable[..., Path]

TOP_LEVEL = sorted(IGNORED_KEYS[0].keys.keys() - ELSEWHERE.keys())


@pytest.mark.parametrize("key", TOP_LEVEL)
def test_top_level_keys_of_other_programs_are_one_warning_each(key: str, write: Write) -> None:
    """A known key that nothing is done with is said once, with its line, and changes nothing."""
    path = write(f"{key}:\n  api_key: ${{UNSET}}\n  threshold: .nan\n  list: [1, 2]\n")
    loaded = load_agent_config(path, {})
    assert loaded.warnings == (f"{path}:3: '{key}' is not acted upon",)
    assert loaded.config == load_agent_config(write(""), {}).config


def test_what_is_for_holodeck_test_is_no_warning(write: Write) -> None:
    """An agent file may hold its test cases: they are acted upon elsewhere."""
    path = write("test_cases:\n  - {input: hi, ground_truth: hello}\n")
    loaded = load_agent_config(path, {})
    assert loaded.warnings == ()
    assert loaded.config == load_agent_config(write(""), {}).config


def test_the_keys_of_the_format_are_all_known() -> None:
    """The keys that agent files are known to carry for other programs stand in the table."""
    wanted = {"author", "response_format", "evaluations", "test_cases", "execution", "deployment", "embedding_provider", "claude", "openai"}
    assert wanted <= IGNORED_KEYS[0].keys.keys()


def test_inner_keys_are_warned_about_once_a_group(write: Write) -> None:
    """The same key in two tools is one line; what to write instead is said."""
    path = write(
        "tools:\n"
        "  - {name: a, type: mcp, command: x, env_file: .env}\n"
        "  - {name: b, type: mcp, command: x, env_file: .env, request_timeout: 3}\n"
        "observability:\n"
        "  exporters: {prometheus: {enabled: true}, azure_monitor: {connection_string: '${UNSET}'}}\n"
        "  logs: {filter_namespaces: [a]}\n"
    )
    assert load_agent_config(path, {}).warnings == (
        f"{path}:4: 'tools.env_file' is not acted upon: use 'env'",
        f"{path}:5: 'tools.request_timeout' is not acted upon: use 'timeout'",
        f"{path}:7: 'observability.exporters.azure_monitor' is not acted upon: use 'otlp'",
        f"{path}:7: 'observability.exporters.prometheus' is not acted upon: use 'otlp'",
        f"{path}:8: 'observability.logs.filter_namespaces' is not acted upon",
    )


def test_tools_of_other_types_are_left_out_whole(write: Write) -> None:
    """Search tools are skipped with one line a type, whatever they hold."""
    path = write(
        "tools:\n"
        "  - {name: kb, type: vectorstore, source: x, database: {connection_string: '${UNSET}'}}\n"
        "  - {name: files, type: mcp, command: x}\n"
        "  - {name: faq, type: vectorstore}\n"
        "  - {name: law, type: hierarchical_document}\n"
    )
    loaded = load_agent_config(path, {})
    assert [tool.name for tool in loaded.config.tools] == ["files"]
    assert loaded.warnings == (
        f"{path}:4: tools of type 'vectorstore' are not acted upon",
        f"{path}:7: tools of type 'hierarchical_document' are not acted upon",
    )


def test_mcp_keys_are_not_known_elsewhere(write: Write) -> None:
    """A key that is known for one kind of tool is unknown for another."""
    path = write("tools:\n  - {name: a, type: function, file: tools.py, function: lookup, env_file: x}\n")
    with pytest.raises(Exception, match=r"tools\[0\]\.env_file: unknown key"):
        load_agent_config(path, {})


@pytest.mark.parametrize("key", ["instuctions", "author_"])
def test_an_unknown_key_without_a_value_is_unknown(key: str, write: Write) -> None:
    """A key with nothing behind it is left out only where it is one."""
    with pytest.raises(AgentFileError, match="unknown key"):
        load_agent_config(write(f"{key}:\n"), {})
    assert load_agent_config(write("instructions:\nauthor:\n"), {}).warnings == ()
