"""What is shown of a turn as JSON."""

from __future__ import annotations

import io
import json
from uuid import UUID

from holodeck.cli.console import Notes, Streams
from holodeck.cli.views import JsonView
from holodeck.errors import InputError
from holodeck.models.chat import Message, MessageRole
from holodeck.models.events import TextDelta, TurnError, TurnResult
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution

_SESSION = UUID("12345678-1234-4234-8234-123456789abc")
_KEYS = {
    *("session_id", "turn", "message", "trace_id", "duration", "time_to_first_token", "model_requests", "finish_reason"),
    *("tool_calls", "error", "interrupted", "cost_usd"),
}


def _view() -> tuple[JsonView, io.StringIO, io.StringIO]:
    answers, notes = io.StringIO(), io.StringIO()
    return JsonView(Streams(answers, Notes(notes), shared=False, interactive=False), verbose=False), answers, notes


def test_a_turn_is_one_object():
    """The message with its tool calls and its tokens, and everything that was measured."""
    view, answers, notes = _view()
    call = ToolExecution(tool_name="t", parameters={"a": 1}).running().succeeded("r", 0.5)
    message = Message(role=MessageRole.ASSISTANT, content="Hi", tool_calls=[call], tokens_used=TokenUsage.of(3, 4))
    view.show(TextDelta("Hi"))
    view.finish(TurnResult(number=2, message=message, tool_calls=[call], trace_id="ab", duration=1.5, model_requests=2), _SESSION)
    data = json.loads(answers.getvalue())
    assert set(data) == _KEYS
    assert (data["session_id"], data["turn"], data["trace_id"], data["duration"]) == (str(_SESSION), 2, "ab", 1.5)
    assert set(data["message"]) == {"role", "content", "timestamp", "tool_calls", "tokens_used"}
    assert data["message"]["tokens_used"]["total_tokens"] == 7
    assert data["tool_calls"][0]["status"] == "success"
    assert notes.getvalue() == ""


def test_a_failure_has_a_reason():
    """The object says it, and so does stderr."""
    view, answers, notes = _view()
    view.finish(TurnResult(number=1, error=TurnError(error_type="timeout", message="no answer")), _SESSION)
    data = json.loads(answers.getvalue())
    assert data["message"] is None
    assert data["error"] == {"error_type": "timeout", "message": "no answer"}
    assert notes.getvalue() == "error: no answer\n"


def test_a_refused_message_is_an_object_without_a_turn():
    """It has the same keys, so a reader needs no other case."""
    view, answers, _ = _view()
    view.refuse(InputError("too long"), _SESSION)
    data = json.loads(answers.getvalue())
    assert set(data) == _KEYS
    assert data["turn"] is None
    assert data["error"] == {"error_type": "invalid_input", "message": "too long"}


def test_objects_are_harmless_and_whole():
    """Only printable ASCII is written, and what a reader gets is the text that was said."""
    view, answers, _ = _view()
    said = "grün 😀 \x7f\x9b2J\u202e \x1b]0;x\x07"
    view.finish(TurnResult(number=1, message=Message(role=MessageRole.ASSISTANT, content=said)), _SESSION)
    line = answers.getvalue()
    assert line.isascii()
    assert line.rstrip("\n").isprintable()
    assert json.loads(line)["message"]["content"] == said
