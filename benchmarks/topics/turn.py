"""What telemetry adds to a turn: against the SDK alone, and beside other instrumentations."""

from __future__ import annotations

import json
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from kit.context import Context
from kit.environments import build
from kit.lockstep import Paired, Workload, paired, run_in_lockstep
from kit.processes import run, serving
from kit.report import Goal, Table

__all__ = ["INSTRUMENTATIONS", "measure"]

INSTRUMENTATIONS = ("genai-openai", "openllmetry", "openlit", "logfire")
TURNS = 10
FLOOR_FACTOR = 2.0
RECORDING_US = 600.0
_WORKLOADS = Path(__file__).parent.parent / "workloads"
_SPANS = 4
_REQUESTS = 2
_DEAD = "http://127.0.0.1:9"


def measure(context: Context) -> list[Table]:
    """Recording against the floor; whole turns in every mode; the peers on the same conversation."""
    tables = [_recording(), _modes(context)]
    if not context.quick:
        tables.append(_peers(context, tables[1]))
    return tables


def _recording() -> Table:
    figures = json.loads(run([sys.executable, str(_WORKLOADS / "recording.py")]).out)
    cpu, spans = figures["cpu"], figures["spans"]
    table = Table("Recording a turn, nothing exported", ["what", "CPU µs a turn", "CPU µs a span", "× floor"])
    for name, floor in (("holodeck", "floor"), ("holodeck, content captured", "floor, content captured")):
        table.rows += [[name, cpu[name], cpu[name] / spans, cpu[name] / cpu[floor]], [floor, cpu[floor], cpu[floor] / spans, 1.0]]
    table.notes.append(
        f"floor: the bare SDK making the same {spans} spans with the same attributes, and the same {figures['records']} metric records"
    )
    table.goals += [
        Goal("recording a turn, × the floor", cpu["holodeck"] / cpu["floor"], FLOOR_FACTOR),
        Goal("recording a turn, CPU µs", cpu["holodeck"], RECORDING_US),
    ]
    return table


def _ours(context: Context, mode: str, otlp: str = "") -> Workload:
    command = [sys.executable, str(_WORKLOADS / "turns.py"), str(context.place / "agent.yaml"), "--mode", mode]
    return Workload([*command, *(["--otlp", otlp] if otlp else [])])


def _modes(context: Context) -> Table:
    modes = {"off": "", "console": "", "otlp": "up", "otlp, collector dead": _DEAD, "otlp, content captured": "up"}
    table = Table(
        "A whole turn (two requests, one tool)", ["telemetry", "CPU ms a turn", "added by telemetry, ms", "quartiles, ms", "spans"]
    )
    with serving("collector") as collector, ExitStack() as stack:
        workloads = {}
        for name, where in modes.items():
            mode = "content" if "content" in name else name.partition(",")[0]
            workloads[name] = _ours(context, mode, collector if where == "up" else where)
            stack.callback(workloads[name].close)
        figures = run_in_lockstep(workloads, 6 if context.quick else 30, TURNS)
        delivered = _delivered(workloads, collector)
    for name, values in figures.items():
        added = paired(values, figures["off"]) if name != "off" else None
        table.rows.append([name, median(values) / 1e3, *_added(added), delivered if name == "otlp" else None])
    made = delivered.partition(" of ")
    table.goals.append(Goal("spans made and not delivered to a collector that is up", float(made[2]) - float(made[0]), 0.0))
    table.notes.append(f"blocks of {TURNS} turns in lockstep; CPU of the whole process, delivery included; answers of 20 chunks")
    return table


def _added(added: Paired | None) -> list[Any]:
    return [None, None] if added is None else [added.median / 1e3, f"{added.low / 1e3:.2f} … {added.high / 1e3:.2f}"]


def _delivered(workloads: dict[str, Workload], collector: str) -> str:
    """``delivered of made`` for the workloads that have a collector."""
    turns = {name: workload.end() for name, workload in workloads.items()}
    made = sum(turns[name] for name in ("otlp", "otlp, content captured")) * _SPANS
    return f"{count(collector)} of {made}"


def count(collector: str) -> int:
    """How many spans a collector has received."""
    with urllib.request.urlopen(f"{collector}/count", timeout=10) as response:
        return int(response.read())


def _peers(context: Context, ours: Table) -> Table:
    columns = ["instrumentation", "without, ms", "added a turn, ms", "quartiles, ms", "spans exported a turn", "added a span, µs"]
    table = Table("Beside instrumentations of the plain openai client, OTLP to a live collector", columns)
    added = next(row[2] for row in ours.rows if row[0] == "otlp")
    raw = next(row[1] for row in ours.rows if row[0] == "off")
    table.rows.append(["holodeck", raw, added, ours.rows[2][3], float(_SPANS), added * 1e3 / _SPANS])
    for name in INSTRUMENTATIONS:
        if context.late:
            table.notes.append(f"{name}: no time left")
            continue
        try:
            table.rows.append(_peer(name, context))
        except (RuntimeError, OSError, ValueError) as error:
            table.rows.append([name])
            table.notes.append(f"{name}: {' '.join(str(error).split())[:240]}")
    others = [row[5] for row in table.rows[1:] if len(row) > 1]
    if others:
        table.goals.append(Goal("added by a span, µs, below every instrumentation", added * 1e3 / _SPANS, min(others)))
    table.notes.append(
        "same conversation, same server, no content; holodeck's spans a turn: the root, two requests, one tool; theirs: requests"
    )
    return table


def _peer(name: str, context: Context) -> list[Any]:
    environment = build(name, late=context.late)
    if environment.problem:
        raise RuntimeError(environment.problem)
    command = [environment.program("python"), str(_WORKLOADS / "peer.py"), context.model]
    with serving("collector") as collector, ExitStack() as stack:
        workloads = {"raw": Workload(command), "on": Workload([*command, "--instrumentation", name, "--otlp", collector])}
        for workload in workloads.values():
            stack.callback(workload.close)
        figures = run_in_lockstep(workloads, 30, TURNS)
        turns = workloads["on"].end()
        spans = count(collector) / turns
    added = paired(figures["on"], figures["raw"])
    if spans < _REQUESTS:
        raise RuntimeError(f"only {spans:.2f} spans a turn arrive")
    return [name, median(figures["raw"]) / 1e3, *_added(added), spans, added.median / _REQUESTS]
