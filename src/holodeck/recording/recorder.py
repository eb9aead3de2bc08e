"""Takes down what models answer and tools return, and writes it as a script."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holodeck.backends import Backend
from holodeck.backends.expectation import ModelRequest
from holodeck.errors import BackendError, SettingError, ToolError
from holodeck.lib.redaction import Redactor
from holodeck.lib.whole_file import write_whole
from holodeck.lib.yaml_writer import write_yaml
from holodeck.models.agent import PromptTool
from holodeck.models.exchange import ModelReply
from holodeck.models.tool_execution import ToolSpec
from holodeck.recording.taps import RecordingBackend, RecordingToolbox

if TYPE_CHECKING:
    from holodeck.chat import Agent
    from holodeck.models.exchange import ModelEndpoint

__all__ = ["Recorder", "record"]

_HEAD: Final = "# A recording: a script for the provider 'scripted'. It holds what was said, and what tools returned.\n"


def record(agent: Agent, path: str | Path, *, redact: bool = False) -> Recorder:
    """Record what ``agent`` asks its models and tools from now on; call before it is opened, and :meth:`Recorder.save` at the end.

    Args:
        agent: Not yet open; one session of it is recorded.
        path: The script that is written.
        redact: Hide secrets, by the built-in patterns and the agent's own.

    Raises:
        SettingError: ``path`` cannot be written.
    """
    recorder = Recorder(agent, Path(path), redact=redact)
    agent.intercept(lambda backend: RecordingBackend(backend, recorder), lambda tools: RecordingToolbox(tools, recorder))
    return recorder


class Recorder:
    """One recording; made by :func:`record`.

    Attributes:
        path: Where it is written to.
        replies: What was recorded so far, as the ``replies`` of a script.
    """

    def __init__(self, agent: Agent, path: Path, *, redact: bool) -> None:
        self.path, self.replies = path, list[dict[str, Any]]()
        self._agent, self._patterns = agent, list(agent.settings.redaction_patterns)
        self._redactor = Redactor(self._patterns) if redact else None
        self._models: dict[Backend, ModelEndpoint | None] = {}
        self._tools: dict[str, ToolSpec] = {}
        self._instructions: str | None = None
        _check_writable(path)

    def joined(self, backend: Backend) -> None:
        """``backend`` is recorded; the first one is the agent's own."""
        self._models[backend] = None

    def answered(self, backend: Backend, request: ModelRequest, reply: ModelReply, pieces: int) -> None:
        """A request got its reply, whose text came in ``pieces``."""
        self._keep(backend, request, self._reply(reply, pieces))

    def failed(self, backend: Backend, request: ModelRequest, reply: ModelReply, pieces: int, error: BackendError) -> None:
        """A request failed after ``pieces`` of text."""
        received = self._reply(reply, pieces) if pieces else {}
        after = {"after": pieces} if pieces else {}
        received.pop("tool_calls", None)
        self._keep(backend, request, received | {"fault": {"error_type": error.error_type, "message": self._hide(error.message), **after}})

    def called(self, name: str, arguments: Any, result: str | ToolError) -> None:
        """A tool that a recorded reply asked for has ended."""
        wanted = self._arguments(arguments)
        calls = (call for reply in self.replies for call in reply.get("tool_calls", ()))
        for call in calls:
            same = call["name"] == name and {k: call[k] for k in ("arguments", "raw") if k in call} == wanted
            if same and "result" not in call and "error" not in call:
                call.update(self._outcome(result))
                return

    def save(self) -> bool:
        """Write the recording; False if there is none, and a file that was there before is left as it is.

        Raises:
            SettingError: The file cannot be written.
        """
        if not self.replies:
            return False
        text = _HEAD + write_yaml({"recorded": self._recorded(), "replies": self.replies})
        try:
            write_whole(self.path, text, private=True)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        return True

    def _keep(self, backend: Backend, request: ModelRequest, reply: dict[str, Any]) -> None:
        self._models[backend] = backend.endpoint
        self._tools.update({tool.name: tool for tool in request.tools})
        if request.instructions is not None:
            self._instructions = self._hide(request.instructions)
        if self._is_aside(request):
            self.replies.append({"when": {"message": self._hide(request.user)}, **reply})
            return
        messages = [{**message, "text": self._hide(message["text"])} for message in request.messages]
        self.replies.append({"expect": {"messages": messages, "tools": [tool.name for tool in request.tools]}, **reply})

    def _is_aside(self, request: ModelRequest) -> bool:
        """Whether a prompt tool asks: its requests may run side by side, so they are told apart by what they say."""
        return not request.tools and any(isinstance(tool, PromptTool) for tool in self._agent.config.tools)

    def _reply(self, reply: ModelReply, pieces: int) -> dict[str, Any]:
        calls = [{"name": c.name, **self._arguments(c.arguments), "id": c.id} for c in reply.tool_calls]
        usage = reply.usage.model_dump(exclude={"total_tokens"}, exclude_none=True) if reply.usage else "none"
        known = reply.finish_reason in ("stop", "length", "tool_calls", "content_filter")
        data = {
            "id": reply.response_id,
            "model": reply.response_model,
            "text": self._hide(reply.text) or None,
            "chunks": pieces or None,
            "tool_calls": calls or None,
            "finish_reason": reply.finish_reason if known else None,
            "usage": usage,
        }
        return {key: value for key, value in data.items() if value is not None}

    def _outcome(self, result: str | ToolError) -> dict[str, Any]:
        if isinstance(result, ToolError):
            return {"error": self._hide(result.message), "error_type": result.error_type}
        return {"result": self._hide(result)}

    def _arguments(self, arguments: Any) -> dict[str, Any]:
        try:
            value = json.loads(arguments) if isinstance(arguments, str) else dict(arguments or {})
        except ValueError:
            value = None
        if not isinstance(value, dict):
            return {"raw": self._hide(str(arguments))}
        return {"arguments": self._hidden(value)}

    def _recorded(self) -> dict[str, Any]:
        first, *others = (_endpoint(asked or backend.endpoint) for backend, asked in self._models.items())
        redaction = {"redacted": True, "redaction_patterns": self._patterns} if self._redactor else {}
        tools = [self._hidden(tool.model_dump()) for tool in self._tools.values()]
        instructions = {"instructions": self._instructions} if self._instructions is not None else {}
        other_models = {"other_models": others} if others else {}
        return {"agent": self._agent.config.name, "model": first, **other_models, **redaction, **instructions, "tools": tools}

    def _hide(self, text: str) -> str:
        return self._redactor(text) if self._redactor else text

    def _hidden(self, value: Any) -> Any:
        """A structure whose texts are redacted, values under names of secrets whole."""
        return self._redactor.structure(value) if self._redactor else value


def _endpoint(model: ModelEndpoint) -> dict[str, Any]:
    return model.model_dump(include={"provider", "address", "port"}, exclude_none=True) | {"name": model.model}


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise SettingError(f"--record {path}: this is a directory: name a file")
    if path.exists() and not path.is_file():  # a device: the recording would take its place
        raise SettingError(f"--record {path}: this is no regular file: name a new file, or a recording to be replaced")
    if path.exists() and path.stat().st_size and not _is_recording(path):
        raise SettingError(f"--record {path}: this file holds something else: name a new file, or a recording to be replaced")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise SettingError(f"--record {path}: cannot be written: name a file in a directory you may write to")


def _is_recording(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"\nrecorded:" in b"\n" + file.read(4096)
    except OSError:
        return False


def _unwritable(path: Path, error: OSError) -> SettingError:
    return SettingError(f"--record {path}: cannot be written ({error.strerror}): the recording is lost")
