"""The spans and metrics of a turn, compared as literals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from holodeck.errors import BackendError, ToolError, ToolTimeout
from holodeck.models.chat import Message, MessageRole
from holodeck.models.exchange import ModelReply
from support.telemetry import CALL, ENDPOINT, EXECUTION, HISTORY, SESSION_ID, SPEC, USAGE, chat_session, memory_telemetry, record_turn


def test_a_turn_is_one_trace_with_the_attributes_of_the_conventions() -> None:
    """A turn is one trace: invoke_agent, below it chat with its usage and execute_tool with its status."""
    with memory_telemetry() as memory:
        record_turn(memory.telemetry)
        assert memory.tree() == [
            [
                "invoke_agent support",
                "UNSET",
                {
                    "gen_ai.operation.name": "invoke_agent",
                    "gen_ai.request.model": "gpt-4o-mini",
                    "gen_ai.agent.name": "support",
                    "gen_ai.agent.description": "Answers questions",
                    "gen_ai.conversation.id": str(SESSION_ID),
                    "holodeck.turn.number": 1,
                    "holodeck.message.role": "user",
                    "holodeck.message.length": 20,
                    "holodeck.turn.model_requests": 1,
                    "holodeck.turn.tool_calls": 1,
                    "holodeck.session.state": "active",
                    "holodeck.session.message_count": 0,
                    "holodeck.turn.input_tokens": 200,
                    "holodeck.turn.output_tokens": 20,
                    "holodeck.answer.length": 8,
                },
                [
                    [
                        "chat gpt-4o-mini",
                        "UNSET",
                        {
                            "gen_ai.operation.name": "chat",
                            "gen_ai.provider.name": "openai",
                            "gen_ai.request.model": "gpt-4o-mini",
                            "server.address": "127.0.0.1",
                            "server.port": 9,
                            "gen_ai.conversation.id": str(SESSION_ID),
                            "gen_ai.request.stream": True,
                            "gen_ai.request.temperature": 0.3,
                            "gen_ai.response.finish_reasons": ("stop",),
                            "gen_ai.response.model": "gpt-x",
                            "gen_ai.response.id": "r-1",
                            "gen_ai.usage.input_tokens": 200,
                            "gen_ai.usage.output_tokens": 20,
                            "gen_ai.usage.cache_read.input_tokens": 0,
                            "gen_ai.usage.reasoning.output_tokens": 5,
                        },
                        [],
                    ],
                    [
                        "execute_tool lookup_order",
                        "UNSET",
                        {
                            "gen_ai.operation.name": "execute_tool",
                            "gen_ai.tool.name": "lookup_order",
                            "gen_ai.tool.type": "function",
                            "gen_ai.tool.call.id": "call_1",
                            "gen_ai.tool.description": "Looks an order up",
                            "gen_ai.agent.name": "support",
                            "holodeck.tool.status": "success",
                            "holodeck.tool.execution_time": 0.25,
                        },
                        [],
                    ],
                ],
            ]
        ]


def test_ids_and_times_are_sequential() -> None:
    """With sequential ids and a fake clock a trace is the same in every run."""
    with memory_telemetry() as memory:
        record_turn(memory.telemetry)
        root = memory.span("invoke_agent support")
        assert (root.context.trace_id, root.context.span_id, root.start_time) == (1, 1, 1_700_000_000_000_000_000)
        assert root.end_time == 1_700_000_000_005_000_000


def test_the_next_turn_is_a_trace_of_its_own_and_linked() -> None:
    """Turn 2 has its own trace id and a link to turn 1."""
    with memory_telemetry() as memory:
        first = record_turn(memory.telemetry)
        second = record_turn(memory.telemetry, 2, previous=first)
        assert second.trace_id != first.trace_id
        root = memory.spans[-1]
        assert [(link.context.span_id, dict(link.attributes)) for link in root.links] == [
            (first.span_id, {"holodeck.link.type": "previous_turn"})
        ]


def test_a_turn_is_a_root_whatever_span_its_caller_is_in() -> None:
    """A host application's current span does not swallow the turn."""
    with memory_telemetry() as memory:
        tracer = memory.telemetry._providers[0].get_tracer("host")
        with tracer.start_as_current_span("host"):
            record_turn(memory.telemetry)
        assert memory.span("invoke_agent support").parent is None


def test_unknown_usage_is_marked_and_never_zero() -> None:
    """A reply without usage has no token attributes, but says so."""
    with memory_telemetry() as memory:
        record_turn(memory.telemetry, reply=ModelReply(text="x", finish_reason="stop"))
        attributes = memory.span("chat gpt-4o-mini").attributes
        assert attributes["holodeck.usage.unavailable"] is True
        assert not [key for key in attributes if key.startswith("gen_ai.usage.")]
        assert "gen_ai.response.id" not in attributes


