"""The programs that are compared at the terminal: how each asks the same question of the same model, with the same tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kit.environments import Environment, build

__all__ = ["HOLODECK", "PEERS", "Program", "holodeck", "peer"]

HOLODECK = "holodeck"
PEERS = ("holodeck-ai", "llm", "clai")
QUESTION = "Where is order 1042?"

_TOOLS = '''
def lookup_order(order_id: str) -> dict:
    """Where an order is.

    Args:
        order_id: Number of the order.
    """
    return {"order_id": order_id, "status": "shipped"}
'''
_AGENT = """
name: support
description: Answers questions about orders
model: {{provider: openai, name: gpt-4o-mini, endpoint: "{url}/v1", api_key: "key"}}
instructions: {{inline: "You answer questions about orders."}}
tools:
  - {{name: lookup_order, description: Where an order is., type: function, file: tools.py, function: lookup_order}}
"""
_CLAI = """
from pydantic_ai import Agent
from tools import lookup_order

agent = Agent("openai-chat:gpt-4o-mini", instructions="You answer questions about orders.", tools=[lookup_order])
"""
_LLM = """
- model_id: fake
  model_name: gpt-4o-mini
  api_base: "{url}/v1"
  supports_tools: true
"""


@dataclass(frozen=True)
class Program:
    """How a program is run.

    Attributes:
        name: As the tables call it.
        help: Its help.
        prompt: A conversation in a terminal.
        marker: What its prompt looks like.
        ask: One question, answered, and out.
        stdin: What it reads meanwhile.
        env: Its settings.
        problem: Why it cannot be run; "" if it can.
    """

    name: str
    help: Sequence[str] = ()
    prompt: Sequence[str] = ()
    marker: str = ""
    ask: Sequence[str] = ()
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def write_files(place: Path, url: str) -> None:
    """Write the files that the programs read into ``place``."""
    (place / "llm").mkdir(exist_ok=True)
    for name, text in {
        "tools.py": _TOOLS,
        "agent.yaml": _AGENT.format(url=url),
        "clai_agent.py": _CLAI,
        "llm/extra-openai-models.yaml": _LLM.format(url=url),
    }.items():
        (place / name).write_text(text, encoding="utf-8")


def holodeck(place: Path) -> Program:
    """HoloDeck, as installed beside this interpreter."""
    command, agent = str(Path(sys.executable).with_name("holodeck")), str(place / "agent.yaml")
    chat = [command, "chat", agent]
    return Program(HOLODECK, [command, "--help"], chat, r"leaves\..*>", [*chat, "-m", QUESTION])


def peer(name: str, place: Path, url: str, *, late: bool = False) -> Program:
    """A peer, in its own environment; ``late``: it is not installed any more if it is missing."""
    environment = build(name, late=late)
    if environment.problem:
        return Program(name, problem=environment.problem)
    return {"holodeck-ai": _holodeck_ai, "llm": _llm, "clai": _clai}[name](environment, place, url)


def _keys(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{url}/v1"}


def _holodeck_ai(environment: Environment, place: Path, url: str) -> Program:
    command = environment.program("holodeck")
    chat = [command, "chat", str(place / "agent.yaml")]
    return Program("holodeck-ai", [command, "--help"], chat, r"You \[\]:", chat, f"{QUESTION}\nexit\n", _keys(url))


def _llm(environment: Environment, place: Path, url: str) -> Program:
    command, tools = environment.program("llm"), ["-m", "fake", "--functions", str(place / "tools.py")]
    env = {**_keys(url), "LLM_USER_PATH": str(place / "llm")}
    return Program("llm", [command, "--help"], [command, "chat", *tools], r"\n> ", [command, QUESTION, *tools], env=env)


def _clai(environment: Environment, place: Path, url: str) -> Program:
    command, agent = environment.program("clai"), ["-a", "clai_agent:agent"]
    env = {**_keys(url), "PYTHONPATH": str(place)}
    return Program("clai", [command, "--help"], [command, *agent], "clai ➤", [command, *agent, QUESTION], env=env)
