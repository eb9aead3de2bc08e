"""``holodeck trace diff``: two traces, or two files of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holodeck.cli.trace.page import Page
from holodeck.cli.trace.reading import every_root, name_of, say_no_traces
from holodeck.errors import SettingError
from holodeck.traces import Difference, DiffOptions, Node, diff_lines, diff_trees, format_count, tally
from holodeck.traces.diff import KINDS

__all__ = ["Selection", "compared", "show_differences"]


@dataclass(frozen=True)
class Selection:
    """Which traces of the two sides are compared.

    Attributes:
        trace_ids: Beginnings of trace ids, in lower case: of the first side, and of the second; a single one is for both.
        turns: Positions of traces in their files, from 1, likewise.
    """

    trace_ids: tuple[str, ...] = ()
    turns: tuple[int, ...] = ()

    def check(self, *, one_file: bool) -> None:
        """Check that there are two sides.

        Raises:
            SettingError: There are more, or only one.
        """
        given = (self.trace_ids, self.turns)
        if all(given):
            raise SettingError("--trace-id and --turn: use one of them")
        if any(len(values) > 2 for values in given):
            raise SettingError("two sides are compared: give --trace-id or --turn at most twice")
        if one_file and not any(len(values) == 2 for values in given):
            raise SettingError("with one file, say which two of its traces: --turn 1 --turn 2, or --trace-id twice")

    def of(self, side: int, path: Path) -> list[Node]:
        """The trees of ``path`` that stand on ``side`` (0 or 1).

        Raises:
            SettingError: The file cannot be read, or has no such trace.
        """
        roots = every_root(path)
        if not roots:
            say_no_traces(path)
        if self.turns:
            number = self.turns[min(side, len(self.turns) - 1)]
            if number > len(roots):
                raise SettingError(f"{name_of(path)}: there is no trace {number} in it, there are {len(roots)}")
            return [roots[number - 1]]
        if self.trace_ids:
            wanted = self.trace_ids[min(side, len(self.trace_ids) - 1)]
            chosen = [root for root in roots if root.span.trace_id.startswith(wanted)]
            if not chosen:
                raise SettingError(f"{name_of(path)}: there is no trace {wanted} in it: 'holodeck trace list' shows those that are")
            return chosen
        return roots


def compared(before: Path, after: Path | None, selection: Selection, options: DiffOptions) -> list[Difference]:
    """Every span of either side, and what is different about it.

    Raises:
        SettingError: A file cannot be read, or has no such trace.
    """
    selection.check(one_file=after is None)
    if after is not None and str(before) == str(after) == "-":
        raise SettingError("standard input can be read only once: name a file for one side")
    return list(diff_trees(selection.of(0, before), selection.of(1, after or before), options))


def show_differences(differences: Sequence[Difference], page: Page) -> None:
    """Write what is different."""
    for line in diff_lines(differences, page.width, ascii_only=page.ascii):
        page.line(line)
    page.text(_total(differences, tally(differences)), "dim")


def _total(differences: Sequence[Difference], counts: Counter[str]) -> str:
    found = [f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]]
    return ", ".join(found) or f"no difference in {format_count(len(differences))} span{'s' * (len(differences) != 1)}"
