"""Many sessions in one process: throughput, memory, and whether every span arrives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kit.context import Context
from kit.processes import run, serving
from kit.report import Goal, Table
from topics.turn import count

__all__ = ["measure"]

SESSIONS = (1, 10, 100, 1_000)
MEGABYTES = 400.0
LINEAR = 1.5
"""How much more CPU a turn may take among the most sessions than among ten."""
_SPANS = 4
_WORKLOAD = Path(__file__).parent.parent / "workloads" / "sessions.py"


def measure(context: Context) -> list[Table]:
    """One process for each number of sessions."""
    columns = ["sessions", "turns", "turns/s", "CPU ms a turn", "memory before: MB", "memory: MB", "spans delivered", "spans made"]
    table = Table("Sessions at once in one process, OTLP to a live collector", columns)
    for sessions in SESSIONS[: 2 if context.quick else None]:
        turns = 2 if sessions > 1 else 5
        with serving("collector") as collector:
            command = [sys.executable, str(_WORKLOAD), str(context.place / "agent.yaml"), "--sessions", str(sessions)]
            done = run([*command, "--turns", str(turns), "--otlp", collector], timeout=300)
            delivered = count(collector)
        if done.code:
            raise RuntimeError(done.err[-400:])
        figures = json.loads(done.out)
        count_of_turns = figures["turns"] - 1
        row = [sessions, count_of_turns, count_of_turns / figures["wall"], figures["cpu"] / count_of_turns * 1e3]
        table.rows.append([*row, figures["idle"], figures["peak"], delivered, figures["turns"] * _SPANS])
        if figures["answered"] != figures["turns"]:
            table.notes.append(f"{sessions} sessions: {figures['turns'] - figures['answered']} turns failed")
    table.notes.append(
        "all of them at once, two turns each (five where there is one); a turn is dearer the longer its history and the more connections"
    )
    _hold(table)
    return [table]


def _hold(table: Table) -> None:
    ten, most = table.rows[1], table.rows[-1]
    table.goals += [
        Goal("spans lost, all runs", float(sum(row[7] - row[6] for row in table.rows)), 0.0),
        Goal(f"memory in MB with {most[0]} sessions", most[5], MEGABYTES),
    ]
    if most is not ten:
        words = f"growth: CPU of a turn among {most[0]} sessions, × that among 10"
        table.goals.append(Goal(words, most[3] / ten[3], LINEAR))
