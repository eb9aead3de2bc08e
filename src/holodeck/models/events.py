"""What a turn yields while it runs, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from holodeck.models.base import Value
from holodeck.models.chat import Message
from holodeck.models.cost import RequestUsage, total_cost
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution

__all__ = ["TextDelta", "ToolFinished", "ToolStarted", "TurnError", "TurnEvent", "TurnFinished", "TurnResult"]


class TurnError(Value):
    """Why a turn failed.

    Attributes:
        error_type: The value of ``error.type`` on its span.
        message: One line for the user: what happened and what to do.
    """

    error_type: str
    message: str


class TurnResult(Value):
    """A turn as data.

    Attributes:
        number: 1-based number of the turn in its session.
        message: The assistant's answer; None if there is none.
        tool_calls: Every tool execution of the turn, in call order (also those of a turn without an answer).
        usage: Sum over the turn's model requests; None if any of them did not say.
        model_requests: How many requests went to the model.
        requests: What each of these requests took, in the order in which they ended.
        duration: Seconds from the user's message to the end of the turn.
        time_to_first_token: Seconds to the first text of the answer; None if there was no text.
        trace_id: 32 hex digits; None when telemetry is switched off.
        finish_reason: Why the model stopped: ``stop``, or ``length`` for an answer that ``max_tokens`` cut off; None if it did not say.
        error: Why the turn failed; None if it did not.
        interrupted: The user stopped it.
    """

    number: int
    message: Message | None = None
    tool_calls: list[ToolExecution] = Field(default_factory=list)
    usage: TokenUsage | None = None
    model_requests: int = 0
    requests: list[RequestUsage] = Field(default_factory=list)
    duration: float = 0.0
    time_to_first_token: float | None = None
    trace_id: str | None = None
    finish_reason: str | None = None
    error: TurnError | None = None
    interrupted: bool = False

    @property
    def cost_usd(self) -> float | None:
        """US dollars for all model requests of the turn; None if any of them is unknown, or if there were none."""
        return total_cost(request.cost_usd for request in self.requests)

    @property
    def failed(self) -> bool:
        """The turn ended without the answer that was asked for."""
        return self.error is not None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer; the pieces of a turn, joined, are the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call begins; ``execution.status`` is RUNNING."""

    call_id: str
    execution: ToolExecution


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call ended; ``execution.status`` is SUCCESS or FAILED."""

    call_id: str
    execution: ToolExecution


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn ended; always the last event of a turn."""

    result: TurnResult


TurnEvent = TextDelta | ToolStarted | ToolFinished | TurnFinished
