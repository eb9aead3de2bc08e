"""The turn loop: requests, tools, failures, cancellation, and the trace that they leave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from opentelemetry import trace

from holodeck import Session
from holodeck.models.chat import MessageRole
from holodeck.models.events import TextDelta, ToolFinished, ToolStarted, TurnFinished, TurnResult
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolStatus
from holodeck.telemetry.gate import Gate
from support.model_replies import Call, Reply
from support.model_server import ModelServer
from support.scripts import call, scripted_agent, talk, usage
from support.telemetry import MemoryTelemetry


def roles(session: Session) -> list[str]:
    """The roles of the history."""
    return [m.role.value for m in session.chat.history.messages]


def names(memory: MemoryTelemetry) -> list[Any]:
    """All traces as ``[name, status, [children]]``."""

    def short(node: list[Any]) -> list[Any]:
        return [node[0], node[1], [short(child) for child in node[3]]]

    return [short(root) for root in memory.tree()]


def test_a_turn_with_a_tool_as_a_whole_trace(tmp_path: Path) -> None:
    """Request, tool and second request are one trace, with usage on the chat spans and the sums on the root."""
    path = scripted_agent(
        tmp_path,
        {"text": "Let me look.", "tool_calls": [call("lookup", order_id="1042")], "usage": usage(100, 10)},
        {"text": "It shipped.", "usage": usage(150, 5)},
    )

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("Where is 1042?")
        assert result.message is not None
        assert (result.message.role, result.message.content) == (MessageRole.ASSISTANT, "Let me look.\n\nIt shipped.")
        assert result.message.tokens_used == TokenUsage.of(250, 15)
        assert [(t.tool_name, t.status, t.parameters) for t in result.message.tool_calls] == [
            ("lookup", ToolStatus.SUCCESS, {"order_id": "1042"})
        ]
        assert roles(session) == ["user", "assistant", "tool", "assistant"]
        assert session.chat.message_count == 2
        ((name, status, attributes, children),) = memory.tree()
        assert (name, status, attributes["holodeck.turn.input_tokens"], attributes["holodeck.turn.output_tokens"]) == (
            "invoke_agent support",
            "UNSET",
            250,
            15,
        )
        assert [(c[0], c[1]) for c in children] == [("chat script", "UNSET"), ("execute_tool lookup", "UNSET"), ("chat script", "UNSET")]
        assert [c[2].get("gen_ai.usage.input_tokens") for c in children] == [100, None, 150]
        assert children[0][2]["gen_ai.response.finish_reasons"] == ("tool_calls",)
        assert result.trace_id == f"{1:032x}"

    talk(path, body)


def test_events_come_in_order_and_their_text_is_the_answer(tmp_path: Path) -> None:
    """Text deltas joined are the answer; a tool starts and finishes between them; the result is the last event."""
    path = scripted_agent(
        tmp_path,
        {"text": "Let me look.", "tool_calls": [call("lookup", order_id="1")], "usage": usage(1, 1)},
        {"text": "It shipped.", "usage": usage(1, 1)},
    )

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        events = [event async for event in session.stream("hi")]
        kinds = [type(e) for e in events if not isinstance(e, TextDelta)]
        assert kinds == [ToolStarted, ToolFinished, TurnFinished]
        last = events[-1]
        assert isinstance(last, TurnFinished)
        assert last.result.message is not None
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == last.result.message.content
        assert last.result.time_to_first_token is not None
        assert 0 < last.result.time_to_first_token <= last.result.duration

    talk(path, body)


def test_tools_of_one_reply_run_side_by_side_and_results_keep_the_call_order(tmp_path: Path) -> None:
    """Two half-second tools take half a second, also when they block; the slower first call's result still comes first."""
    calls = [call("block", "a", seconds=0.5), call("nap", "b", seconds=0.4), call("block", "c", seconds=0.3)]
    path = scripted_agent(tmp_path, {"tool_calls": calls, "usage": usage(1, 1)}, {"text": "done", "usage": usage(1, 1)})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        start = monotonic()
        await session.send("hi")
        assert monotonic() - start < 0.95
        results = [m.items[0].result for m in session.chat.history.messages if m.role.value == "tool"]
        assert results == ["blocked 0.5", "slept 0.4", "blocked 0.3"]
        assert names(memory)[0][2][1:4] == [
            ["execute_tool block", "UNSET", []],
            ["execute_tool nap", "UNSET", []],
            ["execute_tool block", "UNSET", []],
        ]

    talk(path, body)


