"""Sessions: state, limits, validation, many at once."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from holodeck import Session, load_agent
from holodeck.errors import AgentFileError, InputError, SessionError
from holodeck.models.chat import SessionState
from holodeck.models.events import TextDelta, TurnFinished
from support.scripts import call, conversation, scripted_agent, talk, usage
from support.telemetry import MemoryTelemetry

ENVIRON = {"PATH": "/usr/bin:/bin"}


def test_states_go_one_way(tmp_path: Path) -> None:
    """A session is INITIALIZING before it is open, ACTIVE while it is, TERMINATED after."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True})

    async def run() -> None:
        async with load_agent(path, environ=ENVIRON) as agent:
            session = Session(agent)
            assert session.state is SessionState.INITIALIZING
            with pytest.raises(SessionError, match="not open"):
                _ = session.chat
            with pytest.raises(SessionError, match="not active"):
                await session.send("early")
            await session.open()
            assert session.state is SessionState.ACTIVE
            await session.close()
            assert session.state is SessionState.TERMINATED
            with pytest.raises(SessionError, match="terminated"):
                await session.send("late")

    asyncio.run(run())


def test_an_agent_that_does_not_load_never_makes_a_session_active(tmp_path: Path) -> None:
    """A server that does not start fails the opening; the session stays INITIALIZING."""
    tool = {"name": "files", "type": "mcp", "command": "false", "timeout": 5}
    path = scripted_agent(tmp_path, {"text": "hi"}, tools=[tool])

    async def run() -> None:
        session = Session(load_agent(path, environ=ENVIRON))
        with pytest.raises(AgentFileError, match="files"):
            await session.open()
        assert session.state is SessionState.INITIALIZING
        await session.agent.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), (" \n ", "empty"), ("x" * 10_001, "10,000"), ("a\x07b", "U+0007"), (b"\xfe\xff", "UTF-8"), ("\ud83e", "UTF-8")],
)
def test_a_refused_message_does_not_end_the_session(text: str | bytes, words: str, tmp_path: Path) -> None:
    """What cannot be sent is said, makes no span, and the next message works."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        with pytest.raises(InputError, match=re.escape(words)):
            await session.send(text)
        assert memory.spans == ()
        assert (await session.send("ok")).error is None

    talk(path, body)


def test_at_the_limit_the_answer_is_given_and_the_session_ends(tmp_path: Path) -> None:
    """When max_messages is reached the finished answer is there, then the session is TERMINATED."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        assert (await session.send("one")).message is not None
        assert session.state is SessionState.ACTIVE
        assert (await session.send("two")).message is not None
        assert session.state is SessionState.TERMINATED

    talk(path, body, max_messages=4)


def test_one_turn_at_a_time(tmp_path: Path) -> None:
    """A second message while a turn runs is refused with a clear error."""
    path = scripted_agent(tmp_path, {"text": "hi", "delay": 0.2}, {"text": "x"})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        first = asyncio.create_task(session.send("one"))
        await asyncio.sleep(0.05)
        with pytest.raises(SessionError, match="running"):
            await session.send("two")
        assert (await first).error is None

    talk(path, body)


def test_closing_stops_a_running_turn(tmp_path: Path) -> None:
    """Closing a session while it waits ends its spans."""
    path = scripted_agent(tmp_path, {"text": "hi", "delay": 30})

    async def run() -> None:
        async with conversation(path) as (session, memory):
            turn = asyncio.create_task(session.send("one"))
            await asyncio.sleep(0.05)
            await session.close()
            assert (await turn).interrupted
            assert {s.name for s in memory.spans} == {"invoke_agent support", "chat script"}

    asyncio.run(run())


def test_many_sessions_share_an_agent_and_do_not_mix(tmp_path: Path) -> None:
    """Fifty sessions at once on one agent: each has its own history, place in the script, conversation id and traces."""
    replies = [{"text": "first", "usage": usage(1, 1)}, {"text": "second", "usage": usage(2, 2)}]
    path = scripted_agent(tmp_path, *replies)

    async def run() -> None:
        async with conversation(path) as (one, memory):
            sessions = [Session(one.agent) for _ in range(50)]

            async def both(session: Session) -> list[str]:
                async with session:
                    results = [await session.send("a"), await session.send("b")]
                return [r.message.content if r.message else "" for r in results]

            answers = await asyncio.gather(*map(both, sessions))
            assert answers == [["first", "second"]] * 50
            roots = [s for s in memory.spans if s.parent is None]
            assert len({s.context.trace_id for s in roots}) == 100
            assert len({s.attributes["gen_ai.conversation.id"] for s in roots}) == 50
            assert len(memory.spans) == 200

    asyncio.run(run())


def test_instructions_are_the_system_prompt(tmp_path: Path) -> None:
    """The agent's instructions open the history."""
    path = scripted_agent(tmp_path, {"text": "hi"}, instructions={"inline": "Be brief."})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        (first,) = session.chat.history.messages
        assert (first.role.value, first.content) == ("system", "Be brief.")

    talk(path, body)


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_turn_that_is_stopped_before_it_begins_ends(way: str, tmp_path: Path) -> None:
    """Cancelled before its first step, a turn is an interrupted result, and nobody waits for ever."""
    path = scripted_agent(tmp_path, {"text": "hi"})

    async def run() -> None:
        async with conversation(path) as (session, _memory):
            turn = asyncio.create_task(session.send("one"))
            await asyncio.sleep(0)
            if way == "close":
                await session.close()
            else:
                session.cancel()
            result = await asyncio.wait_for(turn, 5)
            assert result.interrupted
            assert result.error is not None

    asyncio.run(run())


