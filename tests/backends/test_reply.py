"""A reply put together from chunks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holodeck.backends.reply import ReplyBuilder, may_be_written_call
from holodeck.models.exchange import ToolCall
from holodeck.models.token_usage import TokenUsage


def chunk(*items: Any, finish: str | None = None, usage: Any = None, raw: Any = None) -> list[Any]:
    """A chunk with the attributes that Semantic Kernel's have."""
    reason = SimpleNamespace(value=finish) if finish else None
    return [SimpleNamespace(items=items, finish_reason=reason, metadata={"usage": usage}, inner_content=raw)]


def text(value: str) -> Any:
    """A text item."""
    return SimpleNamespace(content_type="text", text=value)


def call(arguments: Any, *, index: int | None = None, identity: str | None = None, name: str | None = None) -> Any:
    """A tool call delta."""
    return SimpleNamespace(content_type="function_call", id=identity, index=index, name=name, arguments=arguments)


def test_text_and_calls_are_joined() -> None:
    """Text is joined in order, parallel calls by their index, also when their deltas alternate."""
    builder = ReplyBuilder()
    shown = [
        builder.add(part)
        for part in (
            chunk(text("Let me ")),
            chunk(text("look.")),
            chunk(call("", index=0, identity="a", name="one"), call("", index=1, identity="b", name="two")),
            chunk(call('{"x": ', index=0)),
            chunk(call('{"y"', index=1)),
            chunk(call("{}", index=0)),
            chunk(call("}", index=0), call(": 1}", index=1)),
            chunk(finish="tool_calls"),
        )
    ]
    reply = builder.reply()
    assert shown[:2] == ["Let me ", "look."]
    assert reply.text == "Let me look."
    assert reply.tool_calls == [ToolCall(id="a", name="one", arguments='{"x": {}}'), ToolCall(id="b", name="two", arguments='{"y": 1}')]
    assert reply.finish_reason == "tool_calls"


def test_calls_without_index_or_id_stay_apart() -> None:
    """Providers that number nothing still get as many calls as they made, each with an id of ours."""
    builder = ReplyBuilder()
    builder.add(chunk(call({"a": 1}, name="one"), call({"b": 2}, name="two")))
    first, second = builder.reply().tool_calls
    assert (first.name, first.arguments, second.name, second.arguments) == ("one", '{"a": 1}', "two", '{"b": 2}')
    assert first.id
    assert first.id != second.id


def test_two_calls_under_one_index_stay_apart() -> None:
    """A server that numbers every call 0 but gives each an id gets both."""
    builder = ReplyBuilder()
    builder.add(chunk(call('{"a":1}', index=0, identity="a", name="one")))
    builder.add(chunk(call('{"b":2}', index=0, identity="b", name="two")))
    assert [(c.id, c.name) for c in builder.reply().tool_calls] == [("a", "one"), ("b", "two")]


def test_an_absent_value_stays_absent() -> None:
    """No id, no model, no finish reason and no usage are None, not invented."""
    builder = ReplyBuilder()
    builder.add(chunk(text("x")))
    reply = builder.reply()
    assert (reply.finish_reason, reply.response_id, reply.response_model, reply.usage) == (None, None, None, None)


@pytest.mark.parametrize("counts", [{"prompt_tokens": None, "completion_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": 3}, {}])
def test_counts_that_are_none_are_unknown(counts: dict[str, Any]) -> None:
    """A usage with a missing or negative count is no usage."""
    builder = ReplyBuilder()
    builder.add(chunk(usage=SimpleNamespace(**counts)))
    assert builder.reply().usage is None


BAD_COUNTS: list[Any] = [-1, 2**63, 2**70, True, 12.0, 12.5, float("inf"), float("nan"), "12", [], {}]


@pytest.mark.parametrize("bad", BAD_COUNTS)
def test_a_count_that_is_none_or_too_large_is_unknown(bad: Any) -> None:
    """Only whole numbers of at most 64 bits count; a part that means nothing is left out, and the rest is kept."""

    def usage_of(prompt: Any, completion: Any, cached: Any = None, spent: Any = None) -> TokenUsage | None:
        builder = ReplyBuilder()
        details = {"prompt_tokens_details": SimpleNamespace(cached_tokens=cached)}
        details["completion_tokens_details"] = SimpleNamespace(reasoning_tokens=spent)
        builder.add(chunk(usage=SimpleNamespace(prompt_tokens=prompt, completion_tokens=completion, **details)))
        return builder.reply().usage

    assert usage_of(bad, 3) is None
    assert usage_of(3, bad) is None
    assert usage_of(3, 4, bad, bad) == TokenUsage.of(3, 4)
    assert usage_of(3, 4, 1, 2) == TokenUsage.of(3, 4, cached_tokens=1, reasoning_tokens=2)


def test_a_total_over_64_bits_is_unknown() -> None:
    """Two counts that each fit may not fit together."""
    for prompt, known in ((2**62, False), (2**62 - 1, True)):
        builder = ReplyBuilder()
        builder.add(chunk(usage=SimpleNamespace(prompt_tokens=prompt, completion_tokens=2**62)))
        assert (builder.reply().usage is not None) is known
    builder = ReplyBuilder()
    usage = SimpleNamespace(input_tokens=2**62, cache_read_input_tokens=2**62, cache_creation_input_tokens=0, output_tokens=1)
    builder.add(chunk(raw=SimpleNamespace(message=SimpleNamespace(id="m", model="c", usage=usage))))
    assert builder.reply().usage is None


