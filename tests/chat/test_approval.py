"""Tools that need approval."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holodeck import Session
from holodeck.models.tool_execution import ToolExecution, ToolStatus
from support.scripts import call, scripted_agent, talk
from support.telemetry import MemoryTelemetry

_TOOL = {"name": "careful", "type": "function", "file": "tools.py", "function": "lookup", "approval": "ask"}


def _agent(directory: Path, *names: str) -> Path:
    calls = [call(name, f"call_{n}", order_id=str(n)) for n, name in enumerate(names, 1)]
    return scripted_agent(directory, {"tool_calls": calls}, {"text": "done"}, tools=[_TOOL])


def _tool_spans(memory: MemoryTelemetry) -> list[tuple[str, str | None, str]]:
    return [
        (s.attributes["holodeck.tool.status"], s.attributes.get("error.type"), s.status.status_code.name)
        for s in memory.spans
        if s.name.startswith("execute_tool")
    ]


def test_without_anybody_to_ask_it_is_denied(tmp_path: Path) -> None:
    """The tool is not run, the model is told, the span says so, and the turn goes on."""

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.error is None
        (execution,) = result.tool_calls
        assert (execution.status, execution.error_message, execution.execution_time) == (ToolStatus.FAILED, "denied by the user", None)
        assert str(session.chat.history.messages[2].items[0].result) == "Error: denied by the user"
        assert _tool_spans(memory) == [("denied", "denied", "ERROR")]

    talk(_agent(tmp_path, "careful"), body)


def test_one_is_allowed_and_one_is_not(tmp_path: Path) -> None:
    """Each call is asked about on its own, with what it is called with; others are not."""
    asked = []

    async def approve(execution: ToolExecution) -> bool:
        asked.append(execution.parameters["order_id"])
        return execution.parameters["order_id"] == "3"

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        session.approve = approve
        result = await session.send("hi")
        assert [c.status.value for c in result.tool_calls] == ["success", "failed", "success"]
        assert asked == ["2", "3"]
        assert sorted(_tool_spans(memory), key=str) == [("denied", "denied", "ERROR"), *[("success", None, "UNSET")] * 2]

    talk(_agent(tmp_path, "lookup", "careful", "careful"), body)


def test_the_question_is_no_part_of_the_tools_duration(tmp_path: Path) -> None:
    """The span begins when the tool does."""

    async def approve(execution: ToolExecution) -> bool:
        await asyncio.sleep(0.2)
        return True

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        session.approve = approve
        result = await session.send("hi")
        assert (result.tool_calls[0].execution_time or 1) < 0.1

    talk(_agent(tmp_path, "careful"), body)


def test_a_turn_that_is_stopped_at_the_question(tmp_path: Path) -> None:
    """Nothing is run, and nothing is left in the history."""
    asked = asyncio.Event()

    async def approve(execution: ToolExecution) -> bool:
        asked.set()
        await asyncio.sleep(60)
        return True

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        session.approve = approve
        turn = asyncio.create_task(session.send("hi"))
        await asked.wait()
        session.cancel()
        result = await turn
        assert result.interrupted
        assert result.tool_calls[0].error_message == "stopped by the user"
        assert _tool_spans(memory) == []
        assert len(session.chat.history.messages) == 0

    talk(_agent(tmp_path, "careful"), body)


@pytest.mark.parametrize(
    ("tool", "asks"), [("careful", True), ("lookup", False), ("files-read", True), ("files", False), ("careful-x", False)]
)
def test_which_tools_need_it(tmp_path: Path, tool: str, asks: bool) -> None:
    """A tool by its name, every tool of a server by the server's."""
    server = {"name": "files", "type": "mcp", "command": "true", "approval": "ask"}
    from holodeck import load_agent

    agent = load_agent(scripted_agent(tmp_path, {"text": "x"}, tools=[_TOOL, server]), environ={"PATH": "/usr/bin:/bin"})
    assert agent.needs_approval(tool) is asks
