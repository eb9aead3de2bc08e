"""Leaving: how long a program stays after its last word, while the collector is up, down, silent or slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from kit.context import Context
from kit.environments import build
from kit.processes import Cost, run, serving
from kit.programs import holodeck
from kit.report import Goal, Table
from topics.turn import INSTRUMENTATIONS

__all__ = ["measure"]

STATES = ("up", "refused", "silent", "slow")
SHARE = 0.25
SECONDS = 2.0
_ENOUGH = 5.0
_PEER = Path(__file__).parent.parent / "workloads" / "peer.py"


def measure(context: Context) -> list[Table]:
    """Seconds from the last line of output to the end of the process."""
    table = Table("Leaving, by what the collector does", ["program", *(f"{state}: s" for state in STATES)])
    program = holodeck(context.place)
    table.rows.append(["holodeck", *_row(lambda otlp: _ours([*program.ask, "--observability"], otlp, context.place), context)])
    for name in () if context.quick else INSTRUMENTATIONS:
        environment = build(name, late=context.late)
        if environment.problem or context.late:
            table.rows.append([name])
            table.notes.append(f"{name}: {environment.problem or 'no time left'}")
            continue
        command = [environment.program("python"), str(_PEER), context.model, "--instrumentation", name]
        table.rows.append([name, *_row(lambda otlp, c=command: _run([*c, "--otlp", otlp]), context)])  # type: ignore[misc]
    _hold(table)
    table.notes.append("one turn (peers: 20) before the end; slow: the collector takes a second for each request")
    table.notes.append(
        "wall time; medians of three runs, or of fewer if they take long; –: failed, or not gone after a minute; peers: with their defaults"
    )
    return [table]


def _row(leave: Callable[[str], Cost], context: Context) -> list[Any]:
    row: list[Any] = []
    for state in STATES:
        with _collector(state) as otlp:
            row.append(_seconds(lambda: leave(otlp), context))
    return row


def _seconds(leave: Callable[[], Cost], context: Context) -> float | None:
    """The median of a few runs, of one if it takes long; None if the program fails or stays longer than a minute."""
    seen: list[float] = []
    try:
        while len(seen) < (1 if context.quick else 3) and sum(seen) < _ENOUGH:
            seen.append(leave().after)
    except (TimeoutError, RuntimeError):
        return None
    return median(seen)


@contextmanager
def _collector(state: str) -> Iterator[str]:
    if state == "refused":
        yield "http://127.0.0.1:9"
        return
    with serving("collector", "--behaviour", state) as url:
        yield url


def _ours(command: list[str], otlp: str, place: Path) -> Cost:
    return _run(command, {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp}, place)


def _run(command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> Cost:
    done = run(command, env=env, cwd=cwd, timeout=60)
    if done.code:
        raise RuntimeError(done.err[-300:])
    return done


def _hold(table: Table) -> None:
    ours = table.rows[0]
    for column, state in enumerate(STATES, 1):
        if ours[column] is None:
            continue
        if state != "up":
            table.goals.append(Goal(f"seconds to leave, collector {state}", ours[column], SECONDS))
        others = [row[column] for row in table.rows[1:] if len(row) > column and row[column] is not None]
        if others and state in ("refused", "silent"):
            table.goals.append(Goal(f"… at most a quarter of the best peer's, {state}", ours[column], SHARE * min(others)))
