"""ChatSession, Message and ChatConfig: a conversation, what is said in it, and how it is run."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self
from uuid import UUID, uuid4

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from holodeck.errors import SessionError
from holodeck.lib.validation import MAX_MESSAGE_CHARS, shorten, with_whole_characters
from holodeck.models.agent import AgentConfig
from holodeck.models.base import Int, PastTime, Strict, Value, utc_now
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution

__all__ = ["ChatConfig", "ChatSession", "Message", "MessageRole", "SessionState"]


def _is_chat_history(value: Any) -> Any:
    # Looked up late: importing Semantic Kernel takes seconds, and whoever has a history has already paid for it.
    from semantic_kernel.contents.chat_history import ChatHistory as KernelHistory  # noqa: PLC0415

    if not isinstance(value, KernelHistory):
        raise ValueError("history must be a semantic_kernel.contents.ChatHistory")  # noqa: TRY004 - pydantic reports ValueError
    return value


if TYPE_CHECKING:
    from semantic_kernel.contents import ChatHistory
else:
    ChatHistory = Annotated[Any, AfterValidator(_is_chat_history)]


class MessageRole(str, Enum):
    """Message role in a conversation."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class Message(Value):
    """One message of a conversation.

    Attributes:
        role: Who speaks.
        content: What is said, stripped; never empty; at most 10,000 characters from a user.
        timestamp: When, aware, UTC.
        tool_calls: Tool calls made for this answer, a list that cannot be changed; assistant messages only.
        tokens_used: Sum over the model requests of the turn; None if any of them is unknown.
    """

    role: MessageRole
    content: str = Field(min_length=1)
    timestamp: PastTime = Field(default_factory=utc_now)
    tool_calls: list[ToolExecution] = Field(default_factory=list)
    tokens_used: TokenUsage | None = None

    @field_validator("content")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not (stripped := value.strip()):
            raise ValueError("Message content cannot be empty")
        return stripped

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if self.role is MessageRole.USER and len(self.content) > MAX_MESSAGE_CHARS:
            raise ValueError("User message exceeds 10,000 character limit")
        if self.tool_calls and self.role is not MessageRole.ASSISTANT:
            raise ValueError("Tool calls only allowed for assistant messages")
        return self


class SessionState(str, Enum):
    """Chat session state; it moves INITIALIZING → ACTIVE → TERMINATED only."""

    INITIALIZING = "initializing"
    ACTIVE = "active"
    TERMINATED = "terminated"


_NEXT_STATE = {SessionState.INITIALIZING: SessionState.ACTIVE, SessionState.ACTIVE: SessionState.TERMINATED}


class ChatSession(Strict):
    """An interactive chat session. Its state moves forward only, and none begins TERMINATED.

    Attributes:
        session_id: UUID; also ``gen_ai.conversation.id``.
        agent_config: The agent that is talked to.
        history: Semantic Kernel's ``ChatHistory``.
        started_at: When, aware, UTC; never in the future.
        message_count: User and assistant messages so far.
        state: Where the session stands.
        metadata: Anything the caller wants to keep with it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: UUID = Field(default_factory=uuid4)
    agent_config: AgentConfig
    history: ChatHistory
    started_at: PastTime = Field(default_factory=utc_now)
    message_count: Int = Field(default=0, ge=0)
    state: SessionState = SessionState.INITIALIZING
    metadata: dict[str, Any] = Field(default_factory=dict)

    def model_post_init(self, context: Any, /) -> None:
        """A session that has ended is not made."""
        del context
        if self.state is SessionState.TERMINATED:
            raise ValueError("a session cannot begin terminated")

    def activate(self) -> None:
        """The agent is loaded: INITIALIZING → ACTIVE."""
        self.state = SessionState.ACTIVE

    def terminate(self) -> None:
        """The user left, or an error ended it: ACTIVE → TERMINATED."""
        self.state = SessionState.TERMINATED

    if not TYPE_CHECKING:  # as in Strict

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "state" and _NEXT_STATE.get(self.state) != value:
                raise SessionError(f"a session cannot go from {self.state.value} to {SessionState(value).value}")
            super().__setattr__(name, value)


class ChatConfig(Value):
    """How a chat is run: what the command line says.

    Attributes:
        agent_config_path: The agent's YAML file; exists and is readable.
        verbose: Show tool executions and the span tree in detail.
        enable_observability: Send telemetry over OTLP.
        max_messages: Most user and assistant messages.
    """

    agent_config_path: Path
    verbose: bool = False
    enable_observability: bool = False
    max_messages: Int = Field(default=50, gt=0)

    @field_validator("agent_config_path")
    @classmethod
    def _readable_file(cls, value: Path) -> Path:
        shown = with_whole_characters(str(value))  # of bytes that are no UTF-8, Python makes half characters
        try:
            if not value.exists():
                raise ValueError(f"Agent config not found: {shown}")
            if not value.is_file():
                raise ValueError(f"Path is not a file: {shown}")
            if not os.access(value, os.R_OK):
                raise ValueError(f"Agent config is not readable: {shown}")
        except OSError as error:  # e.g. a name that is too long to be looked for
            raise ValueError(f"Agent config cannot be looked at ({error.strerror}): {shorten(shown, 200)}") from error
        return value