def test_a_failed_request_ends_as_an_error_with_a_fixed_sentence() -> None:
    """While the gate is shut a failure leaves error.type and a sentence of ours, never the exception's text."""
    with memory_telemetry() as memory:
        error = BackendError("secret text of the user", error_type="429", summary="HTTP 429: the provider limits the rate")

        def fail() -> None:
            turn = memory.telemetry.turn(chat_session(), 1, Message(role=MessageRole.USER, content="hi"))
            with turn, turn.request(ENDPOINT, list, []) as request:
                request.answered(ModelReply(text="par"))
                raise error

        with pytest.raises(BackendError) as raised:
            fail()
        assert raised.value is error
        span = memory.span("chat gpt-4o-mini")
        assert (span.status.status_code.name, span.status.description) == ("ERROR", "HTTP 429: the provider limits the rate")
        assert span.attributes["error.type"] == "429"
        assert span.attributes["gen_ai.response.finish_reasons"] == ("error",)
        assert "secret" not in "".join(s.to_json() for s in memory.spans)


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (ToolError("boom: secret", error_type="ValueError"), "ValueError"),
        (ToolTimeout("late secret"), "timeout"),
        (KeyError("secret"), "KeyError"),
        (asyncio.CancelledError("terminated"), "terminated"),
        (asyncio.CancelledError(), "cancelled"),
        (asyncio.CancelledError("the secret"), "cancelled"),
        (asyncio.CancelledError(ValueError("secret")), "cancelled"),
        (asyncio.CancelledError("deadline"), "deadline"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_a_tool_span_ends_on_every_way_out(error: BaseException, error_type: str) -> None:
    """Whatever leaves a tool, its span ends as an error with a type and without the text, and the exception goes on."""
    with memory_telemetry() as memory:
        turn = memory.telemetry.turn(chat_session(), 1, Message(role=MessageRole.USER, content="hi"))
        with turn, pytest.raises(type(error)) as raised, turn.tool(CALL, SPEC):
            raise error
        assert raised.value is error
        span = memory.span("execute_tool lookup_order")
        assert span.attributes["error.type"] == error_type
        assert span.status.status_code.name == "ERROR"
        assert "secret" not in span.to_json()
        assert memory.span("invoke_agent support").status.status_code.name == "UNSET"


def test_open_gate_puts_content_on_the_spans_redacted() -> None:
    """With capture on, messages, arguments and results are there as JSON, without their secrets."""
    with memory_telemetry(capture_content=True, redaction_patterns=("ORD-[0-9]+",)) as memory:
        message = Message(role=MessageRole.USER, content="key sk-abcdefghijklmnopqrst for ORD-77")
        history = [*HISTORY[:1], {"role": "user", "parts": [{"type": "text", "content": message.content}]}]
        with memory.telemetry.turn(chat_session(), 1, message) as turn:
            with turn.request(ENDPOINT, lambda: history, [SPEC]) as request:
                request.answered(ModelReply(text="ok", finish_reason="stop", usage=USAGE))
            with turn.tool(CALL, SPEC) as tool:
                tool.finished(EXECUTION.model_copy(update={"result": "password=hunter2"}))
        chat, tool_span = memory.span("chat gpt-4o-mini").attributes, memory.span("execute_tool lookup_order").attributes
        assert json.loads(chat["gen_ai.input.messages"]) == [
            {"role": "user", "parts": [{"type": "text", "content": "key [redacted] for [redacted]"}]}
        ]
        assert json.loads(chat["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
        assert json.loads(chat["gen_ai.output.messages"]) == [
            {"role": "assistant", "parts": [{"type": "text", "content": "ok"}], "finish_reason": "stop"}
        ]
        assert json.loads(chat["gen_ai.tool.definitions"])[0]["name"] == "lookup_order"
        assert json.loads(tool_span["gen_ai.tool.call.arguments"]) == {"order_id": "1042"}
        assert tool_span["gen_ai.tool.call.result"] == "password=[redacted]"


def test_shut_gate_never_even_asks_for_the_messages() -> None:
    """While the gate is shut the conversation is not read at all."""

    def never() -> list[dict[str, Any]]:
        raise AssertionError("the history was read")

    with memory_telemetry() as memory:
        turn = memory.telemetry.turn(chat_session(), 1, Message(role=MessageRole.USER, content="hi"))
        with turn, turn.request(ENDPOINT, never, [SPEC]) as request:
            request.answered(ModelReply(text="ok", finish_reason="stop"))
    assert not [k for s in memory.spans for k in s.attributes if k.startswith(("gen_ai.input", "gen_ai.output", "gen_ai.system_instr"))]


@pytest.mark.parametrize("environment", ["SPAN_ONLY", "SPAN_AND_EVENT", "true"])
def test_the_environment_alone_does_not_open_the_gate_behind_our_back(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helper library's own switch writes nothing that our gate has not passed."""
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", environment.upper() if environment != "true" else "SPAN_ONLY")
    with memory_telemetry() as memory:
        record_turn(memory.telemetry)
        assert "1042?" not in "".join(s.to_json() for s in memory.spans)


def test_metrics_of_a_turn_have_the_conventions_names_and_buckets() -> None:
    """Token usage, durations and the first chunk are histograms with the boundaries of the conventions."""
    with memory_telemetry() as memory:
        message = Message(role=MessageRole.USER, content="hi")
        with memory.telemetry.turn(chat_session(), 1, message) as turn:
            with turn.request(ENDPOINT, list, []) as request:
                request.first_chunk()
                request.answered(ModelReply(text="ok", finish_reason="stop", usage=USAGE))
            with turn.tool(CALL, SPEC) as tool:
                tool.finished(EXECUTION)
        metrics = memory.metrics()
        assert set(metrics) == {
            "gen_ai.client.token.usage",
            "gen_ai.client.operation.duration",
            "gen_ai.client.operation.time_to_first_chunk",
            "gen_ai.invoke_agent.duration",
            "gen_ai.execute_tool.duration",
        }
        tokens = {p.attributes["gen_ai.token.type"]: p for p in metrics["gen_ai.client.token.usage"]}
        assert (tokens["input"].sum, tokens["output"].sum) == (200, 20)
        assert tuple(tokens["input"].explicit_bounds[:4]) == (1, 4, 16, 64)


def test_traceparent_of_a_tool_names_its_span() -> None:
    """What an MCP server is told is the tool span's own context."""
    with memory_telemetry() as memory:
        with memory.telemetry.turn(chat_session(), 1, Message(role=MessageRole.USER, content="hi")) as turn, turn.tool(CALL, SPEC) as tool:
            told = tool.traceparent
        span = memory.span("execute_tool lookup_order")
        assert told == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"
