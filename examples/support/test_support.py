"""Tests of the support desk, which assert on what the agent did: ``pytest examples/support`` runs them."""

import asyncio
import json

import pytest

pytestmark = pytest.mark.holodeck(agent="agent.yaml")

LOOK_UP = {
    "tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "1042"}}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 20},
}
SHIPPED = {"text": "Order 1042 shipped on 24 November.", "usage": {"prompt_tokens": 450, "completion_tokens": 15}}


def test_an_order_is_looked_up_once(chat):
    """The question calls the tool once, with this id, in under 900 tokens, and the answer has the date."""
    trace = chat(script=[LOOK_UP, SHIPPED]).send("Where is order 1042?")
    assert trace.tool("lookup_order", order_id="1042").status.value == "success"
    assert trace.usage.total_tokens < 900
    assert "24 November" in trace.text


def test_the_same_in_the_words_of_case_files(chat):
    """Everything that does not hold is said at once."""
    trace = chat(script=[LOOK_UP, SHIPPED]).send("Where is order 1042?")
    trace.expect(tools=[{"name": "lookup_order", "arguments": {"order_id": "1042"}, "times": 1}], tokens=900, answer="24 November")


def test_the_whole_trace_is_a_literal(chat):
    """The agent's own script: two tools run side by side, then the model answers."""
    trace = chat().send("Is the desk lamp in stock, and what does shipping to Norway cost?")
    assert trace.tree("gen_ai.usage.input_tokens") == {
        "name": "invoke_agent support",
        "children": [
            {"name": "chat support-script", "attributes": {"gen_ai.usage.input_tokens": 408}},
            {"name": "execute_tool check_stock"},
            {"name": "execute_tool quote_shipping"},
            {"name": "chat support-script", "attributes": {"gen_ai.usage.input_tokens": 492}},
        ],
    }


@pytest.mark.holodeck(sequential_ids=True, fake_clock=True)
def test_ids_and_times_are_the_same_in_every_run(chat, telemetry):
    """With sequential ids and a fake clock nothing is left to chance."""
    trace = chat(script=["Hello."]).send("Hi")
    assert trace.result.trace_id == f"{1:032x}"
    assert trace.duration == 0.003
    assert [span.span_id for span in telemetry.spans] == [f"{2:016x}", f"{1:016x}"]


def test_a_failing_tool_does_not_fail_the_turn(chat):
    """The carrier's service is down: an error span with its type, and an answer all the same."""
    trace = chat().send("Track the parcel of order 1042")
    assert trace.error is None
    assert [span.attributes["error.type"] for span in trace.errors] == ["ConnectionError"]


def test_a_failing_model_does(chat):
    """A provider's fault is an error of the turn; the conversation goes on."""
    conversation = chat(script=[{"fault": {"status": 503}}, "Here I am again."])
    assert conversation.send("Hello?").error.error_type == "503"
    assert conversation.send("Hello?").text == "Here I am again."


def test_a_recording_plays_what_a_model_answered(chat):
    """Tools are not run, and the spans are those of the recorded model."""
    trace = chat(script="recordings/order.yaml", replay_tools=True).send("Where is order 1042?")
    assert json.loads(trace.tool("lookup_order").result)["parcel"] == "NO-5531-77"
    assert {span.attributes["gen_ai.response.model"] for span in trace.spans(operation="chat")} == {"gpt-4o-mini-2024-07-18"}


def test_metrics_are_there_too(chat, telemetry):
    """Each request counts its input and its output tokens."""
    chat(script=[SHIPPED]).send("Where is order 1042?")
    assert sorted(point.sum for point in telemetry.metrics["gen_ai.client.token.usage"]) == [15, 450]


def test_asynchronous_tests_await(chat):
    """In an ``async def`` test (pytest-asyncio, anyio) it is ``await conversation.asend(...)``."""

    async def conversation():
        talk = chat(script=["Hello.", "Goodbye."])
        return [(await talk.asend(text)).text for text in ("Hi", "Bye")]

    assert asyncio.run(conversation()) == ["Hello.", "Goodbye."]
