"""What a test run shows: progress while it runs, failures and a table at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from rich.cells import cell_len
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from holodeck.cli.console import Notes
from holodeck.lib.problems import one_line
from holodeck.testing.cases import CaseResult
from holodeck.traces import format_count, format_duration

__all__ = ["Report", "TestProgress"]

_LONGEST_NAME: Final = 200
_WIDEST: Final = 100
"""Cells of a waterfall where there is room."""
_LEAST_FOR_NAMES: Final = 20
"""Cells for the names of cases; where they are not left, there are no trace ids, which stand with what failed anyway."""
_COLUMNS: Final[dict[str, Any]] = {
    "": {},
    "case": {"overflow": "fold"},
    "passed": {"justify": "right"},
    "trace": {"style": "dim", "no_wrap": True},
}
"""What is not said of a column of numbers."""
_UNBOUNDED: Final = 160
"""Cells of a line where there is no terminal whose width could be asked for."""


class TestProgress:
    """A bar on stderr; nothing at all in a pipe or in CI.

    Args:
        notes: Where to.
        total: How many cases there are.
    """

    __test__ = False  # pytest takes a name like this for a class of tests

    def __init__(self, notes: Notes, total: int) -> None:
        self._failed = 0
        self._bar: Progress | None = None
        if notes.animated and not os.environ.get("CI"):
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=notes.console, transient=True)
            self._task = self._bar.add_task("testing", total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def done(self, result: CaseResult) -> None:
        """One more case has ended."""
        self._failed += not result.passed
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=f"[red]{self._failed} failed[/]" if self._failed else "testing")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()


class Report:
    """The end of a test run.

    Args:
        out: The report itself.
        notes: Warnings and problems.
    """

    def __init__(self, out: Notes, notes: Notes) -> None:
        self._out, self._notes = out, notes

    def warn(self, lines: Sequence[str]) -> None:
        """Say what is not acted upon."""
        for line in dict.fromkeys(lines):
            self._notes.warning(line)

    def nothing(self, filtered: bool) -> None:
        """Say that no case ran, and why."""
        why = "-k matches none" if filtered else "name case files, or write cases.yaml beside the agent"
        self._notes.error(f"no case ran: {why}")

    def accepted(self, path: Path, count: int) -> None:
        """Say that a baseline was written."""
        self._notes.hint(f"accepted: {count} cases in {path}")

    @property
    def width(self) -> int:
        """Cells that are left for a waterfall."""
        console = self._out.console
        return min(console.width - 2, _WIDEST) if console.is_terminal else _WIDEST

    def show(self, results: Sequence[CaseResult], *, repeated: bool, left: int = 0) -> None:
        """Show failures in full, then all cases as a table, then one line.

        Why a case says nothing about the agent, such as a script that has run out, is said in the notes alone.

        Args:
            results: What has run.
            repeated: Say how often each has passed.
            left: How many cases were not run.
        """
        for result in results:
            if not result.passed:
                self._failure(result)
        if results:
            self._table(results, repeated=repeated)
        for problem in dict.fromkeys(result.problem for result in results if result.problem):
            self._notes.error(problem)
        self._summary(results, left)

    def _failure(self, result: CaseResult) -> None:
        out = self._out
        out.line((f"{out.glyphs.failed} {_name(result)}", "bold red"), (f"  {result.case.place}", "dim"))
        for failure in () if result.problem else result.failures:
            out.line(f"  {failure.text}".replace("\n", "\n  "))
        for line in result.shown.splitlines():
            out.line((f"  {line}", "dim"))
        out.line("")

    def _table(self, results: Sequence[CaseResult], *, repeated: bool) -> None:
        priced = self._priced(results)
        heads = ["", "case", *(["passed"] if repeated else []), "tokens", *(["cost"] if priced else []), "time", "trace"]
        rows = [self._row(result, repeated=repeated, priced=priced) for result in results]
        console = self._out.console
        if not console.is_terminal:
            console.width = _UNBOUNDED
        elif self._needed(heads, rows) > console.width:
            heads, rows = heads[:-1], [row[:-1] for row in rows]
        table = Table(box=None, pad_edge=False, header_style="dim")
        for head in heads:
            table.add_column(head, **_COLUMNS.get(head, {"justify": "right", "no_wrap": True}))
        for row in rows:
            table.add_row(*row)
        console.print(table)

    @staticmethod
    def _needed(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
        """Cells that the table needs with names of cases cut to the least."""
        cells = [max(cell_len(head), *(row[number].cell_len for row in rows)) for number, head in enumerate(heads)]
        cells[1] = min(cells[1], _LEAST_FOR_NAMES)
        return sum(cells) + 2 * (len(heads) - 1)

    @staticmethod
    def _priced(results: Sequence[CaseResult]) -> bool:
        return any(result.cost is not None for result in results)

    def _row(self, result: CaseResult, *, repeated: bool, priced: bool) -> list[Text]:
        glyphs = self._out.glyphs
        mark = Text(glyphs.done, "green") if result.passed else Text(glyphs.failed, "red")
        runs = len(result.attempts)
        rate = [f"{sum(a.passed for a in result.attempts)}/{runs}"] if repeated else []
        cost = [] if not priced else ["" if result.cost is None else f"{result.cost:.6g}"]
        shown = next((a for a in result.attempts if not a.passed), result.attempts[-1])
        trace = shown.trace_ids[-1] if shown.trace_ids else ""
        facts = [format_count(result.tokens), *cost, format_duration(result.duration, ascii_only=glyphs.ascii), trace]
        return [mark, Text(_name(result)), *map(Text, rate), *map(Text, facts)]

    def _summary(self, results: Sequence[CaseResult], left: int) -> None:
        passed = sum(result.passed for result in results)
        failed = len(results) - passed
        style = "bold red" if failed else "bold yellow" if left else "bold green"
        parts = [f"{passed} passed", *([f"{failed} failed"] if failed else []), *([f"{left} not run"] if left else [])]
        self._out.line((", ".join(parts), style))


def _name(result: CaseResult) -> str:
    """The case's name on one line."""
    return one_line(result.case.name, _LONGEST_NAME)
