"""ToolExecution: one tool call, from the model's wish to its result."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from holodeck.errors import SessionError
from holodeck.lib.validation import sanitize_parameters, sanitize_tool_output
from holodeck.models.base import Float, Value

__all__ = ["ToolExecution", "ToolSpec", "ToolStatus"]


class ToolStatus(str, Enum):
    """Tool execution status."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class ToolSpec(Value):
    """A tool as it is offered to the model.

    Attributes:
        name: The name the model calls; letters, digits, ``_`` and ``-``.
        description: What the model is told the tool does.
        parameters: JSON Schema of the arguments, an object schema.
        type: ``gen_ai.tool.type`` of the GenAI conventions: ``function`` or ``extension``.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    type: str = "function"


_BEFORE: Final = {
    ToolStatus.RUNNING: (ToolStatus.PENDING,),
    ToolStatus.SUCCESS: (ToolStatus.RUNNING,),
    ToolStatus.FAILED: (ToolStatus.PENDING, ToolStatus.RUNNING),
}


class ToolExecution(Value):
    """Metadata about one tool call; a frozen value whose transitions return a new one.

    The transitions are PENDING → RUNNING → SUCCESS or FAILED, and PENDING → FAILED for a call that was never begun; any other raises
    ``SessionError``. They set a result with SUCCESS only, and an error message with FAILED only. A value that is made directly, as one that
    is read back from JSON, may stand anywhere.

    Attributes:
        tool_name: Name of a tool that the agent configures; never empty.
        parameters: Arguments, sanitized; as frozen as the rest, at any depth.
        result: What the tool returned, sanitized; None until it has.
        status: Where the call stands.
        execution_time: Seconds the tool ran; None until it has.
        error_message: Why it failed; always there when status is FAILED.
    """

    tool_name: str = Field(min_length=1)
    parameters: dict[str, Any] = Field(default_factory=dict)
    result: str | None = None
    status: ToolStatus = ToolStatus.PENDING
    execution_time: Float | None = Field(default=None, ge=0)
    error_message: str | None = None

    @field_validator("parameters")
    @classmethod
    def _sanitize_parameters(cls, value: dict[str, Any]) -> dict[str, Any]:
        return sanitize_parameters(value)

    @field_validator("result", "error_message")
    @classmethod
    def _sanitize_text(cls, value: str | None) -> str | None:
        return sanitize_tool_output(value) if value else value

    @model_validator(mode="after")
    def _failure_has_a_reason(self) -> Self:
        if self.status is ToolStatus.FAILED and not (self.error_message or "").strip():
            raise ValueError("error_message required when status=FAILED")
        return self

    def running(self) -> ToolExecution:
        """The same call, started."""
        return self._become(ToolStatus.RUNNING)

    def succeeded(self, result: str | None, execution_time: float | None = None) -> ToolExecution:
        """The same call with its result; ``execution_time`` in seconds."""
        return self._become(ToolStatus.SUCCESS, result=result, execution_time=execution_time)

    def failed(self, error: str, execution_time: float | None = None) -> ToolExecution:
        """The same call with the reason of its failure; ``execution_time`` in seconds."""
        reason = sanitize_tool_output(error).strip() or "failed without a message"
        return self._become(ToolStatus.FAILED, error_message=reason, execution_time=execution_time)

    def _become(self, status: ToolStatus, **outcome: Any) -> ToolExecution:
        if self.status not in _BEFORE[status]:
            raise SessionError(f"a tool call cannot go from {self.status.value} to {status.value}")
        # model_copy(update=…) would skip validation: sanitizing is part of the value.
        return ToolExecution(tool_name=self.tool_name, parameters=self.parameters, status=status, **outcome)
