"""What came of a turn or a case, and what of it is not as expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holodeck.models.events import TurnResult
from holodeck.models.token_usage import TokenUsage, total_usage
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import Prices
from holodeck.traces import SpanRecord

__all__ = ["Failure", "Outcome"]


@dataclass(frozen=True)
class Failure:
    """An expectation that does not hold.

    Attributes:
        kind: Which, e.g. ``answer.contains``; holds nothing that a model or a user said.
        reason: Why not.
    """

    kind: str
    reason: str

    @property
    def text(self) -> str:
        """Both, as one sentence."""
        return f"{self.kind}: {self.reason}"


@dataclass
class Outcome:
    """What is looked at: one turn, or all turns of a case.

    Attributes:
        results: The turns.
        spans: Their spans.
        prices: What models cost, where that is not known otherwise.
    """

    results: Sequence[TurnResult]
    spans: Sequence[SpanRecord]
    prices: Prices = field(default_factory=Prices)

    @property
    def calls(self) -> list[ToolExecution]:
        """All tool executions."""
        return [call for result in self.results for call in result.tool_calls]

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of all turns; None if any is unknown."""
        return total_usage(result.usage for result in self.results)

    @property
    def cost(self) -> float | str:
        """US dollars; a sentence that says why they are not known, if they are not."""
        return self.prices.cost(self.results, self.spans)

    @property
    def answer(self) -> str:
        """The last turn's answer; "" if there is none."""
        last = self.results[-1].message if self.results else None
        return last.content if last else ""

    @property
    def duration(self) -> float:
        """Seconds that all turns took."""
        return sum(result.duration for result in self.results)
