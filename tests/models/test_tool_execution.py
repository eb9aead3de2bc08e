from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from holodeck.errors import SessionError
from holodeck.lib.validation import MAX_TOOL_CHARS
from holodeck.models.tool_execution import ToolExecution, ToolSpec, ToolStatus

CALL = ToolExecution(tool_name="lookup", parameters={"id": "1042"})
RUNNING = CALL.running()


def test_a_new_call_is_pending() -> None:
    """The defaults are those of a call that has not started."""
    call = ToolExecution(tool_name="lookup")
    assert (call.parameters, call.result, call.status, call.execution_time, call.error_message) == (
        {},
        None,
        ToolStatus.PENDING,
        None,
        None,
    )


def test_the_statuses_are_words() -> None:
    """The enum's values are what JSON and spans show."""
    assert [status.value for status in ToolStatus] == ["pending", "running", "success", "failed"]
    assert ToolExecution(tool_name="x", status="running").status is ToolStatus.RUNNING
    with pytest.raises(ValidationError, match="status"):
        ToolExecution(tool_name="x", status="done")


def test_transitions_return_new_values() -> None:
    """Running, success and failure leave the earlier value as it was."""
    running = CALL.running()
    done = running.succeeded("found", 0.5)
    failed = running.failed("no such order", 0.25)
    assert [each.status for each in (CALL, running, done, failed)] == [
        ToolStatus.PENDING,
        ToolStatus.RUNNING,
        ToolStatus.SUCCESS,
        ToolStatus.FAILED,
    ]
    assert (done.result, done.execution_time, done.error_message) == ("found", 0.5, None)
    assert (failed.result, failed.execution_time, failed.error_message) == (None, 0.25, "no such order")
    assert done.parameters == {"id": "1042"}


_STEPS = {
    "running": lambda call: call.running(),
    "success": lambda call: call.succeeded("r", 0.5),
    "failed": lambda call: call.failed("no", 0.5),
}
_MADE = {"pending": CALL, "running": RUNNING, "success": RUNNING.succeeded("r"), "failed": CALL.failed("no")}
_ALLOWED = {("pending", "running"), ("pending", "failed"), ("running", "success"), ("running", "failed")}


@pytest.mark.parametrize("after", _STEPS)
@pytest.mark.parametrize("before", _MADE)
def test_a_call_moves_forward_only(before: str, after: str) -> None:
    """PENDING → RUNNING → SUCCESS or FAILED, and PENDING → FAILED for a call that never ran; no other step, and none back."""
    call, step = _MADE[before], _STEPS[after]
    if (before, after) in _ALLOWED:
        assert step(call).status.value == after
        return
    with pytest.raises(SessionError, match=f"a tool call cannot go from {before} to {after}"):
        step(call)
    assert call.status.value == before


def test_a_result_comes_with_success_and_a_reason_with_failure() -> None:
    """A transition leaves nothing behind that belongs to another status, whatever the value was made with."""
    odd = ToolExecution(tool_name="x", result="early", error_message="early", execution_time=1)
    running = odd.running()
    assert (running.result, running.error_message, running.execution_time) == (None, None, None)
    odd_running = ToolExecution(tool_name="x", status="running", result="early", error_message="early")
    done, failed = odd_running.succeeded("r"), odd_running.failed("no")
    assert (done.result, done.error_message) == ("r", None)
    assert (failed.result, failed.error_message) == (None, "no")


def test_what_the_data_model_permits_is_permitted() -> None:
    """A value may be made in any status, with a result or a reason; only FAILED without a reason is none."""
    for status in ToolStatus:
        assert ToolExecution(tool_name="x", status=status, result="r", error_message="e").status is status


def test_a_call_has_a_name() -> None:
    """No tool is called nothing."""
    with pytest.raises(ValidationError, match="tool_name"):
        ToolExecution(tool_name="")


def test_a_call_cannot_be_changed_in_place() -> None:
    """The value is frozen and closed."""
    with pytest.raises(ValidationError, match="frozen"):
        CALL.status = ToolStatus.SUCCESS
    with pytest.raises(ValidationError, match="Extra inputs"):
        ToolExecution(tool_name="x", cost=1)


@pytest.mark.parametrize("reason", [None, "", "  ", "\x1b[2J", "\x1b]0;title\x07"])
def test_a_failure_has_a_reason_however_it_is_made(reason: str | None) -> None:
    """FAILED without a visible reason is refused by each validated way, the default included."""
    fields = {"tool_name": "x", "status": "failed", "error_message": reason}
    for make in (
        lambda: ToolExecution(**fields),
        lambda: ToolExecution.model_validate_json(json.dumps(fields)),
        lambda: ToolExecution(tool_name="x", status="failed"),
    ):
        with pytest.raises(ValidationError, match="error_message required when status=FAILED"):
            make()


@pytest.mark.parametrize("error", ["", " ", "\x1b[2J", "\x00"])
def test_a_failure_without_words_gets_some(error: str) -> None:
    """An exception without a message, or with controls only, still becomes a failed call."""
    assert CALL.failed(error).error_message == "failed without a message"


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf"), True, "fast"])
def test_the_execution_time_is_seconds_from_zero(seconds: Any) -> None:
    """Negative and absurd times are refused."""
    with pytest.raises(ValidationError, match="execution_time"):
        ToolExecution(tool_name="x", execution_time=seconds)
    assert ToolExecution(tool_name="x", execution_time=0).execution_time == 0


def test_results_and_errors_are_sanitized_on_every_way_in() -> None:
    """Escape sequences go with their payload, and the limit holds, in constructor and transitions."""
    dirty, clean = "a\x1b]52;c;c2VjcmV0\x07b\x9b31mc\u202ed\x00", "abcd"
    assert ToolExecution(tool_name="x", result=dirty).result == clean
    assert RUNNING.succeeded(dirty).result == clean
    assert CALL.failed(dirty).error_message == clean
    long = RUNNING.succeeded("x" * (MAX_TOOL_CHARS + 1)).result
    assert long is not None
    assert len(long) == MAX_TOOL_CHARS
    assert long.endswith("[cut: 50001 characters]")


def test_an_empty_result_is_a_result() -> None:
    """A tool that returned nothing is not one that has not returned."""
    assert RUNNING.succeeded("").result == ""
    assert RUNNING.succeeded(None).result is None


def test_parameters_are_sanitized_and_fit_into_json() -> None:
    """Keys and values are clean, and what JSON cannot carry is text."""
    call = ToolExecution(
        tool_name="x", parameters={"a\x1b[2J": "b\x07", "n": float("nan"), "big": 2**70, "raw": b"\xff", "in": [{"deep": "\u202ex"}]}
    )
    assert call.parameters == {"a": "b", "n": "nan", "big": str(2**70), "raw": "\ufffd", "in": [{"deep": "x"}]}
    json.dumps(call.parameters, allow_nan=False)


def test_sanitizing_again_changes_nothing() -> None:
    """A call that goes through its transitions keeps its parameters to the letter, also at the limit."""
    call = ToolExecution(tool_name="x", parameters={"text": "x" * 100_000, "more": [1, 2.5, None, "y"]})
    assert call.running().succeeded("r").parameters == call.parameters


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    """The default schema is that of no arguments."""
    assert ToolSpec(name="x").parameters == {"type": "object", "properties": {}}
