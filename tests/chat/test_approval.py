"""Tools that need approval."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from holodeck import Session, load_agent
from holodeck.models.tool_execution import ToolExecution, ToolStatus
from holodeck.recording import record, replay
from holodeck.tools.mcp_content import offered_name
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
        why = "denied: it needs approval, and there is nobody to ask"
        result = await session.send("hi")
        assert result.error is None
        (execution,) = result.tool_calls
        assert (execution.status, execution.error_message, execution.execution_time) == (ToolStatus.FAILED, why, None)
        assert str(session.chat.history.messages[2].items[0].result) == f"Error: {why}"
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


_SERVER = Path(__file__).parents[1] / "tools" / "mcp_example_server.py"


def _server(name: str, approval: str) -> dict[str, Any]:
    return {"name": name, "type": "mcp", "command": sys.executable, "args": [str(_SERVER), "stdio"], "approval": approval}


def test_which_tools_need_it(tmp_path: Path) -> None:
    """A tool by its name and every tool of a server by the server's, also where its name is cut; the name of another proves nothing."""
    long = "s" * 58
    servers = [_server("a", "ask"), _server("a-b", "auto"), _server(long, "ask")]
    path = scripted_agent(tmp_path, {"text": "x"}, tools=[_TOOL, *servers])

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        agent = session.agent
        asks = {spec.name for spec in agent.toolbox.specs if agent.needs_approval(spec.name)}
        offered = {offered_name(name, "ok", ()) for name in ("a", "a-b", long)}
        assert offered < {spec.name for spec in agent.toolbox.specs}
        assert offered & asks == {"a-ok", offered_name(long, "ok", ())}
        assert "careful" in asks
        assert not asks & {"lookup", "a-b-ok", "a", "careful-x"}

    talk(path, body)


@pytest.mark.parametrize("name", ["files", "s" * 58])
def test_it_is_asked_for_in_a_replay_too(tmp_path: Path, name: str) -> None:
    """With the recording's results instead of a server, the same tools need it."""
    tool = offered_name(name, "ok", ())
    path = scripted_agent(tmp_path, {"tool_calls": [call(tool, text="x")]}, {"text": "done"}, tools=[_server(name, "ask")])
    asked = []

    async def approve(execution: ToolExecution) -> bool:
        asked.append(execution.tool_name)
        return True

    async def run(*, again: bool) -> None:
        agent = load_agent(path, environ={"PATH": "/usr/bin:/bin"}, model=f"scripted/{tmp_path}/recording.yaml" if again else None)
        recorder = None if again else record(agent, tmp_path / "recording.yaml")
        if again:
            replay(agent, tools=True)
        async with agent, Session(agent, approve=approve) as session:
            result = await session.send("hi")
            assert result.tool_calls[0].result == "x"
        if recorder is not None:
            recorder.save()

    asyncio.run(run(again=False))
    asyncio.run(run(again=True))
    assert asked == [tool, tool]


async def _raises(_: ToolExecution) -> bool:
    raise OSError("the canary")


async def _hums(_: ToolExecution) -> Any:
    return "no"


def _plain(_: ToolExecution) -> bool:
    return True


@pytest.mark.parametrize(("approve", "why"), [(_raises, "OSError"), (_hums, "denied by the user"), (_plain, "TypeError")])
def test_a_question_that_fails_is_a_no(tmp_path: Path, approve: Any, why: str) -> None:
    """Whatever goes wrong while a person is asked: the tool is not run, the model is told, and its siblings and the turn go on."""

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        session.approve = approve
        result = await session.send("hi")
        assert result.error is None
        assert [c.status.value for c in result.tool_calls] == ["success", "failed"]
        assert why in (result.tool_calls[1].error_message or "")
        assert ("denied", "denied", "ERROR") in _tool_spans(memory)
        assert "canary" not in str([s.to_json() for s in memory.spans])

    talk(_agent(tmp_path, "lookup", "careful"), body)
