"""A turn as a value to assert on: what it holds, and what its failed checks say. The plugin's own fixtures are used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from holodeck.errors import ConfigError, HoloDeckError, InputError, SessionError
from holodeck.models.tool_execution import ToolStatus
from holodeck.testing import Trace
from support.scripts import call, scripted_agent, usage

LOOK_UP = {"text": "Let me look.", "tool_calls": [call("lookup", order_id="1042")], "usage": usage(100, 10)}
SHIPPED = {"text": "It shipped.", "usage": usage(150, 5)}
FAILING = {"tool_calls": [call("fails", "a"), call("lookup", "b", order_id="7")], "usage": usage(1, 1)}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent with tools; its own script greets."""
    return scripted_agent(tmp_path, {"text": "Hello.", "repeat": True})


@pytest.fixture
def trace(chat: Any, agent: Path) -> Trace:
    """A turn with a tool."""
    return chat(agent, script=[LOOK_UP, SHIPPED]).send("Where is order 1042?")


def test_a_trace_holds_the_turn(trace: Trace) -> None:
    """Answer, tools, tokens, duration and spans, each in the models' own types."""
    assert trace.text == "Let me look.\n\nIt shipped."
    assert trace.message is not None
    assert trace.message.content == trace.text
    assert [(t.tool_name, t.parameters, t.status) for t in trace.tools] == [("lookup", {"order_id": "1042"}, ToolStatus.SUCCESS)]
    assert trace.usage is not None
    assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (250, 15)
    assert 0 < trace.duration < 10
    assert (trace.error, trace.errors, trace.cost) == (None, [], None)
    assert [span.operation for span in trace.spans()] == ["invoke_agent", "chat", "execute_tool", "chat"]


def test_the_tree_is_a_literal(trace: Trace) -> None:
    """Names alone; with the attributes that are asked for; or everything that does not measure time."""
    bare = {"name": "invoke_agent support", "children": [{"name": "chat script"}, {"name": "execute_tool lookup"}, {"name": "chat script"}]}
    assert trace.tree() == bare
    first, tool, _ = trace.tree("gen_ai.usage.input_tokens")["children"]
    assert first == {"name": "chat script", "attributes": {"gen_ai.usage.input_tokens": 100}}
    assert tool == {"name": "execute_tool lookup"}
    full = trace.tree(full=True)["children"][1]
    assert (full["kind"], full["status"], full["attributes"]["holodeck.tool.status"]) == ("internal", "unset", "success")
    assert "holodeck.tool.execution_time" not in full["attributes"]
    json.dumps(trace.tree(full=True))


def test_spans_are_found_by_operation_and_name(trace: Trace) -> None:
    """In the order of their starts; a star stands for anything."""
    assert [span.name for span in trace.spans(operation="chat")] == ["chat script", "chat script"]
    assert [span.name for span in trace.spans(name="*lookup")] == ["execute_tool lookup"]
    assert trace.spans(operation="chat", name="*lookup") == []
    assert trace.span("execute_tool *").attributes["gen_ai.tool.name"] == "lookup"


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda t: t.span("execute_tool lookups"), ["0 spans are named 'execute_tool lookups'; did you mean 'execute_tool lookup'?"]),
        (lambda t: t.span("chat *"), ["2 spans are named 'chat *'"]),
        (
            lambda t: t.tool("lookup", order_id="1043"),
            ['lookup(order_id="1043") was not called; the nearest call is lookup(order_id="1042")'],
        ),
        (lambda t: t.tool("where"), ["where() was not called; the nearest call is"]),
        (
            lambda t: t.expect(tokens=100, answer="lost", never=["look*"]),
            [
                'never: look* was called: lookup(order_id="1042")',
                "answer.contains: 'lost' is not in it; the answer is 'Let me look.\\n\\nIt shipped.'",
                "tokens: expected at most 100, got 265",
            ],
        ),
    ],
)
def test_a_check_that_fails_says_what_comes_nearest(check: Any, words: list[str], trace: Trace) -> None:
    """Each in one sentence; the plugin shows the waterfall below."""
    with pytest.raises(AssertionError) as failure:
        check(trace)
    assert [line for line in words if line not in str(failure.value)] == []
    assert "█" not in str(failure.value)


def test_without_the_plugin_the_message_holds_the_waterfall(trace: Trace) -> None:
    """Another test runner shows nothing but the message."""
    alone = Trace(trace.prompt, trace.result, trace.spans())
    with pytest.raises(AssertionError, match=r"(?s)requests: expected exactly 1, got 2\n\ninvoke_agent support ·.*└─ chat script"):
        alone.expect(requests=1)


