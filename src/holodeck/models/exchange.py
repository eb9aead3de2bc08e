"""What goes to a model and comes back, independent of who answers."""

from __future__ import annotations

from pydantic import Field

from holodeck.models.base import Value
from holodeck.models.llm import LLMConfig
from holodeck.models.token_usage import TokenUsage

__all__ = ["ModelEndpoint", "ModelReply", "ToolCall"]


class ModelEndpoint(Value):
    """Which model is asked, as the GenAI conventions name it.

    Attributes:
        provider: ``gen_ai.provider.name``, e.g. ``openai`` or ``azure.ai.openai``.
        model: ``gen_ai.request.model``.
        address: Host name of the server; None where there is none.
        port: Its port.
        config: The request's parameters.
    """

    provider: str
    model: str
    address: str | None = None
    port: int | None = None
    config: LLMConfig


class ToolCall(Value):
    """A tool call as the model asked for it.

    Attributes:
        id: The provider's call id, or one of ours where it gives none.
        name: The tool's name, as the model wrote it.
        arguments: The arguments as the model wrote them: JSON text, maybe malformed.
    """

    id: str
    name: str
    arguments: str = "{}"


class ModelReply(Value):
    """A model's reply to one request.

    Attributes:
        text: The text of the reply; may stand beside tool calls.
        tool_calls: What the model wants to be run.
        finish_reason: Why the model stopped: ``stop``, ``length``, ``tool_calls``, ``content_filter``, …
        response_id: The provider's id of the reply.
        response_model: The model that really answered.
        usage: Token usage; None where the provider did not say.
    """

    text: str = ""
    tool_calls: list[ToolCall] = Field(default_factory=list)
    finish_reason: str | None = None
    response_id: str | None = None
    response_model: str | None = None
    usage: TokenUsage | None = None