def test_a_blocking_tool_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """While a synchronous tool runs, the loop stays responsive."""
    path = scripted_agent(tmp_path, {"tool_calls": [call("block", seconds=0.4)]}, {"text": "done"})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        turn = asyncio.create_task(session.send("hi"))
        longest = 0.0
        while not turn.done():
            before = monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, monotonic() - before)
        assert longest < 0.3
        assert (await turn).error is None

    talk(path, body)


@pytest.mark.parametrize(
    ("wanted", "error_type"),
    [
        (call("fails", settings="sings"), "ValueError"),
        (call("unknown_tool"), "invalid_tool_call"),
        ({"name": "lookup", "raw": '{"order_id": ', "id": "x"}, "invalid_tool_call"),
        ({"name": "lookup", "raw": "[1]", "id": "x"}, "invalid_tool_call"),
        (call("lookup"), "invalid_tool_call"),
        (call("lookup", order_id=["no"]), "invalid_tool_call"),
    ],
)
def test_a_failed_tool_is_an_error_span_and_the_model_is_told(wanted: dict[str, Any], error_type: str, tmp_path: Path) -> None:
    """Whatever goes wrong with a tool: its span is an error with a type, the model gets the reason, the turn itself is fine."""
    path = scripted_agent(tmp_path, {"tool_calls": [wanted]}, {"text": "Sorry, that did not work."})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.error is None
        (execution,) = result.tool_calls
        assert execution.status is ToolStatus.FAILED
        assert execution.error_message
        told = session.chat.history.messages[2].items[0].result
        assert told == f"Error: {execution.error_message}"
        known = wanted["name"] if wanted["name"] != "unknown_tool" else "_OTHER"
        span = memory.span(f"execute_tool {known}")
        assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", error_type)
        assert span.attributes["holodeck.tool.status"] == "failed"
        assert names(memory)[0][1] == "UNSET"
        assert "canary" not in "".join(s.to_json() for s in memory.spans)

    talk(path, body)


def test_a_tool_that_is_too_slow_is_a_timeout(tmp_path: Path) -> None:
    """A tool's own timeout ends the wait, for synchronous and asynchronous ones."""
    slow = [
        {"name": "slow_block", "type": "function", "file": "tools.py", "function": "block", "timeout": 0.1},
        {"name": "slow_nap", "type": "function", "file": "tools.py", "function": "nap", "timeout": 0.1},
    ]
    calls = [call("slow_block", "a", seconds=2), call("slow_nap", "b", seconds=2)]
    path = scripted_agent(tmp_path, {"tool_calls": calls}, {"text": "too slow"}, tools=slow)

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        start = monotonic()
        result = await session.send("hi")
        assert monotonic() - start < 1.5
        assert [t.status for t in result.tool_calls] == [ToolStatus.FAILED] * 2
        assert {s.attributes["error.type"] for s in memory.spans if s.name.startswith("execute_tool")} == {"timeout"}

    talk(path, body)


def test_the_bound_on_model_requests_is_said(tmp_path: Path) -> None:
    """A model that keeps calling tools is stopped, with a line that says so and a history that can be sent again."""
    path = scripted_agent(
        tmp_path, {"when": {"user": "loop"}, "tool_calls": [call("lookup", order_id="1")], "repeat": True}, {"text": "fine"}, max_rounds=3
    )

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("loop")
        assert result.error is not None
        assert result.error.error_type == "max_rounds"
        assert "3 model requests" in result.error.message
        assert result.model_requests == 3
        assert roles(session) == []
        assert memory.tree()[0][1] == "ERROR"
        assert (await session.send("hello")).error is None
        assert roles(session) == ["user", "assistant"]

    talk(path, body)


