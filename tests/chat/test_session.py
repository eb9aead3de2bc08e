"""Sessions: state, limits, validation, many at once."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from holodeck import Session, load_agent
from holodeck.errors import AgentFileError, InputError, SessionError
from holodeck.models.chat import SessionState
from holodeck.tools.mcp_content import offered_name
from support.scripts import conversation, scripted_agent, talk, usage
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


def test_a_server_with_a_long_name_asks_too(tmp_path: Path) -> None:
    """approval: ask holds for the tools of an MCP server whose offered names are cut."""
    name = "s" * 58
    tool = {"name": name, "type": "mcp", "command": "true", "approval": "ask"}
    agent = load_agent(scripted_agent(tmp_path, {"text": "hi"}, tools=[tool]), environ=ENVIRON)
    assert agent.needs_approval(offered_name(name, "delete_all", ()))
    assert agent.needs_approval(offered_name(name, "rm", ()))
    assert not agent.needs_approval("lookup")
