"""What every kind of tool has in common: how it is called, and where it stands in the agent file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from holodeck.errors import AgentFileError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from holodeck.models.llm import LLMConfig
    from holodeck.models.tool_execution import ToolSpec

__all__ = ["CallContext", "Place", "Tool", "read_text"]


@dataclass(frozen=True)
class CallContext:
    """What a tool call may use of the turn that it belongs to.

    Attributes:
        ask: Sends a text to a model and returns its answer; None as the model means the agent's own. Prompt tools use it.
        traceparent: W3C ``traceparent`` of the tool's span; MCP servers get it in the request's ``_meta``.
        conversation: Id of the conversation.
    """

    ask: Callable[[str, LLMConfig | None], Awaitable[str]]
    traceparent: str | None = None
    conversation: str = ""


class Tool(Protocol):
    """One thing that a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to the model."""

    async def call(self, arguments: dict[str, Any], context: CallContext) -> str:
        """The tool's answer to ``arguments``, which are a JSON object but not yet checked.

        Raises:
            ToolRefused: The arguments do not fit; nothing was run.
            ToolTimeout: No answer within the tool's timeout.
            ToolError: The tool failed.
        """


@dataclass(frozen=True)
class Place:
    """Where a tool stands in its agent file.

    Attributes:
        file: The agent file as the user named it.
        key: Dotted key, e.g. ``tools[0]``.
        line_of: Finds the line of a dotted key; None where nobody knows the lines.
    """

    file: str
    key: str
    line_of: Callable[[str], int] | None = None

    def at(self, part: str) -> Place:
        """The place of ``part`` inside this one."""
        return replace(self, key=f"{self.key}.{part}")

    def error(self, message: str) -> AgentFileError:
        """The error that says what is wrong here."""
        return AgentFileError(message, file=self.file, line=self.line_of(self.key) if self.line_of else None, key=self.key)


def read_text(file: Path, directory: Path, place: Place) -> str:
    """The UTF-8 text of a file that the agent file names.

    Args:
        file: As written, relative to ``directory``.
        directory: The agent's directory.
        place: The key that names it.

    Raises:
        AgentFileError: It does not exist, cannot be read, or is not UTF-8.
    """
    try:
        return (directory / file).read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise place.error(f"{file} is not UTF-8 text: save it as UTF-8") from exc
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise place.error(f"cannot read {file}: {reason} (looked in {directory})") from exc
