"""Size: what an installation takes, what an import costs, how memory grows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from kit.context import Context
from kit.environments import build
from kit.processes import run, serving
from kit.report import Table

__all__ = ["measure"]

PEERS = {
    "holodeck-ai": ("holodeck-ai[openai-agents]", "holodeck"),
    "llm": ("llm", "llm"),
    "clai": ("clai", "clai"),
    "genai-openai": ("opentelemetry-instrumentation-genai-openai", "opentelemetry.instrumentation.genai.openai"),
    "openllmetry": ("opentelemetry-instrumentation-openai", "opentelemetry.instrumentation.openai"),
    "openlit": ("openlit", "openlit"),
    "logfire": ("logfire", "logfire"),
}
_WORKLOADS = Path(__file__).parent.parent / "workloads"


def measure(context: Context) -> list[Table]:
    """Installations and imports; then memory over a hundred turns."""
    return [_installed(context)] if context.quick else [_installed(context), _memory(context)]


def _installed(context: Context) -> Table:
    table = Table("Installation and import", ["distribution", "MB", "distributions", "import", "CPU s", "MB resident"])
    table.rows.append(_row("holodeck", sys.executable, ("holodeck", "holodeck"), context))
    table.rows.append(["holodeck, all that an answer needs", None, None, *_import(sys.executable, "holodeck.backends.openai", context)])
    for name, what in {} if context.quick else PEERS.items():
        environment = build(name, late=context.late)
        if environment.problem or context.late:
            table.notes.append(f"{name}: {environment.problem or 'no time left'}")
            continue
        table.rows.append(_row(name, environment.program("python"), what, context))
    table.notes.append("MB: the distribution and what it requires, without bytecode; CPU: over that of an empty interpreter")
    table.notes.append("MB resident: the peak; nothing under 25 can be told apart")
    return table


_LOADED = {"holodeck.backends.openai": "from holodeck.backends.kernel import load; load('holodeck.backends.openai')"}


def _row(name: str, python: str, what: tuple[str, str], context: Context) -> list[Any]:
    done = run([python, str(_WORKLOADS / "size.py"), what[0]])
    figures = json.loads(done.out)
    return [name, figures["megabytes"], figures["distributions"], *_import(python, what[1], context)]


def _import(python: str, module: str, context: Context) -> list[Any]:
    code = _LOADED.get(module, f"import {module}")
    empty = median(run([python, "-c", "pass"]).cpu for _ in range(context.repeats))
    runs = [run([python, "-c", code]) for _ in range(context.repeats)]
    return [module, max(median(cost.cpu for cost in runs) - empty, 0.0), median(cost.memory for cost in runs)]


def _memory(context: Context) -> Table:
    table = Table("Memory of a conversation, OTLP to a live collector", ["turns", "MB"])
    for turns in (1, 100):
        with serving("collector") as collector:
            command = [sys.executable, str(_WORKLOADS / "sessions.py"), str(context.place / "agent.yaml"), "--sessions", "1"]
            figures = json.loads(run([*command, "--turns", str(turns), "--otlp", collector]).out)
        table.rows.append([turns, figures["peak"]])
    table.notes.append("one session that keeps its whole history")
    return table