def test_expectations_that_mean_nothing_are_refused(trace: Trace) -> None:
    """A wrong word is an error of the test, and never a check that passes."""
    with pytest.raises(ValueError, match="toolz: unknown key; did you mean 'tools'"):
        trace.expect(toolz=["lookup"])
    with pytest.raises(ValueError, match=r"tokens.*must be a number"):
        trace.expect(tokens={"max": "many"})
    with pytest.raises(ValueError, match=r"answer\.pattern: not a pattern of RE2"):
        trace.expect(answer={"pattern": "("})


def test_two_calls_of_the_same_kind_are_not_one(chat: Any, agent: Path) -> None:
    """``tool`` is for the one call; two of them are said to be two."""
    twice = {"tool_calls": [call("lookup", "a", order_id="1"), call("lookup", "b", order_id="1")]}
    trace = chat(agent, script=[twice, "Done."]).send("hi")
    with pytest.raises(AssertionError, match=r'lookup\(order_id="1"\) was called 2 times'):
        trace.tool("lookup", order_id="1")


def test_arguments_are_compared_as_json_is(chat: Any, agent: Path) -> None:
    """``true`` is not 1, as in case files."""
    trace = chat(agent, script=[{"tool_calls": [call("fails", "a", settings="x"), call("where", "b", deep=True)]}, "Done."]).send("hi")
    assert trace.tool("where", deep=True).parameters == {"deep": True}
    with pytest.raises(AssertionError, match=r"where\(deep=1\) was not called; the nearest call is where\(deep=true\)"):
        trace.tool("where", deep=1)


def test_failures_are_told_apart(chat: Any, agent: Path) -> None:
    """A failed tool leaves the turn well; a failed model is the turn's error."""
    conversation = chat(agent, script=[FAILING, "Sorry.", {"fault": {"status": 429}}])
    first, second = conversation.send("hi"), conversation.send("again")
    assert (first.error, [span.name for span in first.errors]) == (None, ["execute_tool fails"])
    assert second.error is not None
    assert (second.error.error_type, second.message, second.text) == ("429", None, "")
    assert second.tree("error.type")["status"] == "error"
    assert [trace.prompt for trace in conversation.traces] == ["hi", "again"]
    assert repr(first).startswith("<Trace 'hi': fails(), lookup(order_id=\"7\") → 'Sorry.'>")


def test_a_tool_that_asks_is_denied_unless_the_test_allows_it(chat: Any, tmp_path: Path) -> None:
    """Nobody is there to be asked but the test itself."""
    asks = {"name": "asks", "type": "function", "file": "tools.py", "function": "where", "approval": "ask"}
    conversation = chat(
        scripted_agent(tmp_path, {"text": "x"}, tools=[asks]),
        script=[{"tool_calls": [call("asks")]}, "1", {"tool_calls": [call("asks")]}, "2"],
    )

    async def allow(_: Any) -> bool:
        return True

    denied = conversation.send("hi").tool("asks").status
    conversation.session.approve = allow
    assert (denied, conversation.send("again").tool("asks").status) == (ToolStatus.FAILED, ToolStatus.SUCCESS)


def test_asynchronous_tests_await_their_turns(chat: Any, agent: Path) -> None:
    """Two conversations run side by side in a loop that is not theirs."""

    async def talk() -> list[str]:
        slow = {"text": "One.", "delay": 0.05}
        first, second = chat(agent, script=[slow]), chat(agent, script=["Two."])
        return [trace.text for trace in await asyncio.gather(first.asend("a"), second.asend("b"))]

    assert asyncio.run(talk()) == ["One.", "Two."]


def test_what_cannot_be_sent_or_loaded_is_raised(chat: Any, agent: Path, tmp_path: Path) -> None:
    """A blank message, an agent file that is not there, a script that is wrong."""
    with pytest.raises(InputError):
        chat(agent).send("   ")
    with pytest.raises(ConfigError, match="no such file"):
        chat("nowhere.yaml")
    with pytest.raises(ConfigError, match=r"replies\[0\]\.txt: unknown key; did you mean 'text'"):
        chat(agent, script=[{"txt": "x"}])
    with pytest.raises(HoloDeckError, match="must be a list of replies, or the path of a file: leave out 'replies:'"):
        chat(agent, script={"replies": ["x"]})
    with pytest.raises(HoloDeckError, match="replies are texts and plain data: cannot represent an object"):
        chat(agent, script=[{"text": object()}])
    with pytest.raises(ConfigError, match="--replay-tools"):
        chat(agent, model="openai/gpt-4o-mini", environ={"OPENAI_API_KEY": "k"}, replay_tools=True)


