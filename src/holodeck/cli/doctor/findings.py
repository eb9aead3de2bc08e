"""What a check found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Setting", "all_well", "bad", "good", "note"]

Status = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One check and how it went.

    Attributes:
        name: What was checked, in a word or two.
        status: How it went; only ``failed`` makes the exit code 1.
        detail: What was found.
        fix: What to do; "" if nothing is to be done, or nothing better is known.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Setting:
    """One telemetry setting after precedence.

    Attributes:
        name: As in ``TelemetrySettings``, dotted.
        value: As text; secrets are hidden.
        source: ``flag --NAME``, ``env NAME``, ``agent file`` or ``default``.
    """

    name: str
    value: str
    source: str


def good(name: str, detail: str) -> Finding:
    """It is as it should be."""
    return Finding(name, "ok", detail)


def bad(name: str, detail: str, fix: str = "") -> Finding:
    """It does not work."""
    return Finding(name, "failed", detail, fix)


def note(name: str, detail: str, *, fix: str = "", skipped: bool = False) -> Finding:
    """Something to know: a warning, or a check that was left out."""
    return Finding(name, "skipped" if skipped else "warning", detail, fix)


def all_well(findings: Sequence[Finding]) -> bool:
    """Whether nothing failed."""
    return all(finding.status != "failed" for finding in findings)
