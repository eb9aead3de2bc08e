"""Latency: how long a token takes, beside the raw client."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from kit.context import Context
from kit.processes import run, serving
from kit.report import Table

__all__ = ["measure"]

FIRST, BETWEEN, CHUNKS = 0.05, 0.01, 20
_WORKLOAD = Path(__file__).parent.parent / "workloads" / "latency.py"
_AGENT = """
name: plain
model: {{provider: openai, name: gpt-4o-mini, endpoint: "{url}/v1", api_key: "key"}}
instructions: {{inline: "Answer."}}
"""


def measure(context: Context) -> list[Table]:
    """Time to the first token and between tokens, OTLP on, against a server with fixed delays."""
    agent = context.place / "latency.yaml"
    options = ["--first", str(FIRST), "--between", str(BETWEEN), "--chunks", str(CHUNKS)]
    with serving("model", *options) as model, serving("collector") as collector:
        agent.write_text(_AGENT.format(url=model), encoding="utf-8")
        turns = ["--turns", "8" if context.quick else "60"]
        done = run([sys.executable, str(_WORKLOAD), str(agent), f"{model}/v1", "--otlp", collector, *turns])
    if done.code:
        raise RuntimeError(done.err[-400:])
    figures = json.loads(done.out)
    columns = ["client", "first token: median ms", "95 % ms", "between tokens: median ms", "95 % ms "]
    table = Table("Latency of streamed text", columns, [[name, *_row(values)] for name, values in figures.items()])
    table.notes.append(f"the server waits {FIRST * 1e3:.0f} ms before the first piece and {BETWEEN * 1e3:.0f} ms before each other one")
    return [table]


def _row(values: dict[str, list[float]]) -> list[Any]:
    return [figure for kind in ("first", "between") for figure in (median(values[kind]), quantiles(values[kind], n=20)[-1])]