def test_a_turn_that_is_stopped_at_once_says_why(tmp_path: Path) -> None:
    """Also before its first step, and never with the reason of the turn before it."""

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        await session.send("hi")
        turn = asyncio.create_task(session.send("again"))
        await asyncio.sleep(0)
        session.cancel("terminated")
        result = await asyncio.wait_for(turn, 5)
        assert result.error is not None
        assert result.error.error_type == "terminated"
        assert result.number == 2
        assert (await session.send("again")).number == 2 + (result.trace_id is not None)

    talk(scripted_agent(tmp_path, {"text": "one"}, {"text": "two"}, {"text": "three"}), body)


def test_an_agent_that_was_closed_can_be_opened_again(tmp_path: Path) -> None:
    """The second life records, runs tools that import their neighbours when they are called, and counts from the start."""
    (tmp_path / "neighbour.py").write_text("WORD = 'hello'\n", encoding="utf-8")
    late = "import sys\ndef late() -> str:\n    sys.modules.pop('neighbour', None)\n    import neighbour\n    return neighbour.WORD\n"
    (tmp_path / "late.py").write_text(late, encoding="utf-8")
    tool = {"name": "late", "type": "function", "file": "late.py", "function": "late"}
    path = scripted_agent(tmp_path, {"tool_calls": [call("late")]}, {"text": "fine"}, tools=[tool])
    lines = tmp_path / "trace.jsonl"

    async def run() -> None:
        agent = load_agent(path, environ=ENVIRON, trace_file=lines)
        for life in (1, 2, 3):
            async with agent, Session(agent) as session:
                result = await session.send("hi")
            assert result.tool_calls[0].result == "hello"
            assert lines.read_text(encoding="utf-8").count('"invoke_agent support"') == life

    asyncio.run(run())
    assert str(tmp_path) not in sys.path


def test_an_agent_that_is_opened_while_it_is_closed_works(tmp_path: Path) -> None:
    """Opening waits for what is being closed: records and tools are those of the new life."""
    tool = {"name": "late", "type": "function", "file": "late.py", "function": "late"}
    (tmp_path / "late.py").write_text("import sys\ndef late() -> bool:\n    return __name__ in sys.modules\n", encoding="utf-8")
    path = scripted_agent(tmp_path, {"tool_calls": [call("late")]}, {"text": "fine"}, tools=[tool])
    lines = tmp_path / "trace.jsonl"

    async def run() -> None:
        agent = load_agent(path, environ=ENVIRON, trace_file=lines)
        await agent.open()
        await asyncio.gather(agent.close(), agent.open())
        async with agent, Session(agent) as session:
            result = await session.send("hi")
        assert result.tool_calls[0].result == "true"
        assert lines.read_text(encoding="utf-8").count('"invoke_agent support"') == 1

    asyncio.run(run())


def test_an_agent_that_is_closed_while_it_is_opened_is_closed(tmp_path: Path) -> None:
    """Whoever opens it is told, and nothing is left open."""

    async def run() -> None:
        agent = load_agent(scripted_agent(tmp_path, {"text": "fine"}), environ=ENVIRON)
        opening = asyncio.create_task(agent.open())
        await asyncio.sleep(0)
        await agent.close()
        with pytest.raises(SessionError, match="closed while it was opened"):
            await opening
        assert not agent.is_open
        async with agent, Session(agent) as session:
            assert (await session.send("hi")).error is None

    asyncio.run(run())


def test_a_session_that_is_opened_twice_begins_once(tmp_path: Path) -> None:
    """Two who open it at the same time share one conversation."""

    async def run() -> None:
        async with load_agent(scripted_agent(tmp_path, {"text": "fine"}), environ=ENVIRON) as agent:
            await agent.close()
            session = Session(agent)

            async def open_and_look() -> object:
                await session.open()
                return session.chat.session_id

            first, second = await asyncio.gather(open_and_look(), open_and_look())
            assert first == second

    asyncio.run(run())


def test_a_session_on_a_closed_agent_says_so(tmp_path: Path) -> None:
    """Nothing is asked, and once the agent is open again the session goes on."""

    async def run() -> None:
        agent = load_agent(scripted_agent(tmp_path, {"text": "fine"}), environ=ENVIRON)
        async with agent, Session(agent) as session:
            await agent.close()
            with pytest.raises(SessionError, match="the agent is closed"):
                await session.send("hi")
            await agent.open()
            assert (await session.send("hi")).error is None

    asyncio.run(run())


def test_a_call_by_hand_may_be_longer_than_a_message(tmp_path: Path) -> None:
    """The tool gets all of it."""

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        async for event in session.call_tool("lookup", {"order_id": "x" * 20_000}):
            if isinstance(event, TurnFinished):
                result = event.result
        assert result.error is None
        assert "x" * 20_000 in (result.tool_calls[0].result or "")

    talk(scripted_agent(tmp_path, {"text": "fine"}), body)


@pytest.mark.parametrize("leave", ["break", "cancel"])
def test_a_turn_that_was_left_is_over_for_the_next_message(tmp_path: Path, leave: str) -> None:
    """Whoever leaves the loop, or stops the turn, can send at once; a turn that goes on is still an error."""
    path = scripted_agent(tmp_path, {"text": "one two three", "chunk_delay": 0.05}, {"text": "four"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        running = asyncio.create_task(session.send("hi")) if leave == "cancel" else None
        if running is None:
            async for event in session.stream("hi"):
                if isinstance(event, TextDelta):
                    break
        else:
            await asyncio.sleep(0.02)
            with pytest.raises(SessionError, match="a turn is running"):
                await session.send("too early")
            session.cancel()
        result = await session.send("again")
        assert result.message is not None
        assert result.message.content == "four"
        assert result.number == 2
        if running is not None:
            assert (await running).interrupted

    talk(path, body)
