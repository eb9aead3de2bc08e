"""Captured content as text."""

import pytest

from holodeck.traces.content import content_of
from holodeck.traces.names import holds_content
from traces.spans import record

CALL = '{"type":"tool_call","id":"c","name":"lookup","arguments":{"id":7}}'
ANSWER = '{"type":"tool_call_response","id":"c","response":{"ok":true}}'


def shown(key: str, value: object) -> str:
    """The text of the one field that a span carries."""
    ((_, text),) = content_of(record(1, None, "s", 0, 1, attributes={key: value}))
    return text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]', "a b"),
        ([{"role": "user", "parts": [{"type": "text", "content": "structured"}]}], "structured"),
        ('[{"role":"user","content":"old form"}]', "old form"),
        (f'[{{"role":"assistant","parts":[{CALL}]}}]', 'lookup({"id": 7})'),
        (f'[{{"role":"tool","parts":[{ANSWER}]}}]', 'tool: {"ok": true}'),
        ("just text", "just text"),
        ('{"unknown": 1}', '{"unknown": 1}'),
        ("[1, null]", "[1, null]"),
        ('[{"role":7,"parts":[null,{"type":"blob"}]}]', '[{"role":7,"parts":[null,{"type":"blob"}]}]'),
        ("[" * 100_000, "[" * 100_000),
        (12, "12"),
        ({1: object()}, '{"1": "<object>"}'),
        ({(): 1}, "<dict>"),
    ],
)
def test_messages_are_read_as_what_was_said(value, text) -> None:
    """Text parts are joined, tool calls look like calls; what is no message is shown as it stands."""
    assert shown("gen_ai.output.messages", value) == text


def test_of_the_input_only_the_last_message_is_shown() -> None:
    """Each request repeats the conversation; what is new in it is its end."""
    assert shown("gen_ai.input.messages", '[{"role":"user","content":"first"},{"role":"user","content":"last"}]') == "last"


def test_arguments_are_never_taken_for_messages() -> None:
    """A tool may well have a parameter with the name of a message field."""
    assert shown("gen_ai.tool.call.arguments", '{"content": "x", "to": "y"}') == '{"content": "x", "to": "y"}'


def test_fields_have_an_order_and_old_names() -> None:
    """System, input, arguments, result, output; older names stand for input and output."""
    attributes = {"gen_ai.completion": "out", "gen_ai.prompt": "in", "gen_ai.tool.call.result": "r", "gen_ai.system_instructions": "s"}
    span = record(1, None, "s", 0, 1, attributes=attributes)
    assert list(content_of(span)) == [("system", "s"), ("input", "in"), ("result", "r"), ("output", "out")]


def test_no_captured_content_is_nothing() -> None:
    """A span without content has no lines."""
    assert list(content_of(record(1, None, "s", 0, 1))) == []


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        ({"gen_ai.prompt.0.content": "first", "gen_ai.prompt.1.content": "last", "gen_ai.prompt.1.role": "user"}, [("input", "last")]),
        (
            {"llm.input_messages.0.message.content": "in", "llm.output_messages.0.message.content": "out"},
            [("input", "in"), ("output", "out")],
        ),
        ({"llm.input_messages.0.message.content": "said", "input.value": '{"a": 1}'}, [("input", '{"a": 1}')]),
        ({"traceloop.entity.input": "in", "tool.parameters": '{"id": 7}'}, [("input", "in"), ("arguments", '{"id": 7}')]),
    ],
)
def test_content_of_other_writers(attributes, fields) -> None:
    """OpenInference and OpenLLMetry: one attribute for all, or one for each message; of the input the last one is shown."""
    assert list(content_of(record(1, None, "s", 0, 1, attributes=attributes))) == fields


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("gen_ai.input.messages", True),
        ("gen_ai.prompt.3.content", True),
        ("llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments", True),
        ("output.value", True),
        ("gen_ai.prompt_tokens", False),
        ("llm.model_name", False),
    ],
)
def test_what_may_hold_content(key, content) -> None:
    """Whatever is left out where content is not wanted."""
    assert holds_content(key) is content
