"""What a span says about itself."""

import math

import pytest

from traces.spans import chat, record


def test_duration_is_in_seconds_and_never_negative() -> None:
    """Half a second is 0.5; an end before the start is 0."""
    assert record(1, None, "a", 0, 500).duration == 0.5
    assert record(1, None, "a", 500, 0).duration == 0.0


def test_failed_follows_the_status() -> None:
    """Only the status makes a failure, an attribute does not."""
    assert record(1, None, "a", 0, 1, error=("timeout", "")).failed
    assert not record(1, None, "a", 0, 1, attributes={"error.type": "timeout"}).failed


def test_operation_is_text() -> None:
    """The operation is "" where it is missing or no text."""
    assert chat(1, None, 0, 1).operation == "chat"
    assert record(1, None, "a", 0, 1).operation == ""
    assert record(1, None, "a", 0, 1, attributes={"gen_ai.operation.name": ["chat"]}).operation == ""


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (12, 12),
        (0, 0),
        ("12", 12),
        (12.0, 12),
        (-1, None),
        (True, None),
        (math.nan, None),
        (math.inf, None),
        ("many", None),
        (2**64, None),
        (None, None),
    ],
)
def test_token_counts(value, tokens) -> None:
    """A count is a number that is not negative, also as text; anything else is unknown, not 0."""
    assert record(1, None, "a", 0, 1, attributes={"gen_ai.usage.input_tokens": value}).input_tokens == tokens


def test_old_names_of_usage_are_read() -> None:
    """Older writers say prompt and completion; the current names win where both stand."""
    old = {"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 6}
    span = record(1, None, "a", 0, 1, attributes=old)
    assert (span.input_tokens, span.output_tokens) == (5, 6)
    assert record(1, None, "a", 0, 1, attributes={**old, "gen_ai.usage.input_tokens": 7}).input_tokens == 7


def test_which_spans_ask_a_model() -> None:
    """An operation decides; without one, usage does."""
    assert chat(1, None, 0, 1).asks_model
    assert record(1, None, "a", 0, 1, attributes={"gen_ai.usage.prompt_tokens": 5}).asks_model
    assert not record(1, None, "invoke_agent a", 0, 1, attributes={"gen_ai.usage.input_tokens": 5}).asks_model
    assert not record(1, None, "GET /", 0, 1).asks_model


@pytest.mark.parametrize(
    ("attributes", "operation", "asks_model"),
    [
        ({"openinference.span.kind": "LLM"}, "chat", True),
        ({"openinference.span.kind": "TOOL"}, "execute_tool", False),
        ({"openinference.span.kind": "AGENT", "llm.token_count.prompt": 9}, "invoke_agent", False),
        ({"openinference.span.kind": "CHAIN", "llm.token_count.prompt": 9}, "chain", False),
        ({"openinference.span.kind": "EMBEDDING"}, "embeddings", True),
        ({"llm.request.type": "chat"}, "chat", True),
        ({"llm.request.type": "completion"}, "text_completion", True),
        ({"traceloop.span.kind": "tool"}, "execute_tool", False),
        ({"traceloop.span.kind": "workflow", "gen_ai.usage.prompt_tokens": 9}, "invoke_workflow", False),
        ({"traceloop.span.kind": "tool", "gen_ai.operation.name": "chat"}, "chat", True),
        ({"openinference.span.kind": 7}, "", False),
    ],
)
def test_kinds_of_older_writers(attributes, operation, asks_model) -> None:
    """What says which operation it is; a total on a span above the requests is not counted again."""
    span = record(1, None, "a", 0, 1, attributes=attributes)
    assert (span.operation, span.asks_model) == (operation, asks_model)


def test_usage_of_other_writers() -> None:
    """OpenInference and the first OpenLLMetry have names of their own for tokens."""
    open_inference = {"prompt": 5, "completion": 6, "prompt_details.cache_read": 4}
    span = record(1, None, "a", 0, 1, attributes={f"llm.token_count.{key}": value for key, value in open_inference.items()})
    assert (span.input_tokens, span.output_tokens, span.cached_tokens) == (5, 6, 4)
    span = record(1, None, "a", 0, 1, attributes={"llm.usage.prompt_tokens": "5", "llm.usage.completion_tokens": 6})
    assert (span.input_tokens, span.output_tokens) == (5, 6)