@pytest.mark.parametrize(
    "text", ["Yes \U0001f600 é", "del \x7f, nul \x00, escape \x1b[31m", "one\r\ntwo\n  three", "null", "- a: [b", "'\"\\\\"]
)
def test_whatever_a_reply_says_is_said(text: str, chat: Any, agent: Path) -> None:
    """A script that is written in a test holds any text that is text."""
    assert chat(agent, script=[text]).send("hi").text == text


def test_a_closed_conversation_says_so(chat: Any, agent: Path) -> None:
    """A message after its end is an error in one sentence; to close it again is none."""
    conversation = chat(agent)
    conversation.send("hi")
    conversation.close()
    conversation.close()
    with pytest.raises(SessionError, match="this conversation is closed: start another one"):
        conversation.send("hi")


@pytest.mark.holodeck(sequential_ids=True, fake_clock=True)
def test_nothing_is_left_to_chance_on_request(chat: Any, telemetry: Any, agent: Path) -> None:
    """Ids and conversations count up over all agents of a test; times are ticks."""
    first, second = (chat(agent, script=[LOOK_UP, SHIPPED]).send("hi") for _ in range(2))
    assert [trace.result.trace_id for trace in (first, second)] == [f"{1:032x}", f"{2:032x}"]
    assert [t.root.span.attributes["gen_ai.conversation.id"][-3:] for t in (first, second)] == ["001", "002"]
    assert first.duration == second.duration == 0.007
    assert first.span("execute_tool *").attributes["holodeck.tool.execution_time"] == pytest.approx(0.002)
    assert {span.start % 1_000_000 for span in telemetry.spans} == {0}


def test_telemetry_holds_everything_that_was_recorded(chat: Any, telemetry: Any, agent: Path) -> None:
    """Spans of all conversations, metrics by name, log records with their trace."""
    traces = [chat(agent).send("a"), chat(agent).send("b")]
    assert [tree.span.trace_id for tree in telemetry.trees] == [trace.result.trace_id for trace in traces]
    assert sum(point.count for point in telemetry.metrics["gen_ai.invoke_agent.duration"]) == 2
    assert [f"{record.trace_id:032x}" for record in telemetry.logs] == [trace.result.trace_id for trace in traces]
    assert telemetry.waterfall().count("invoke_agent support · ") == 2


def test_the_environment_and_the_agent_file_send_nothing(chat: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they say about exporters and sampling, spans are in memory and nowhere else."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    observability = {"enabled": True, "traces": {"sample_rate": 0.0}, "exporters": {"otlp": {"endpoint": "http://127.0.0.1:9"}}}
    conversation = chat(scripted_agent(tmp_path, {"text": "Hello."}, observability=observability))
    assert len(conversation.send("hi").spans()) == 2
    assert conversation.agent.settings.traces is None


YARDSTICK = {"spans": [{"name": f"span {n}", "attributes": {"a": n, "b": [n, str(n)]}} for n in range(40)]}
"""What is copied to learn how fast this machine is at this moment: deep copies are interpreted Python, as a turn is."""


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of ``work``."""
    start = process_time()
    work()
    return process_time() - start


def test_a_scripted_turn_costs_little_however_long_the_conversation_is(chat: Any, agent: Path) -> None:
    """With a tool call, two requests and all spans less CPU than 25 copies take, and the last turns about as much as the first.

    That is 3 ms where it takes 2. A busy machine makes both slower, and seldom alike: the quickest of each count, and where they do not
    suffice, more are looked at.
    """
    again = [{**LOOK_UP, "when": {"round": 1}, "repeat": True}, {**SHIPPED, "repeat": True}]
    conversation = chat(agent, script=again)
    conversation.send("warm up")
    turns, copies = [], []
    while len(turns) < 150 or (len(turns) < 1000 and min(turns) > 2.5 * min(copies)):
        copies.append(cpu(lambda: [deepcopy(YARDSTICK) for _ in range(10)]))
        turns.append(cpu(lambda: conversation.send("Where is order 1042?")))
    assert min(turns) <= 2.5 * min(copies)
    assert min(turns[-75:]) <= 2 * min(turns[:75])
