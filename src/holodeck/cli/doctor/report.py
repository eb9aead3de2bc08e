"""The doctor's report: for people, or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from holodeck.cli.console import Notes
from holodeck.cli.doctor.findings import Finding, Setting, all_well
from holodeck.lib.validation import terminal_safe
from holodeck.version import __version__

__all__ = ["Report", "as_json"]

_STYLES: Final = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


class Report:
    """Writes findings as they come.

    Args:
        notes: Where to.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._terminal, self._narrow = notes.console.is_terminal, notes.narrow
        glyphs = notes.glyphs
        self._marks = {"ok": glyphs.done, "warning": "!", "failed": glyphs.failed, "skipped": "-"}

    def finding(self, finding: Finding) -> None:
        """Write one finding, and below it what to do."""
        mark = self._marks[finding.status].ljust(max(map(cell_len, self._marks.values())))
        title = (f"{mark} {finding.name}", _STYLES[finding.status])
        indent = cell_len(mark) + 1
        if self._narrow:
            self._block([title], 0)
            self._block([(finding.detail, "")], indent)
        else:
            self._block([title, (f": {finding.detail}", "")], 0, hanging=indent)
        if finding.fix:
            self._block([("fix: ", "bold"), (finding.fix, "")], indent, hanging=5)

    def settings(self, settings: Sequence[Setting]) -> None:
        """Write every setting with where it came from."""
        name_width = max((len(setting.name) for setting in settings), default=0)
        for setting in settings:
            plain = "dim" if setting.source == "default" else ""
            if self._narrow:
                self._block([(setting.name, plain)], 0)
                self._block([(setting.value, "bold"), (f"  {setting.source}", "dim")], 2, hanging=2)
            else:
                parts = [(f"{setting.name:<{name_width}}  ", plain), (setting.value, "bold"), (f"  {setting.source}", "dim")]
                self._block(parts, 0, hanging=name_width + 2)

    def heading(self, text: str) -> None:
        """Begin a part of the report."""
        self._notes.line("")
        self._notes.line((text, "bold"))

    def verdict(self, findings: Sequence[Finding]) -> None:
        """Say whether all is well."""
        failed = sum(finding.status == "failed" for finding in findings)
        warnings = sum(finding.status == "warning" for finding in findings)
        also = f", {warnings} to know of" if warnings else ""
        self._notes.line("")
        self._notes.line((f"{failed} of {len(findings)} checks failed{also}" if failed else f"all is well{also}", "bold"))

    def _block(self, parts: Sequence[tuple[str, str]], indent: int, *, hanging: int = 0) -> None:
        """Lines that are wrapped to the terminal with their further lines indented; one line where there is no terminal."""
        text = Text()
        for content, style in parts:
            text.append(" ".join(terminal_safe(content).split(" ")), style=style or None)
        console = self._notes.console
        if not self._terminal:
            self._notes.print(Text(" " * indent).append_text(text), wrap=False)
            return
        first, *rest = text.wrap(console, max(console.width - indent, 10)) or [text]
        if rest and hanging:
            tail = text[len(first.plain) :]
            tail = tail[len(tail.plain) - len(tail.plain.lstrip()) :]
            rest = list(tail.wrap(console, max(console.width - indent - hanging, 10)))
        console.print(Padding(first, (0, 0, 0, indent)), soft_wrap=False)
        for line in rest:
            console.print(Padding(line, (0, 0, 0, indent + hanging)), soft_wrap=False)


def as_json(findings: Sequence[Finding], settings: Sequence[Setting]) -> str:
    """The same as one JSON object: ``ok``, ``version``, ``checks`` and ``settings``."""
    data: dict[str, Any] = {
        "ok": all_well(findings),
        "version": __version__,
        "checks": [asdict(finding) for finding in findings],
        "settings": [asdict(setting) for setting in settings],
    }
    return json.dumps(data, indent=2)
