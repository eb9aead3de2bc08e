"""What a test run shows: progress while it runs, failures and a table at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from holodeck.cli.console import Notes
from holodeck.lib.validation import terminal_safe
from holodeck.testing.cases import CaseResult
from holodeck.traces import format_count, format_duration

__all__ = ["Report", "TestProgress"]

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

    def show(self, results: Sequence[CaseResult], *, repeated: bool) -> None:
        """Show failures in full, then all cases as a table, then one line."""
        for result in results:
            if not result.passed:
                self._failure(result)
        self._table(results, repeated=repeated)
        for problem in dict.fromkeys(result.problem for result in results if result.problem):
            self._notes.error(problem)
        self._summary(results)

    def _failure(self, result: CaseResult) -> None:
        out = self._out
        out.line((f"{out.glyphs.failed} {result.case.name}", "bold red"), (f"  {result.case.place}", "dim"), wrap=False)
        if result.problem:
            out.line(f"  {result.problem}", wrap=False)
        for failure in () if result.problem else result.failures:
            out.line(f"  {failure.text}".replace("\n", "\n  "), wrap=False)
        for line in result.shown.splitlines():
            out.line((f"  {line}", "dim"), wrap=False)
        out.line("")

    def _table(self, results: Sequence[CaseResult], *, repeated: bool) -> None:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("")
        table.add_column("case", overflow="fold")
        if repeated:
            table.add_column("passed", justify="right")
        for column in ("tokens", *(["cost"] if self._priced(results) else []), "time"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("trace", style="dim", no_wrap=True)
        for result in results:
            table.add_row(*self._row(result, repeated=repeated, priced=self._priced(results)))
        console = self._out.console
        if not console.is_terminal:
            console.width = _UNBOUNDED
        console.print(table)

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
        return [mark, Text(terminal_safe(" ".join(result.case.name.split()))), *map(Text, rate), *map(Text, facts)]

    def _summary(self, results: Sequence[CaseResult]) -> None:
        passed = sum(result.passed for result in results)
        failed = len(results) - passed
        style = "bold red" if failed else "bold green"
        self._out.line((f"{passed} passed" + (f", {failed} failed" if failed else ""), style))
