"""Start-up: help, the prompt, one question answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from kit.context import Context
from kit.processes import Cost, first_paint, run
from kit.programs import PEERS, Program, holodeck, peer
from kit.report import Goal, Table

__all__ = ["measure"]

PROMPT_CPU = 0.5
_STEPS = ("help", "prompt", "answer")


def measure(context: Context) -> list[Table]:
    """CPU, wall time and memory of each program, the runs of all of them interleaved."""
    programs = [holodeck(context.place)]
    if not context.quick:
        programs += [peer(name, context.place, context.model, late=context.late) for name in PEERS]
    usable = [program for program in programs if not program.problem]
    costs: dict[tuple[str, str], list[Cost | str]] = {}
    for step in _STEPS:
        for _ in range(context.repeats):
            for program in usable:
                costs.setdefault((program.name, step), []).append(_attempt(step, program, context.place))
    return [_table(programs, costs, context)]


def _attempt(step: str, program: Program, place: Path) -> Cost | str:
    steps: dict[str, Callable[[], Cost]] = {
        "help": lambda: run(program.help, env=program.env, cwd=place),
        "prompt": lambda: first_paint(program.prompt, program.marker, env=program.env, cwd=place),
        "answer": lambda: _answered(run(program.ask, env=program.env, cwd=place, stdin=program.stdin)),
    }
    try:
        cost = steps[step]()
    except (TimeoutError, OSError, AssertionError) as error:
        return " ".join(str(error).split())[:160]
    return cost if cost.code == 0 else f"exit code {cost.code}: {' '.join(cost.err.split())[-120:]}"


def _answered(cost: Cost) -> Cost:
    if cost.code == 0 and "word19" not in cost.out:
        raise AssertionError(f"no answer in {cost.out[-160:]!r} {cost.err[-160:]!r}")
    return cost


def _table(programs: list[Program], costs: dict[tuple[str, str], list[Cost | str]], context: Context) -> Table:
    columns = ["program", "help: CPU s", "help: wall s", "prompt: CPU s", "prompt: wall s", "prompt: MB", "answer: CPU s", "answer: wall s"]
    table = Table("Start-up", [*columns, "answer: MB"])
    for program in programs:
        row: list[Any] = [program.name]
        for step in _STEPS:
            seen = costs.get((program.name, step), [program.problem])
            good = [cost for cost in seen if isinstance(cost, Cost)]
            row += [median(c.cpu for c in good), median(c.wall for c in good)] if good else [None, None]
            row += ([median(c.memory for c in good)] if good else [None]) if step != "help" else []
            table.notes += [f"{program.name}, {step}: {cost}" for cost in seen[:1] if isinstance(cost, str)]
        table.rows.append(row)
    table.notes.append(f"medians of {context.repeats} runs; CPU: user and system time of the process and its children, all threads")
    table.notes.append("answer: one question, two model requests, one tool, and the end of the process")
    _hold(table, costs)
    return table


def _hold(table: Table, costs: dict[tuple[str, str], list[Cost | str]]) -> None:
    def cpu(name: str, step: str) -> float | None:
        good = [cost.cpu for cost in costs.get((name, step), []) if isinstance(cost, Cost)]
        return median(good) if good else None

    prompt, answer = cpu("holodeck", "prompt"), cpu("holodeck", "answer")
    if prompt is not None:
        table.goals.append(Goal("CPU seconds when the prompt is first drawn", prompt, PROMPT_CPU))
        others = [value for name in PEERS if (value := cpu(name, "prompt")) is not None]
        table.goals += [Goal("… ahead of every peer", prompt, min(others))] if others else []
    for name, factor in (("holodeck-ai", 1), ("clai", 2)):
        if answer is not None and (other := cpu(name, "answer")) is not None:
            table.goals.append(Goal(f"CPU seconds of an answer, {factor} × {name}'s at most", answer, factor * other))
