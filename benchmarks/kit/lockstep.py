"""Workloads that take turns: each runs a block while the others wait, so that what disturbs one disturbs all."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from kit.processes import clean_environment

__all__ = ["Paired", "Workload", "paired", "run_in_lockstep"]


class Workload:
    """A running workload (see ``workloads/blocks.py``)."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="holodeck-bench-")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the workload
        self._process = subprocess.Popen(
            command,
            env=clean_environment(self._home.name, env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ready(self) -> None:
        """Wait until it is warm."""
        self._read()

    def block(self, turns: int) -> float:
        """Run a block; CPU microseconds a turn."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{turns}\n")
        self._process.stdin.flush()
        return float(self._read()["cpu"])

    def end(self) -> int:
        """Let it end; the number of all its turns."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        turns = int(self._read()["turns"])
        self._process.wait(60)
        return turns

    def close(self) -> None:
        """Kill it if it still runs."""
        self._process.kill()
        self._process.wait()
        self._errors.close()
        self._home.cleanup()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                value: dict[str, Any] = json.loads(line)
                return value
        self._errors.seek(0)
        raise RuntimeError(f"{Path(self._process.args[1]).name} ended: {self._errors.read()[-300:].decode(errors='replace')}")  # type: ignore[index]


class Paired(NamedTuple):
    """The difference of two workloads, block by block.

    Attributes:
        median: Of the differences.
        low: Their first quartile.
        high: Their third.
    """

    median: float
    low: float
    high: float


def paired(more: Sequence[float], less: Sequence[float]) -> Paired:
    """What ``more`` costs over ``less``."""
    differences = [a - b for a, b in zip(more, less, strict=True)]
    low, _, high = quantiles(differences, n=4)
    return Paired(median(differences), low, high)


def run_in_lockstep(workloads: Mapping[str, Workload], blocks: int, turns: int) -> dict[str, list[float]]:
    """CPU microseconds a turn of each block of each workload."""
    for workload in workloads.values():
        workload.ready()
    figures: dict[str, list[float]] = {name: [] for name in workloads}
    for _ in range(blocks):
        for name, workload in workloads.items():
            figures[name].append(workload.block(turns))
    return figures
