"""Baselines: what was accepted before, and what is no longer like it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from holodeck.errors import ConfigError
from holodeck.lib.strict_yaml import read_yaml
from holodeck.lib.whole_file import write_whole
from holodeck.lib.yaml_writer import write_yaml
from holodeck.models.base import Float, Int, Strict
from holodeck.testing.cases.results import CaseResult
from holodeck.testing.outcome import Failure

__all__ = ["DEFAULT_TOLERANCE", "Baseline", "Tolerance", "load_baseline", "save_baseline"]

_HEAD: Final = "# What was accepted last: 'holodeck test AGENT --baseline FILE' compares with it, '--update' accepts anew.\n"
_LARGEST: Final = 20_000_000


class Tolerance(Strict):
    """How much more is still accepted, as a part of what it was; less is always accepted.

    Attributes:
        tokens: Of tokens.
        cost: Of the cost.
        duration: Of the duration, at least a tenth of a second.
    """

    tokens: Float = Field(default=0.1, ge=0)
    cost: Float = Field(default=0.1, ge=0)
    duration: Float = Field(default=1.0, ge=0)


DEFAULT_TOLERANCE: Final = Tolerance()
_LEAST_SECONDS: Final = 0.1
"""Seconds that are no difference, however short a case is."""


class BaselineCase(Strict):
    """What a case took when it was accepted.

    Attributes:
        tools: Names of the tools that were called, in order.
        tokens: Tokens; absent if they were unknown.
        cost: Cost; absent if it was unknown.
        duration: Seconds.
    """

    tools: list[str] = Field(default_factory=list)
    tokens: Int | None = None
    cost: Float | None = None
    duration: Float = 0.0


class Baseline(Strict):
    """A baseline file.

    Attributes:
        tolerance: How much more is still accepted.
        cases: By the case's file, as it is reached from the agent's directory, and its name: ``cases.yaml::asks for an order``.
    """

    tolerance: Tolerance = Field(default_factory=Tolerance)
    cases: dict[str, BaselineCase]

    def compare(self, result: CaseResult, tolerance: Tolerance | None = None) -> list[Failure]:
        """What of ``result`` is no longer as it was accepted; a case that was never accepted is not."""
        before = self.cases.get(result.case.key)
        if before is None:
            return [Failure("baseline", "this case was never accepted: --update accepts it")]
        allowed = tolerance or self.tolerance
        drift = [_growth("tokens", before.tokens, result.tokens, allowed.tokens, 0)]
        drift.append(_growth("cost", before.cost, result.cost, allowed.cost, 0))
        drift.append(_growth("duration", before.duration, result.duration, allowed.duration, _LEAST_SECONDS))
        tools = next((list(attempt.tools) for attempt in result.attempts if list(attempt.tools) != before.tools), None)
        if tools is not None:
            drift.append(Failure("baseline.tools", f"\n  - {', '.join(before.tools) or 'none'}\n  + {', '.join(tools) or 'none'}"))
        return [failure for failure in drift if failure is not None]


def _growth(name: str, before: float | None, now: float | None, tolerance: float, least: float) -> Failure | None:
    if before is None:
        return None
    if now is None:
        return Failure(f"baseline.{name}", f"was {before:g}, and is unknown now")
    if now <= before + max(before * tolerance, least):
        return None
    grown = f" (+{(now / before - 1):.0%})" if before else ""
    return Failure(f"baseline.{name}", f"was {before:g}, and is {now:g}{grown}; accepted are {tolerance:.0%} more")


def load_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        ConfigError: There is none, or it is wrong: names file, line and key.
    """
    if not path.exists():
        raise ConfigError(f"--baseline {path}: there is no such file: --update writes it")
    document = read_yaml(path, limit=_LARGEST)
    try:
        return Baseline.model_validate(document.data)
    except ValidationError as error:
        raise document.error(error, Baseline) from error


def save_baseline(path: Path, results: Iterable[CaseResult], before: Baseline | None, tolerance: Tolerance | None) -> None:
    """Accept ``results``; cases of ``before`` that were not run stay as they are.

    Raises:
        ConfigError: ``path`` cannot be written.
    """
    kept: Mapping[str, BaselineCase] = before.cases if before else {}
    accepted = {result.case.key: _accepted(result) for result in results}
    allowed = tolerance or (before.tolerance if before else DEFAULT_TOLERANCE)
    cases = {name: case.model_dump(exclude_none=True) for name, case in sorted({**kept, **accepted}.items())}
    try:
        write_whole(path, _HEAD + write_yaml({"tolerance": allowed.model_dump(), "cases": cases}))
    except OSError as error:
        raise ConfigError(f"--baseline {path}: cannot be written ({error.strerror})") from error


def _accepted(result: CaseResult) -> BaselineCase:
    tools = list(result.attempts[0].tools) if result.attempts else []
    return BaselineCase(tools=tools, tokens=result.tokens, cost=result.cost, duration=round(result.duration, 3))
