"""Agent files for tests, with tools of each kind that a turn can meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from support.model_server import ModelServer

__all__ = ["TOOLS", "write_agent"]

_TOOLS_FILE = '''\
"""Tools of a test agent."""

import asyncio
import time


def lookup_order(order_id: str) -> dict:
    """Look up an order."""
    return {"order_id": order_id, "status": "shipped"}


async def weather(city: str, days: int = 1) -> str:
    """The weather in a city."""
    await asyncio.sleep(0)
    return f"{city}: sunny for {days} day(s)"


def fails(reason: str = "no reason given") -> str:
    """Always fails."""
    raise ValueError(reason)


def slow(seconds: float = 30.0) -> str:
    """Takes its time, in a thread."""
    time.sleep(seconds)
    return f"slept {seconds} s"


async def slow_async(seconds: float = 30.0) -> str:
    """Takes its time, and can be cancelled."""
    await asyncio.sleep(seconds)
    return f"slept {seconds} s"
'''

TOOLS = {
    "lookup_order": "Look up an order by its id.",
    "weather": "The weather in a city.",
    "fails": "Always fails.",
    "slow": "Sleeps in a thread.",
    "slow_async": "Sleeps in the event loop.",
}
"""The functions in the tools file, and what the model is told about them."""


def write_agent(directory: Path, server: ModelServer | None = None, *, provider: str = "openai", **overrides: Any) -> Path:
    """Write ``agent.yaml`` and ``tools.py`` into ``directory``.

    Args:
        directory: Where to; made if it is missing.
        server: The model endpoint; without it the agent's endpoint is a port that nobody listens on.
        provider: ``openai``, ``azure_openai``, ``anthropic`` or ``ollama``.
        overrides: Keys of the file. A mapping is merged into what stands there, ``None`` removes the key,
            ``tools`` may name functions of the tools file: ``tools=["slow"]``.

    Returns:
        The path of ``agent.yaml``.
    """
    base_url = "http://127.0.0.1:9" if server is None else server.base_url
    agent: dict[str, Any] = {
        "name": "support",
        "description": "Answers questions about orders.",
        "model": _model(provider, base_url),
        "instructions": {"inline": "You answer questions about orders."},
        "tools": list(TOOLS),
    }
    for key, value in overrides.items():
        agent[key] = {**agent[key], **value} if isinstance(value, dict) and key in agent else value
    agent["tools"] = [_tool(entry) if isinstance(entry, str) else entry for entry in agent["tools"] or []]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tools.py").write_text(_TOOLS_FILE, encoding="utf-8")
    path = directory / "agent.yaml"
    path.write_text(yaml.safe_dump(_without_none(agent), sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def _model(provider: str, base_url: str) -> dict[str, Any]:
    model = {"provider": provider, "name": "test-model", "endpoint": base_url, "api_key": "test-key", "timeout": 10}
    match provider:
        case "openai":
            model["endpoint"] = f"{base_url}/v1"
        case "azure_openai":
            model["api_version"] = "2024-10-21"
        case "ollama":
            del model["api_key"]
    return model


def _tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": TOOLS[name], "type": "function", "file": "tools.py", "function": name}


def _without_none(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_none(value) for key, value in node.items() if value is not None}
    return node
