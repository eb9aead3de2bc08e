"""A session's second tries: the last message again, a new conversation, a tool by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holodeck import Session
from holodeck.errors import SessionError
from holodeck.models.chat import SessionState
from holodeck.models.events import ToolFinished, ToolStarted, TurnFinished, TurnResult
from support.scripts import scripted_agent, talk
from support.telemetry import MemoryTelemetry


async def _result(events: object) -> TurnResult:
    seen = [event async for event in events]  # type: ignore[attr-defined]
    assert isinstance(seen[-1], TurnFinished)
    return seen[-1].result


def _said(session: Session) -> list[str]:
    return [str(m.content) for m in session.chat.history.messages]


def test_the_last_message_again(tmp_path: Path) -> None:
    """The answer is replaced: history and message count are as if it had been asked once; the turn is a new one."""
    path = scripted_agent(tmp_path, *({"text": f"answer {n}"} for n in range(1, 5)))

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        with pytest.raises(SessionError, match="no message yet"):
            await _result(session.retry())
        await session.send("one")
        await session.send("two")
        result = await _result(session.retry())
        assert (result.number, session.chat.message_count) == (3, 4)
        assert _said(session) == ["one", "answer 1", "two", "answer 3"]
        await _result(session.retry())
        assert _said(session) == ["one", "answer 1", "two", "answer 4"]

    talk(path, body)


def test_a_failed_message_again(tmp_path: Path) -> None:
    """What failed left nothing behind, and is sent as it was."""
    path = scripted_agent(tmp_path, {"fault": {"status": 500}}, {"text": "better"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        assert (await session.send("one")).error
        assert (await _result(session.retry())).error is None
        assert _said(session) == ["one", "better"]

    talk(path, body)


def test_a_new_conversation(tmp_path: Path) -> None:
    """Another id, turn 1, linked to nothing, and only the instructions in the history."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True}, instructions={"inline": "Be brief."})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        await session.send("one")
        first = session.chat
        session.reset()
        assert first.state is SessionState.TERMINATED
        assert session.state is SessionState.ACTIVE
        assert session.chat.session_id != first.session_id
        assert (session.chat.message_count, _said(session)) == (0, ["Be brief."])
        with pytest.raises(SessionError, match="no message yet"):
            await _result(session.retry())
        await session.send("two")
        roots = [s for s in memory.spans if s.parent is None]
        assert [r.attributes["holodeck.turn.number"] for r in roots] == [1, 1]
        assert len({r.attributes["gen_ai.conversation.id"] for r in roots}) == 2
        assert roots[1].links == ()

    talk(path, body)


def test_a_tool_by_hand(tmp_path: Path) -> None:
    """A turn of its own without a model: its span stands below an agent's, the history stays as it is."""
    path = scripted_agent(tmp_path, {"text": "hi"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        events = [e async for e in session.call_tool("lookup", {"order_id": "7"})]
        assert [type(e) for e in events] == [ToolStarted, ToolFinished, TurnFinished]
        result = events[-1].result  # type: ignore[union-attr]
        assert (result.number, result.model_requests, result.message, result.error) == (1, 0, None, None)
        assert '"order_id":"7"' in (result.tool_calls[0].result or "")
        assert (session.chat.message_count, _said(session)) == (0, [])
        tool, root = memory.spans
        assert (tool.name, root.name, root.parent) == ("execute_tool lookup", "invoke_agent support", None)
        assert tool.parent.span_id == root.context.span_id
        await session.send("now")
        assert memory.spans[-1].attributes["holodeck.turn.number"] == 2
        assert memory.spans[-1].links[0].context.span_id == root.context.span_id

    talk(path, body)


def test_a_tool_by_hand_that_fails_or_is_stopped(tmp_path: Path) -> None:
    """Its execution says why; a stopped one is an interrupted turn."""
    path = scripted_agent(tmp_path, {"text": "hi"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        failed = await _result(session.call_tool("fails", {}))
        assert "canary" in (failed.tool_calls[0].error_message or "")
        assert (await _result(session.call_tool("nope", {}))).tool_calls[0].error_message
        stopped = asyncio.create_task(_result(session.call_tool("nap", {"seconds": 60})))
        await asyncio.sleep(0.1)
        with pytest.raises(SessionError, match="running"):
            session.reset()
        session.cancel()
        assert (await stopped).interrupted
        assert [s.attributes["error.type"] for s in memory.spans if s.name == "execute_tool nap"] == ["cancelled"]
        assert (await session.send("go on")).error is None

    talk(path, body)
