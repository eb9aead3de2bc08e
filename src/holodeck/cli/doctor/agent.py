"""Checks of the agent: its file, its keys, its models, its tools."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holodeck.backends import create_backend
from holodeck.backends.reach import Reached, reach
from holodeck.cli.doctor.findings import Finding, bad, good, note
from holodeck.config import LoadedAgent, load_agent_config
from holodeck.config.credentials import key_variables
from holodeck.errors import ConfigError
from holodeck.models.agent import McpTool, PromptTool, ToolConfig
from holodeck.models.llm import LLMConfig, Provider
from holodeck.tools import Toolbox

__all__ = ["Examined", "check_agent", "check_tools", "load"]


@dataclass(frozen=True)
class Examined:
    """An agent file, as far as it could be loaded.

    Attributes:
        loaded: The agent; None if the file cannot be used.
        key_error: Why a key that is needed is not there; "" if none is missing.
        findings: What is to be said of the file itself.
    """

    loaded: LoadedAgent | None
    key_error: str
    findings: tuple[Finding, ...]


def load(path: Path, environ: Mapping[str, str]) -> Examined:
    """Load an agent file; one that lacks nothing but a key is examined all the same."""
    try:
        loaded, missing = load_agent_config(path, environ), ""
    except ConfigError as error:
        stand_in = f"none-{secrets.token_hex(8)}"
        present = {name: value for name, value in environ.items() if value.strip()}
        try:
            loaded, missing = load_agent_config(path, {**dict.fromkeys(key_variables().values(), stand_in), **present}), error.message
        except ConfigError:
            return Examined(None, "", (bad("agent file", error.message),))
    warnings = tuple(note("agent file", warning) for warning in loaded.warnings)
    return Examined(loaded, missing, (good("agent file", f"{path} ({loaded.config.name})"), *warnings))


def check_agent(examined: Examined, environ: Mapping[str, str], seconds: float) -> Iterator[Finding]:
    """The models of the agent and of its prompt tools: what they need, and whether their servers answer. Spends no token."""
    assert examined.loaded is not None
    config = examined.loaded.config
    if examined.key_error:
        yield bad("key", examined.key_error)
    models = {"model": config.model} | {f"model of {t.name}": t.model for t in config.tools if isinstance(t, PromptTool) and t.model}
    for title, model in models.items():
        yield from _model(title, model, config.name if title == "model" else "", environ)
        variable = key_variables().get(model.provider)
        if model.api_key is not None and not examined.key_error:
            yield good("key", _where_the_key_is(model, variable, environ))
        if not examined.key_error:
            yield from _server(reach(model, seconds), model)


def _model(title: str, model: LLMConfig, agent: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        create_backend(model, environ).check(agent)
    except ConfigError as error:
        yield bad(title, error.message)
        return
    yield good(title, model.label)


def _where_the_key_is(model: LLMConfig, variable: str | None, environ: Mapping[str, str]) -> str:
    assert model.api_key is not None
    from_variable = variable is not None and environ.get(variable, "").strip() == model.api_key.get_secret_value()
    return f"{variable} is set" if from_variable else "there is one in the agent file"


def _server(reached: Reached | None, model: LLMConfig) -> Iterator[Finding]:
    if reached is None:
        return
    if reached.reason:
        yield bad("endpoint", f"{reached.server}: {reached.reason}", _fix_for_server(model))
        return
    answered = f"{reached.server} answers (HTTP {reached.status}{f', {reached.by}' if reached.by else ''})"
    if reached.refuses_key:
        yield bad("endpoint", f"{answered}, and does not accept the key", "check that the key belongs to this endpoint")
    elif reached.status >= 500:
        yield bad("endpoint", answered, "the server is not well: try again later, or look at its log")
    elif reached.lists_model is False:
        fix = f"'ollama pull {model.name}' fetches it" if model.provider is Provider.OLLAMA else "check the model's name"
        yield note("endpoint", f"{answered}, and does not list {model.name}", fix=fix)
    else:
        yield good("endpoint", answered + (f", and has {model.name}" if reached.lists_model else ""))


def _fix_for_server(model: LLMConfig) -> str:
    if model.provider is Provider.OLLAMA:
        return "start Ollama ('ollama serve'), or set OLLAMA_HOST"
    return "check model.endpoint" if model.endpoint else "check the network and its proxy (HTTPS_PROXY)"


async def check_tools(loaded: LoadedAgent, seconds: float) -> list[Finding]:
    """Load every tool and start every MCP server, side by side, each within ``seconds``; all are stopped again."""
    tools = loaded.config.tools
    found = await asyncio.gather(*(_tool(loaded, index, seconds) for index in range(len(tools))))
    if all(finding.status == "ok" for finding in found):
        found += await _together(loaded)
    return found


async def _tool(loaded: LoadedAgent, index: int, seconds: float) -> Finding:
    config = loaded.config.tools[index]
    name = f"tool {config.name}"
    try:
        toolbox = _toolbox(loaded, [config], index)
        try:
            async with asyncio.timeout(seconds):
                await toolbox.open()
            return good(name, _offer(config, [spec.name for spec in toolbox.specs]))
        finally:
            await toolbox.close()
    except ConfigError as error:
        return bad(name, error.message.replace("tools[0]", f"tools[{index}]", 1))
    except TimeoutError:
        return bad(name, f"did not start within {seconds:g} s", "run its command by hand and look at what it says")


async def _together(loaded: LoadedAgent) -> list[Finding]:
    """That the tools can be offered beside each other: two names may collide."""
    try:
        await _toolbox(loaded, loaded.config.tools, 0).close()
    except ConfigError as error:
        return [bad("tools", error.message)]
    return []


def _toolbox(loaded: LoadedAgent, tools: Sequence[ToolConfig], first: int) -> Toolbox:
    def line_of(key: str) -> int:
        return loaded.document.line_of(key.replace("tools[0]", f"tools[{first}]", 1) if first else key)

    return Toolbox(tools, loaded.directory, agent_file=str(loaded.path), line_of=line_of)


def _offer(config: ToolConfig, names: Sequence[str]) -> str:
    if not isinstance(config, McpTool):
        return config.type
    return f"mcp over {config.transport}, offers {len(names)} tool{'s' * (len(names) != 1)}" + (f": {', '.join(names)}" if names else "")
