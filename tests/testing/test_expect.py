"""Expectations on what an agent did: each holds where it should, and its failure says what was found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holodeck.models.chat import Message, MessageRole
from holodeck.models.cost import RequestUsage
from holodeck.models.events import TurnError, TurnResult
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import Prices
from holodeck.testing.expect import read_expectations
from holodeck.testing.matching import is_like
from holodeck.testing.outcome import Outcome
from holodeck.traces import SpanRecord


def execution(name: str, *, result: str | None = "ok", error: str = "", **arguments: Any) -> ToolExecution:
    """A tool call that has ended."""
    call = ToolExecution(tool_name=name, parameters=arguments)
    return call.failed(error) if error else call.running().succeeded(result)


def turn(*calls: ToolExecution, answer: str = "It shipped.", **more: Any) -> TurnResult:
    """A turn with two model requests."""
    usage = [TokenUsage.of(100, 10), TokenUsage.of(200, 20, cached_tokens=100)]
    requests = [RequestUsage(provider="openai", model="gpt-x-2026", usage=each) for each in usage]
    values: dict[str, Any] = {
        "message": Message(role=MessageRole.ASSISTANT, content=answer),
        "usage": usage[0] + usage[1],
        "model_requests": 2,
        "requests": requests,
        "duration": 1.5,
    }
    return TurnResult(number=1, tool_calls=list(calls), **(values | more))


def span(**attributes: Any) -> SpanRecord:
    """A span of which only the attributes matter."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return SpanRecord("t", "s", "", "chat gpt-x", 3, 1, 2, named, 0, "", (), (), {}, "holodeck")


SPANS = [
    span(gen_ai__operation__name="chat", gen_ai__request__model="gpt-x", gen_ai__response__model="gpt-x-2026"),
    span(error__type="timeout", holodeck__tool__status="failed"),
]
LOOK_UP, CHECK = execution("lookup", order_id="1042", deep={"a": [1, 2]}), execution("check", result='{"n": 12}')
BROKEN = execution("track", error="the carrier's service is down")


def failures(expected: dict[str, Any], *results: TurnResult, **prices: Any) -> list[str]:
    """What does not hold, as sentences."""
    outcome = Outcome(results or [turn(LOOK_UP, CHECK, BROKEN)], SPANS, Prices.of(prices))
    return [failure.text for failure in read_expectations(expected).failures(outcome)]


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"tools": ["check", "lookup"]},
        {"tools": [{"name": "lookup", "arguments": {"order_id": "1042"}, "times": 1}]},
        {"tools": [{"name": "lookup", "arguments": {"order_id": {"pattern": "^10[0-9]{2}$"}}}]},
        {"tools": [{"name": "lookup", "arguments": {"order_id": {"contains": "04"}, "deep": {"json_schema": {"required": ["a"]}}}}]},
        {"tools": [{"name": "lookup", "arguments": {"deep": {"a": [1, 2]}}}, {"name": "lookup", "times": {"max": 1}}]},
        {"tools": [{"name": "track", "status": "failed"}, {"name": "check", "result": '"n": 12', "status": "success"}]},
        {"tools": [{"name": "other", "times": 0}]},
        {"order": "exact", "tools": ["lookup", "check", "track"]},
        {"never": ["refund", "cancel_*", "l[o]okup", "looku?"]},
        {"order": "exact", "tools": ["lookup", "check", {"name": "track", "arguments": {}}]},
        {"tools": [{"name": "lookup", "arguments": {"order_id": {"equals": "1042"}}}]},
        {"answer": "shipped"},
        {"answer": {"equals": "It shipped.", "contains": ["It", "ship"], "excludes": "sorry", "pattern": "(?i)SHIPPED[.]$"}},
        {"tokens": 330, "input_tokens": {"min": 300}, "output_tokens": {"equals": 30}},
        {"duration": 2, "requests": 2},
        {"attributes": {"error.type": "timeout", "gen_ai.request.model": {"pattern": "^gpt"}}},
    ],
)
def test_what_holds(expected: dict[str, Any]) -> None:
    """No failure."""
    assert failures(expected) == []