@pytest.mark.parametrize("bad", BAD_COUNTS)
def test_the_counts_of_an_earlier_chunk_do_not_stand_in_for_bad_ones(bad: Any) -> None:
    """The first chunk's one output token is not the number of the answer's."""
    builder = ReplyBuilder()
    start = SimpleNamespace(input_tokens=100, output_tokens=1)
    builder.add(chunk(raw=SimpleNamespace(message=SimpleNamespace(id="m", model="c", usage=start))))
    builder.add(chunk(raw=SimpleNamespace(usage=SimpleNamespace(input_tokens=None, output_tokens=bad))))
    assert builder.reply().usage is None
    for bad_part in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        builder = ReplyBuilder()
        usage = {"input_tokens": 1, "output_tokens": 1} | {bad_part: bad}
        builder.add(chunk(raw=SimpleNamespace(message=SimpleNamespace(id="m", model="c", usage=SimpleNamespace(**usage)))))
        builder.add(chunk(raw=SimpleNamespace(usage=SimpleNamespace(output_tokens=20))))
        assert builder.reply().usage is None
    builder = ReplyBuilder()
    builder.add(chunk(usage=SimpleNamespace(prompt_tokens=5, completion_tokens=1)))
    builder.add(chunk(text("x")))
    assert builder.reply().usage == TokenUsage.of(5, 1)
    builder.add(chunk(usage=SimpleNamespace(prompt_tokens=5, completion_tokens=bad)))
    assert builder.reply().usage is None


def test_what_the_provider_sent_goes_before_what_was_made_of_it() -> None:
    """Semantic Kernel makes whole numbers of other things; the chunk has the counts as they came."""
    builder = ReplyBuilder()
    sent = SimpleNamespace(usage=SimpleNamespace(prompt_tokens=12.5, completion_tokens="5"))
    builder.add(chunk(usage=SimpleNamespace(prompt_tokens=12, completion_tokens=5), raw=sent))
    assert builder.reply().usage is None


def test_anthropic_cached_input_is_counted_in() -> None:
    """Anthropic's input_tokens leave cached input out; the prompt counts it in, once."""
    builder = ReplyBuilder()
    start = SimpleNamespace(input_tokens=100, cache_read_input_tokens=900, cache_creation_input_tokens=50, output_tokens=1)
    builder.add(chunk(raw=SimpleNamespace(message=SimpleNamespace(id="m", model="c", usage=start))))
    builder.add(chunk(raw=SimpleNamespace(usage=SimpleNamespace(input_tokens=None, output_tokens=20))))
    assert builder.reply().usage == TokenUsage.of(1050, 20, cached_tokens=900, cache_write_tokens=50)


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "lookup", "arguments": {"id": 1}}',
        '```json\n{"name": "lookup", "parameters": {"id": 1}}\n```',
        ' <tool_call>\n{"name": "lookup", "arguments": "{\\"id\\": 1}"}\n</tool_call>',
    ],
)
def test_a_call_written_as_text_is_taken_as_a_call(written: str) -> None:
    """A local model's reply that is nothing but a call as JSON becomes that call."""
    builder = ReplyBuilder()
    builder.add(chunk(text(written), finish="stop"))
    assert may_be_written_call(written[:3])
    assert builder.adopt_written_call(["lookup"])
    reply = builder.reply()
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert (reply.tool_calls[0].name, reply.tool_calls[0].arguments) == ("lookup", '{"id": 1}')


@pytest.mark.parametrize("written", ['{"name": "other", "arguments": {}}', "{not json}", 'Call {"name": "lookup"}', "[1]", '{"a": 1}'])
def test_other_json_stays_text(written: str) -> None:
    """JSON that names no configured tool is an answer like any other."""
    builder = ReplyBuilder()
    builder.add(chunk(text(written), finish="stop"))
    assert not builder.adopt_written_call(["lookup"])
    assert builder.reply().text == written


def test_surrogates_are_joined_or_replaced() -> None:
    """A pair that two chunks share becomes its character; a lone half anywhere becomes U+FFFD."""
    builder = ReplyBuilder()
    pair = "\U0001f914".encode("utf-16-be")
    halves = [pair[:2].decode("utf-16-be", "surrogatepass"), pair[2:].decode("utf-16-be", "surrogatepass")]
    assert [builder.add(chunk(text(t))) for t in (f"a{halves[0]}", f"{halves[1]}b", "c\udd14d\ud83e")] == ["a", "\U0001f914b", "c\ufffdd"]
    builder.add(chunk(call('{"x": "\ud83e"}', index=0, identity="i\ud83e", name="n\ud83e"), finish="stop"))
    reply = builder.reply()
    assert "\ufffd" in reply.text
    assert (reply.tool_calls[0].id, reply.tool_calls[0].name) == ("i\ufffd", "n\ufffd")
    reply.model_dump_json().encode("utf-8")
