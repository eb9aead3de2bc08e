"""The one exception tree of HoloDeck.

::

    HoloDeckError
    ├── ConfigError            something the user wrote down is wrong (exit 2)
    │   ├── AgentFileError     … in an agent file: names file, line and key
    │   └── SettingError       … in a flag or an environment variable
    ├── InputError             a message that the user typed cannot be sent
    ├── CommandError           a slash command that the user typed cannot be done
    ├── BackendError           the model provider, or the way to it, failed
    ├── ToolError              a tool call failed
    │   ├── ToolRefused        the model asked for something that is not configured or not valid
    │   ├── ToolTimeout        the tool did not answer in its time
    │   └── ToolDenied         the user did not allow the call
    ├── SessionError           a session was used in a state that does not allow it
    └── TraceReadError         a file of traces is not OTLP/JSON

A message says what happened, where, and what to do. Exit codes are chosen in ``holodeck.cli`` alone.
Telemetry reads ``error_type`` (low cardinality) and ``summary`` (a fixed sentence without user data), never the message.
"""

from __future__ import annotations

__all__ = [
    "SIGNALLED",
    "AgentFileError",
    "BackendError",
    "CommandError",
    "ConfigError",
    "HoloDeckError",
    "InputError",
    "Interrupted",
    "SessionError",
    "SettingError",
    "Terminated",
    "ToolDenied",
    "ToolError",
    "ToolRefused",
    "ToolTimeout",
    "TraceReadError",
]


class HoloDeckError(Exception):
    """Base of every error that HoloDeck raises on purpose.

    Attributes:
        message: What happened and what to do, for a person. May contain user data.
        error_type: The value of the ``error.type`` attribute.
        summary: A fixed sentence for span status; never contains user data.
    """

    error_type = "holodeck_error"
    summary = "the operation failed"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(HoloDeckError):
    """The configuration cannot be used as it stands."""

    error_type = "config"
    summary = "the configuration is not usable"


class AgentFileError(ConfigError):
    """An agent file (or a file that it names) is wrong.

    Attributes:
        file: The path as the user gave it.
        line: 1-based line, or None where no line applies.
        key: Dotted key such as ``tools[0].name``, or "".
    """

    def __init__(self, message: str, *, file: str, line: int | None = None, key: str = "") -> None:
        self.file, self.line, self.key = file, line, key
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")


class SettingError(ConfigError):
    """A command-line flag or an environment variable has a value that means nothing."""


class InputError(HoloDeckError):
    """A message cannot be sent: empty, too long, control characters, not text."""

    error_type = "invalid_input"
    summary = "the message was refused"


class CommandError(HoloDeckError):
    """A slash command cannot be done: there is none of this name, or what follows it means nothing, or it failed."""

    error_type = "invalid_command"
    summary = "the command was refused"


class BackendError(HoloDeckError):
    """A model request failed.

    Args:
        message: One line for the user: what happened and what to do.
        error_type: Low-cardinality reason, e.g. ``timeout``, ``rate_limit`` or ``500``.
        summary: A fixed sentence for telemetry.
    """

    def __init__(self, message: str, *, error_type: str, summary: str) -> None:
        super().__init__(message)
        self.error_type, self.summary = error_type, summary


class ToolError(HoloDeckError):
    """A tool call failed. ``error_type`` is the exception's class name, or ``tool_error``."""

    error_type = "tool_error"
    summary = "the tool failed"

    def __init__(self, message: str, *, error_type: str | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type or type(self).error_type


class ToolRefused(ToolError):
    """The model asked for an unknown tool, or sent arguments that do not fit; nothing was run."""

    error_type = "invalid_tool_call"
    summary = "the tool call was refused"


class ToolTimeout(ToolError):
    """The tool did not answer within its timeout."""

    error_type = "timeout"
    summary = "the tool did not answer in time"


class ToolDenied(ToolError):
    """The user did not allow the call; nothing was run."""

    error_type = "denied"
    summary = "the user did not allow the tool call"


class SessionError(HoloDeckError):
    """A session, or a tool execution in it, was asked for something that its state does not allow."""

    error_type = "session_state"
    summary = "the session does not allow this"


class TraceReadError(HoloDeckError):
    """Something that was read as OTLP/JSON is not.

    Attributes:
        line: 1-based line of the input, or None where the caller handed in a single request.
    """

    error_type = "trace_format"
    summary = "the traces could not be read"

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class Terminated(SystemExit):
    """SIGTERM or SIGHUP ends the process, wherever it was."""


class Interrupted(KeyboardInterrupt):
    """SIGINT ends the command, wherever it was."""


SIGNALLED = (Terminated, Interrupted)
"""What no code keeps that otherwise contains the faults of tools and of their files."""