@pytest.mark.parametrize(
    ("expected", "sentences"),
    [
        ({"tools": ["refund"]}, ["tools: refund() was not called; the nearest call is"]),
        (
            {"tools": [{"name": "lookup", "arguments": {"order_id": "1043"}}]},
            ['lookup(order_id="1043") was not called; the nearest call is lookup(order_id="1042"', 'order_id: expected "1043", got "1042"'],
        ),
        ({"tools": [{"name": "lookup", "arguments": {"id": 1}}]}, ["id was not given"]),
        ({"tools": [{"name": "lookup", "arguments": {"deep": {"a": [1, True]}}}]}, ["deep: expected"]),
        (
            {"tools": [{"name": "lookup", "arguments": {"deep": {"json_schema": {"required": ["b"]}}}}]},
            ["deep: does not fit the JSON Schema: 'b' is a required property"],
        ),
        ({"tools": [{"name": "lookup", "times": 2}]}, ["tools: lookup(): expected exactly 2, got 1 calls"]),
        ({"tools": ["lookup", "lookup"]}, ["lookup() was not called; the nearest call is", "it counts for another expectation"]),
        ({"tools": [{"name": "track", "status": "success"}]}, ["its status is failed (the carrier's service is down)"]),
        ({"tools": [{"name": "check", "result": {"pattern": "13"}}]}, ["result: expected something like '13'"]),
        (
            {"order": "exact", "tools": ["check", "lookup", "track"]},
            ["order: call 1: it is lookup\n  - check(), lookup(), track()\n  + lookup("],
        ),
        ({"order": "exact", "tools": []}, ["order: expected 0 calls, got 3\n  - no calls\n  + lookup("]),
        ({"never": ["look*"]}, ["never: look* was called: lookup("]),
        ({"answer": {"equals": "No."}}, ["answer.equals: expected 'No.'; the answer is 'It shipped.'"]),
        ({"answer": {"excludes": ["ship"]}}, ["answer.excludes: 'ship' is in it"]),
        ({"answer": {"pattern": "^ship"}}, ["answer.pattern: nothing in it is like '^ship'"]),
        ({"answer": {"json_schema": {"type": "object"}}}, ["answer.json_schema: it is not JSON"]),
        ({"tokens": 329}, ["tokens: expected at most 329, got 330"]),
        ({"input_tokens": {"min": 301}}, ["input_tokens: expected at least 301, got 300"]),
        ({"duration": 1}, ["duration: expected at most 1, got 1.5 s"]),
        ({"requests": 1}, ["requests: expected exactly 1, got 2"]),
        ({"error": "429"}, ["error: expected the turn to fail with '429', and it did not"]),
        ({"attributes": {"error.type": "429"}}, ['attributes: error.type: expected "429", got "timeout"']),
        ({"attributes": {"holodeck.x": 1}}, ["attributes: no span has holodeck.x"]),
        ({"cost": 1}, ["cost: the cost is unknown: no price is known for the model 'gpt-x-2026': add it to 'prices'"]),
    ],
)
def test_what_does_not_hold(expected: dict[str, Any], sentences: list[str]) -> None:
    """One failure, and its sentence."""
    (found,) = failures(expected)
    assert [sentence for sentence in sentences if sentence not in found] == []


def test_claims_are_shared_out_so_that_all_hold_that_can() -> None:
    """A call that fits two expectations is given to the one that has no other."""
    calls = [execution("lookup", id=1), execution("lookup", id=2)]
    assert failures({"tools": ["lookup", {"name": "lookup", "arguments": {"id": 1}}]}, turn(*calls)) == []
    assert failures({"tools": [{"name": "lookup", "arguments": {"id": 1}}, "lookup"]}, turn(*calls)) == []


def test_a_turn_that_fails_is_a_failure_unless_it_is_expected() -> None:
    """Nothing else has to be expected for that."""
    failed = turn(message=None, error=TurnError(error_type="429", message="too many requests"))
    assert failures({}, failed) == ["error: the turn failed: too many requests"]
    assert failures({"error": "429"}, failed) == failures({"error": "any"}, failed) == []
    assert failures({"error": "500"}, failed) == ["error: expected '500', got '429': too many requests"]
    assert failures({"answer": "x", "error": "429"}, failed) == ["answer.contains: 'x' is not in it; there is no answer"]


def test_a_case_is_all_its_turns_together() -> None:
    """Tools, tokens, durations and requests add up; the answer is the last one's."""
    turns = [turn(LOOK_UP, answer="One."), turn(CHECK, answer="Two.")]
    together = {
        "order": "exact",
        "tools": ["lookup", "check"],
        "tokens": {"equals": 660},
        "duration": {"min": 3},
        "requests": 4,
        "answer": "Two.",
    }
    assert failures(together, *turns) == []
    assert failures({"answer": "One."}, *turns) != []


def test_what_is_unknown_does_not_hold() -> None:
    """Tokens that were not reported are not few."""
    silent = turn(usage=None, requests=[RequestUsage(provider="ollama", model="q", usage=None)])
    assert failures({"tokens": 1000}, silent) == ["tokens: unknown: a model request did not report its tokens"]
    assert failures({"cost": 1}, silent, q={"input": 1, "output": 1}) == ["cost: the cost is unknown: a request did not report its tokens"]