@pytest.mark.parametrize(
    ("fault", "error_type"),
    [
        ({"status": 401}, "401"),
        ({"status": 429}, "429"),
        ({"status": 500}, "500"),
        ({"kind": "truncated", "after": 2}, "truncated_stream"),
        ({"kind": "reset", "after": 1}, "connection_reset"),
        ({"kind": "html"}, "invalid_response"),
        ({"kind": "error_event", "after": 1}, "provider_error"),
        ({"kind": "context_overflow"}, "context_length_exceeded"),
        ({"kind": "timeout", "after": 1}, "timeout"),
    ],
)
def test_a_failed_request_is_an_error_on_both_spans_and_leaves_no_orphan(fault: dict[str, Any], error_type: str, tmp_path: Path) -> None:
    """The chat span and its turn carry error.type; the history is as it was; the next turn works and is linked."""
    path = scripted_agent(
        tmp_path,
        {"text": "one two three four", "fault": fault},
        {"text": "fine", "usage": usage(2, 1)},
        model={"provider": "scripted", "name": "script", "script": "script.yaml", "timeout": 0.2},
    )

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.error is not None
        assert result.error.error_type == error_type
        assert (result.message, session.chat.message_count, roles(session)) == (None, 0, [])
        root, chat = memory.span("invoke_agent support"), memory.span("chat script")
        assert root.attributes["error.type"] == chat.attributes["error.type"] == error_type
        assert chat.attributes["gen_ai.response.finish_reasons"] == ("error",)
        assert (await session.send("again")).error is None
        assert [link.context.trace_id for link in memory.spans[-1].links] == [root.context.trace_id]

    talk(path, body)


def test_an_empty_answer_makes_no_message(tmp_path: Path) -> None:
    """A reply without text and without calls fails the turn with one line and is forgotten."""
    path = scripted_agent(tmp_path, {"text": "  \n "}, {"text": "fine"})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.error is not None
        assert result.error.error_type == "empty_answer"
        assert (result.message, roles(session), session.chat.message_count) == (None, [], 0)

    talk(path, body)


