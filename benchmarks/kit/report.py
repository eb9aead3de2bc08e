"""Tables: Markdown for people, JSON for programs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Goal", "Table", "machine", "markdown"]


@dataclass(frozen=True)
class Goal:
    """A target, and how it was met.

    Attributes:
        words: The target in words.
        measured: The figure it is compared with.
        limit: The most it may be.
    """

    words: str
    measured: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the figure is within the limit."""
        return self.measured <= self.limit


@dataclass
class Table:
    """One topic's figures.

    Attributes:
        title: What was measured.
        columns: Headings, units included; the first column names the row.
        rows: One list a row; None is a figure that does not exist, a text stands in its place.
        notes: What has to be known to read it.
        goals: Targets that these figures are held to.
    """

    title: str
    columns: Sequence[str]
    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """The table as JSON values."""
        rows = [dict(zip(self.columns, row, strict=False)) for row in self.rows]
        goals = [{"goal": g.words, "measured": g.measured, "limit": g.limit, "met": g.met} for g in self.goals]
        return {"title": self.title, "rows": rows, "notes": self.notes, "goals": goals}


def markdown(table: Table) -> str:
    """The table in Markdown."""
    cells = [[_cell(value) for value in row] + [""] * (len(table.columns) - len(row)) for row in table.rows]
    rule = ["---"] + ["---:"] * (len(table.columns) - 1)
    lines = ["| " + " | ".join(row) + " |" for row in [list(table.columns), rule, *cells]]
    goals = [f"- {'met' if g.met else '**missed**'}: {g.words} ({_cell(g.measured)}, limit {_cell(g.limit)})" for g in table.goals]
    return "\n".join([f"### {table.title}", "", *lines, "", *goals, *(f"- {note}" for note in table.notes), ""])


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "/")


def machine() -> Mapping[str, str]:
    """Where this was measured, and on which versions."""
    packages = ("holodeck", "semantic-kernel", "openai", "opentelemetry-sdk", "opentelemetry-util-genai", "pydantic")
    return {
        "machine": f"{os.cpu_count()} × {_processor()}, {_memory()} GB, {platform.system()} {platform.release()}",
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "python": platform.python_version(),
        "revision": _revision(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor() or "unknown")


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _revision() -> str:
    here = Path(__file__).parent
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return done.stdout.strip() or f"unknown ({sys.version_info.major}.{sys.version_info.minor})"