def test_prices_count_cached_tokens_once() -> None:
    """By the name that was asked for or that answered: (100 + 100) at 1, 100 at 0.5, 30 at 2 dollars a million."""
    price = {"input": 1, "output": 2, "cached_input": 0.5}
    exactly = {"cost": {"equals": 0.00031}}
    assert failures(exactly, **{"gpt-x": price}) == failures(exactly, **{"gpt-x-2026": price}) == []
    assert failures({"cost": 0.0003}, **{"gpt-x": price}) == ["cost: expected at most 0.0003, got 0.00031"]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"toolz": []}, "toolz: unknown key; did you mean 'tools'?"),
        ({"tools": [{"nam": "x"}]}, "tools[0].nam: unknown key; did you mean 'name'?"),
        ({"tools": [{"name": "x", "times": {"maximum": 1}}]}, "tools[0].times.maximum: unknown key"),
        (
            {"tools": [{"name": "x", "arguments": {"a": {"pattern": "("}}}]},
            "tools[0].arguments.a.pattern: not a pattern of RE2, which has no look-around and no back-references: missing )",
        ),
        ({"answer": {"pattern": "a(?=b)"}}, "answer.pattern: not a pattern of RE2, which has no look-around and no back-references: "),
        ({"answer": {"pattern": "a(?=b)"}}, "invalid perl operator '(?=' at character 2"),
        ({"attributes": {"x": {"pattern": r"(a)\1"}}}, r"attributes.x.pattern: not a pattern of RE2, which has no look-around"),
        ({"attributes": {"x": {"pattern": r"(a)\1"}}}, r"invalid escape sequence '\1' at character 4"),
        ({"tools": [{"name": "x", "result": {"contains": 20}}]}, "tools[0].result.contains: must be text"),
        ({"tools": [20]}, "tools[0]: must be text"),
        ({"tools": [["x"]]}, "tools[0]: must be the name of a tool, or a mapping with 'name'"),
        ({"tools": []}, "expect: an empty list of 'tools' expects nothing: with 'order: exact' it means that none is called"),
        ({"order": "exact", "tools": [{"name": "x", "times": 2}]}, "'times' means nothing with 'order: exact'"),
        ({"never": []}, "never: needs at least 1 entry"),
        ({"attributes": {}}, "attributes: "),
        ({"answer": None}, "answer: there is no value: write one, or take the key out"),
        ({"tokens": {"min": 1, "max": None}}, "tokens.max: there is no value"),
        ({"tools": [{"name": "x", "arguments": {"a": {"pattern": None}}}]}, "tools[0].arguments.a.pattern: there is no value"),
        ({"answer": {}}, "answer: needs one of equals, contains, excludes, pattern, json_schema"),
        ({"answer": ""}, "answer: must be text that is not empty"),
        ({"answer": {"excludes": []}}, "answer.excludes: needs at least 1 entry"),
        ({"answer": ["x"]}, "answer: must be text, or a mapping of 'contains', 'pattern' and others"),
        ({"tokens": "20"}, "tokens: must be a number, or a mapping of 'min', 'max' and 'equals'"),
        ({"answer": {"json_schema": {"$schema": 5}}}, "answer.json_schema: this is not a JSON Schema at $schema: must be text"),
        (
            {"answer": {"json_schema": {"properties": {"a": {"type": "strnig"}}}}},
            "at properties.a.type: 'strnig' is no type: use string, number, integer, boolean, object, array or null",
        ),
        (
            {"tools": [{"name": "x", "arguments": {"a": {"json_schema": {"type": "str"}}}}]},
            "'str' is not a JSON Schema type: write 'string'",
        ),
        ({"order": "exact"}, "'order: exact' needs 'tools'"),
        ({"order": "some"}, "order: 'some' is unknown: use any or exact"),
        ({"tokens": True}, "tokens: must be a number"),
        ({"tokens": {}}, "tokens: needs one of 'min', 'max' and 'equals'"),
        ({"answer": {"contain": "x"}}, "answer.contain: unknown key; did you mean 'contains'?"),
        ({"answer": 3}, "answer: must be text"),
    ],
)
def test_an_expectation_that_means_nothing_is_refused(expected: dict[str, Any], message: str) -> None:
    """With the key, and what there is; what would hold whatever happens is none."""
    with pytest.raises(ValueError, match=r".") as refused:
        read_expectations(expected)
    assert message in str(refused.value)


def test_what_is_said_of_a_schema_is_short() -> None:
    """However large the answer is, one sentence of whole words says where it does not fit, and how."""
    wide = {f"key {n}": f"value {n}" for n in range(500)}
    (found,) = failures({"answer": {"json_schema": {"properties": {"a": {"maxProperties": 1}}}}}, turn(answer=json.dumps({"a": wide})))
    sentence = found.partition("; the answer is")[0]
    assert sentence.startswith("answer.json_schema: does not fit the JSON Schema at a: ")
    assert len(sentence) < 300
    assert not sentence.endswith(("key", "valu", "val"))


@pytest.mark.parametrize(
    ("text", "pattern", "like"),
    [
        ("lookup", "look*", True),
        ("lookup", "*", True),
        ("lookup", "LOOK*", False),
        ("lookup", "look", False),
        ("a [1] b?", "a [1] b?", True),
        ("a 1 bx", "a [1] b?", False),
        ("two\nlines", "two*lines", True),
        ("aXbXc", "a*X*c", True),
        ("ab", "ab*b", False),
        ("abcb", "ab*b", True),
        ("a" * 100_000, "*a*a*a*a*b", False),
    ],
)
def test_a_star_stands_for_anything_and_nothing_else_does(text: str, pattern: str, like: bool) -> None:
    """Brackets and question marks, which names may hold, are what they are."""
    assert is_like(text, pattern) is like