def test_usage_is_unknown_if_one_request_did_not_say(tmp_path: Path) -> None:
    """The turn's usage is a sum over all requests, or unknown; never the sum of what happens to be known."""
    path = scripted_agent(tmp_path, {"tool_calls": [call("lookup", order_id="1")], "usage": usage(1, 1)}, {"text": "x", "usage": "none"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.usage is None
        attributes = memory.span("invoke_agent support").attributes
        assert attributes["holodeck.usage.unavailable"] is True
        assert "holodeck.turn.input_tokens" not in attributes

    talk(path, body)


async def cancelled_when(session: Session, event: type, text: str = "hi", reason: str = "cancelled") -> TurnResult:
    """Run a turn and stop it at the first event of a kind."""
    stopped = False
    async for happened in session.stream(text):
        if isinstance(happened, event) and not stopped:
            stopped = True
            session.cancel(reason)
        if isinstance(happened, TurnFinished):
            return happened.result
    raise AssertionError("no result")


def test_a_stop_before_any_text_forgets_the_message(tmp_path: Path) -> None:
    """Stopped before there was text: no message, no orphan in the history, spans are errors, nothing leaks into the next turn."""
    path = scripted_agent(tmp_path, {"text": "late", "delay": 30}, {"text": "fine"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        turn = asyncio.create_task(session.send("hi"))
        await asyncio.sleep(0.05)
        session.cancel()
        result = await turn
        assert result.interrupted
        assert result.error is not None
        assert (result.error.error_type, result.message, roles(session), session.chat.message_count) == ("cancelled", None, [], 0)
        assert names(memory) == [["invoke_agent support", "ERROR", [["chat script", "ERROR", []]]]]
        assert memory.span("chat script").attributes["error.type"] == "cancelled"
        assert not trace.get_current_span().get_span_context().is_valid
        await session.send("again")
        assert names(memory)[1] == ["invoke_agent support", "UNSET", [["chat script", "UNSET", []]]]

    talk(path, body)


def test_a_stop_inside_the_answer_keeps_what_was_said(tmp_path: Path) -> None:
    """Stopped after some text: the text is the message, and the model will remember it."""
    path = scripted_agent(tmp_path, {"text": "one two three", "chunk_delay": 0.2}, {"text": "fine"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await cancelled_when(session, TextDelta)
        assert result.interrupted
        assert result.message is not None
        assert result.message.content == "one"
        assert roles(session) == ["user", "assistant"]
        assert session.chat.message_count == 2
        assert memory.tree()[0][1] == "ERROR"

    talk(path, body)


def test_a_stop_inside_a_tool_answers_every_call(tmp_path: Path) -> None:
    """Stopped while tools run: their spans are errors, each call has a result, and the next request is valid."""
    calls = [call("lookup", "a", order_id="1"), call("nap", "b", seconds=30)]
    path = scripted_agent(tmp_path, {"text": "Looking.", "tool_calls": calls}, {"text": "fine"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await cancelled_when(session, ToolFinished, reason="terminated")
        assert result.message is not None
        assert result.message.content == "Looking."
        assert [t.status for t in result.tool_calls] == [ToolStatus.SUCCESS, ToolStatus.FAILED]
        assert roles(session) == ["user", "assistant", "tool", "tool"]
        assert memory.span("execute_tool nap").attributes["error.type"] == "terminated"
        assert memory.span("invoke_agent support").attributes["error.type"] == "terminated"
        assert (await session.send("go on")).error is None

    talk(path, body)


def test_leaving_the_stream_early_stops_the_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A consumer that breaks off after the first piece ends the turn; the next one is a trace of its own and nothing is logged."""
    path = scripted_agent(tmp_path, {"text": "one two three", "chunk_delay": 5}, {"text": "fine"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        async for event in session.stream("hi"):
            if isinstance(event, TextDelta):
                break
        for _ in range(100):
            if memory.spans and memory.spans[-1].name == "invoke_agent support":
                break
            await asyncio.sleep(0.01)
        assert names(memory) == [["invoke_agent support", "ERROR", [["chat script", "ERROR", []]]]]
        assert not trace.get_current_span().get_span_context().is_valid
        await session.send("again")
        assert names(memory)[1] == ["invoke_agent support", "UNSET", [["chat script", "UNSET", []]]]
        assert "detach" not in caplog.text

    talk(path, body)


def test_a_prompt_tool_asks_the_model_under_its_own_span(tmp_path: Path) -> None:
    """A prompt tool's request is a chat span below the tool's, its tokens are part of the turn, its text is not shown."""
    prompt = {"name": "shorten", "type": "prompt", "template": "Shorten: {{text}}", "description": "Shortens"}
    path = scripted_agent(
        tmp_path,
        {"when": {"user": "^Shorten: long"}, "text": "short", "usage": usage(7, 3)},
        {"tool_calls": [call("shorten", text="long text")], "usage": usage(10, 1)},
        {"text": "In short: short", "usage": usage(20, 2)},
        tools=[prompt],
    )

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("please")
        assert result.message is not None
        assert result.message.content == "In short: short"
        assert result.usage == TokenUsage.of(37, 6)
        assert result.model_requests == 3
        assert names(memory)[0][2][1] == ["execute_tool shorten", "UNSET", [["chat script", "UNSET", []]]]
        assert result.tool_calls[0].result == "short"

    talk(path, body)


def _prompted_agent(directory: Path, model: dict[str, Any]) -> Path:
    tool = {"name": "ask", "type": "prompt", "template": "{{text}}", "timeout": 0.4, "model": model}
    return scripted_agent(directory, {"tool_calls": [call("ask", text="slowly")]}, {"text": "too slow"}, tools=[tool])


@pytest.mark.parametrize("provider", ["scripted", "openai", "anthropic", "ollama"])
def test_a_prompt_tool_that_takes_too_long_is_a_timeout_on_every_span(tmp_path: Path, provider: str) -> None:
    """The request that the tool's own bound stopped says so; it was not cancelled by anybody."""
    with ModelServer() as server:
        server.reply(Reply(text="one two three", chunk_delay=0.3))
        (tmp_path / "slow.yaml").write_text("replies: [{text: one two three, chunk_delay: 0.3}]", encoding="utf-8")
        models = {
            "scripted": {"script": str(tmp_path / "slow.yaml")},
            "openai": {"name": "m", "endpoint": server.url, "api_key": "k"},
            "anthropic": {"name": "m", "endpoint": server.base_url, "api_key": "k"},
            "ollama": {"name": "m", "endpoint": server.base_url},
        }

        async def body(session: Session, memory: MemoryTelemetry) -> None:
            result = await session.send("hi")
            assert result.message is not None
            assert result.message.content == "too slow"
            (asked,) = [s for s in memory.spans if s.parent and s.parent.span_id == memory.span("execute_tool ask").context.span_id]
            assert asked.attributes["gen_ai.operation.name"] == "chat"
            assert asked.attributes["error.type"] == memory.span("execute_tool ask").attributes["error.type"] == "timeout"

        talk(_prompted_agent(tmp_path / "agent", {"provider": provider, **models[provider]}), body)


def test_a_tool_that_the_model_made_up_names_neither_span_nor_metric(tmp_path: Path) -> None:
    """Its name is the model's text: a fixed name stands for it, and the name itself only where content is captured."""
    path = scripted_agent(tmp_path, {"tool_calls": [call("the-canary")]}, {"text": "fine"})

    async def shut(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.tool_calls[0].tool_name == "the-canary"
        assert memory.span("execute_tool _OTHER").attributes["gen_ai.tool.name"] == "_OTHER"
        assert "canary" not in str([s.to_json() for s in memory.spans]) + str(memory.metrics())

    async def opened(session: Session, memory: MemoryTelemetry) -> None:
        await session.send("hi")
        assert memory.span("execute_tool _OTHER").attributes["holodeck.tool.name_original"] == "the-canary"
        assert "canary" not in str(memory.metrics())

    talk(path, shut)
    talk(path, opened, capture_content=True)


def test_the_type_of_an_error_is_redacted_like_a_name(tmp_path: Path) -> None:
    """The class of a tool's exception may be named by what went wrong."""
    source = "def odd() -> str:\n    raise type('sk-proj-' + 'a1B2' * 10, (Exception,), {})('no')\n"
    (tmp_path / "odd.py").write_text(source, encoding="utf-8")
    tool = {"name": "odd", "type": "function", "file": "odd.py", "function": "odd"}
    path = scripted_agent(tmp_path, {"tool_calls": [call("odd")]}, {"text": "done"}, tools=[tool])

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        await session.send("hi")
        assert memory.span("execute_tool odd").attributes["error.type"] == "[redacted]"
        assert "a1B2" not in str([s.to_json() for s in memory.spans]) + str(memory.metrics())

    talk(path, body)


@pytest.mark.parametrize("name", ["", "\x1b[31m", " "])
def test_a_tool_call_without_a_name_is_refused(tmp_path: Path, name: str) -> None:
    """The model is told, and the turn goes on."""
    with ModelServer() as server:
        server.reply(Reply(tool_calls=[Call(name, {})]), Reply(text="fine"))
        model = {"provider": "openai", "name": "m", "endpoint": server.url}
        path = scripted_agent(tmp_path, model=model)

        async def body(session: Session, memory: MemoryTelemetry) -> None:
            result = await session.send("hi")
            assert result.error is None
            assert result.tool_calls[0].tool_name
            assert "There is no tool" in (result.tool_calls[0].error_message or "")

        talk(path, body)


def test_telemetry_that_fails_ends_the_turn_and_not_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No span stays open, the history is as it was, and the next turn is fine."""
    path = scripted_agent(tmp_path, {"text": "fine"})

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Gate, "structure", lambda *_: 1 / 0)
            result = await session.send("hi")
        assert result.error is not None
        assert result.error.error_type == "ZeroDivisionError"
        assert roles(session) == []
        assert memory.span("invoke_agent support").attributes["error.type"] == "ZeroDivisionError"
        assert (await session.send("hi")).error is None
        assert not trace.get_current_span().get_span_context().is_valid

    talk(path, body)


def test_the_users_own_spans_join_the_trace(tmp_path: Path) -> None:
    """The current span inside a tool is the tool's, so that the user's own instrumentation lands below it."""
    (tmp_path / "own.py").write_text(
        "from opentelemetry import trace\n"
        "def own() -> str:\n"
        "    return format(trace.get_current_span().get_span_context().span_id, '016x')\n",
        encoding="utf-8",
    )
    tool = {"name": "own", "type": "function", "file": "own.py", "function": "own"}
    path = scripted_agent(tmp_path, {"tool_calls": [call("own")]}, {"text": "done"}, tools=[tool])

    async def body(session: Session, memory: MemoryTelemetry) -> None:
        result = await session.send("hi")
        assert result.tool_calls[0].result == f"{memory.span('execute_tool own').context.span_id:016x}"

    talk(path, body)


def test_an_answer_that_was_cut_off_says_so(tmp_path: Path) -> None:
    """The result has the last finish reason, so that an answer cut off at max_tokens is known as one."""
    path = scripted_agent(tmp_path, {"text": "one two", "finish_reason": "length"}, {"text": "three"})

    async def body(session: Session, _memory: MemoryTelemetry) -> None:
        assert (await session.send("hi")).finish_reason == "length"
        assert (await session.send("hi")).finish_reason == "stop"

    talk(path, body)
