"""How cases ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from holodeck.testing.cases.plan import PlannedCase
from holodeck.testing.outcome import Failure

__all__ = ["Attempt", "CaseResult"]


@dataclass
class Attempt:
    """One run of a case.

    Attributes:
        failures: What did not hold; empty if it passed.
        problem: Why it says nothing about the agent, e.g. the script has run out; "" if it does.
        tokens: Tokens of all requests; None if any is unknown.
        cost: What they cost; None if that is unknown.
        duration: Seconds.
        tools: Names of the tools that were called, in order.
        trace_ids: Traces of the turns, in order.
        shown: Turns and waterfalls as text; only of an attempt that did not pass.
    """

    failures: list[Failure] = field(default_factory=list)
    problem: str = ""
    tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0
    tools: tuple[str, ...] = ()
    trace_ids: tuple[str, ...] = ()
    shown: str = ""

    @property
    def passed(self) -> bool:
        """Everything that was expected holds."""
        return not self.failures and not self.problem


@dataclass
class CaseResult:
    """All runs of a case.

    Attributes:
        case: The case.
        attempts: Its runs.
        drift: What is no longer as in the baseline.
    """

    case: PlannedCase
    attempts: list[Attempt] = field(default_factory=list)
    drift: list[Failure] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Part of the runs that passed."""
        return sum(attempt.passed for attempt in self.attempts) / len(self.attempts) if self.attempts else 0.0

    @property
    def problem(self) -> str:
        """Why the case says nothing about the agent; "" if it does."""
        return next((attempt.problem for attempt in self.attempts if attempt.problem), "")

    @property
    def passed(self) -> bool:
        """Enough of the runs passed, and nothing has drifted."""
        wanted = 1.0 if self.case.pass_rate is None else self.case.pass_rate
        return not self.problem and not self.drift and bool(self.attempts) and self.rate >= wanted - 1e-9

    @property
    def failures(self) -> list[Failure]:
        """What to read first: the failures of the first run that did not pass, then what has drifted."""
        first = next((attempt.failures for attempt in self.attempts if attempt.failures), [])
        return [*(first if self.rate < 1 else []), *self.drift]

    @property
    def shown(self) -> str:
        """Turns and waterfalls of the first run that did not pass."""
        return next((attempt.shown for attempt in self.attempts if not attempt.passed), "")

    @property
    def tokens(self) -> int | None:
        """Tokens of a run, on average; None if any is unknown."""
        known = [attempt.tokens for attempt in self.attempts if attempt.tokens is not None]
        return round(sum(known) / len(known)) if known and len(known) == len(self.attempts) else None

    @property
    def cost(self) -> float | None:
        """Cost of a run, on average; None if any is unknown."""
        known = [attempt.cost for attempt in self.attempts if attempt.cost is not None]
        return sum(known) / len(known) if known and len(known) == len(self.attempts) else None

    @property
    def duration(self) -> float:
        """Seconds of a run, on average."""
        return sum(attempt.duration for attempt in self.attempts) / len(self.attempts) if self.attempts else 0.0
