"""What holds for every model: refused assignments, hidden values, numbers, frozen contents."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from holodeck.backends.script import ScriptedUsage, When
from holodeck.models.agent import AgentConfig, Instructions, McpTool
from holodeck.models.base import MAX_INT
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelReply, ToolCall
from holodeck.models.llm import LLMConfig
from holodeck.models.observability import ObservabilityConfig, OtlpTarget, TelemetryStatistics
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution, ToolSpec

OPENAI = {"provider": "openai", "name": "m"}
LOCAL = {"provider": "local", "name": "m"}


@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        (lambda: LLMConfig.model_validate(LOCAL), "endpoint", "http://x"),
        (lambda: LLMConfig.model_validate(OPENAI), "name", " "),
        (lambda: LLMConfig.model_validate(OPENAI), "provider", "local?"),
        (lambda: Instructions(inline="x"), "file", "y"),
        (lambda: Instructions(inline="x"), "inline", None),
        (lambda: McpTool(type="mcp", name="t", command="x"), "transport", "http"),
        (lambda: AgentConfig.model_validate({"name": "a", "model": LOCAL}), "name", " "),
        (lambda: ScriptedUsage(prompt_tokens=MAX_INT, completion_tokens=0), "completion_tokens", 1),
        (lambda: When(user="a"), "user", "(?=x)"),
        (lambda: When(user="a"), "colour", "red"),
    ],
)
def test_an_assignment_that_is_refused_changes_nothing(make: Callable[[], BaseModel], field: str, value: Any) -> None:
    """Whether a field or the model as a whole says no: afterwards the object is as it was, and can be used and changed."""
    model, before = make(), make()
    with pytest.raises(ValueError, match=r"."):
        setattr(model, field, value)
    assert model == before
    assert model.model_dump() == before.model_dump()
    assert model.model_fields_set == before.model_fields_set
    assert model.__pydantic_private__ == before.__pydantic_private__
    for name in model.model_fields_set:
        setattr(model, name, getattr(model, name))


def test_an_assignment_that_is_allowed_is_kept() -> None:
    """A value takes its checked form, and counts as said; a pattern follows its text."""
    model = LLMConfig.model_validate(OPENAI)
    model.max_tokens = "10"  # type: ignore[assignment]
    assert (model.max_tokens, "max_tokens" in model.model_fields_set) == (10, True)
    when = When(user="a")
    when.user = "b"
    assert (when.fits("b", 1), when.fits("a", 1)) == (True, False)
    when.user = None
    assert when.fits("c", 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LLMConfig.model_validate(OPENAI | {"endpoint": "http://u:hunter2@h:99999"}),
        lambda: LLMConfig.model_validate(OPENAI | {"api_key": ["hunter2"]}),
        lambda: setattr(LLMConfig.model_validate(OPENAI), "endpoint", "hunter2"),
        lambda: McpTool(type="mcp", name="t", transport="http", url="http://u:hunter2@[::1"),
        lambda: AgentConfig.model_validate({"name": "a", "model": OPENAI | {"endpoint": "hunter2"}}),
    ],
)
def test_what_is_refused_is_not_in_the_error(make: Callable[[], Any]) -> None:
    """It may be a secret, and errors end up in logs."""
    with pytest.raises(ValidationError) as caught:
        make()
    assert "hunter2" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("number", [MAX_INT + 1, -MAX_INT - 1, 10**400])
def test_an_integer_fits_in_64_bits(number: int) -> None:
    """Telemetry cannot carry a larger one, and loses the whole span for it."""
    for make in (
        lambda: LLMConfig.model_validate(OPENAI | {"max_tokens": number}),
        lambda: TokenUsage(prompt_tokens=number, completion_tokens=0, total_tokens=number),
        lambda: ScriptedUsage(prompt_tokens=0, completion_tokens=0, cached_tokens=number),
        lambda: ObservabilityConfig(resource_attributes={"build": number}),
    ):
        with pytest.raises(ValidationError, match=r"at most 9,223,372,036,854,775,807|greater than|at least -9|64 bits"):
            make()
    assert LLMConfig.model_validate(OPENAI | {"max_tokens": MAX_INT}).max_tokens == MAX_INT
    assert ObservabilityConfig(resource_attributes={"a": MAX_INT, "b": True}).resource_attributes == {"a": MAX_INT, "b": True}


CALL = ToolExecution(tool_name="t", parameters={"a": {"b": [1, {"c": 2}]}})
LISTS: list[Callable[[], list[Any]]] = [
    lambda: TurnResult(number=1, tool_calls=[CALL]).tool_calls,
    lambda: TurnResult(number=1).requests,
    lambda: ModelReply(tool_calls=[ToolCall(id="1", name="t")]).tool_calls,
    lambda: CALL.parameters["a"]["b"],
]
DICTS: list[Callable[[], dict[str, Any]]] = [
    lambda: CALL.parameters,
    lambda: CALL.parameters["a"],
    lambda: CALL.parameters["a"]["b"][1],
    lambda: ToolExecution(tool_name="t").parameters,
    lambda: ToolSpec(name="t").parameters,
    lambda: ToolSpec(name="t").parameters["properties"],
    lambda: OtlpTarget(url="http://x", protocol="grpc").headers,
    lambda: TelemetryStatistics(dropped={"expired": 1}).dropped,
]
CHANGES_OF_LISTS: list[Callable[[list[Any]], Any]] = [
    lambda x: x.append(1),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.pop(),
    lambda x: x.remove(1),
    lambda x: x.clear(),
    lambda x: x.sort(key=str),
    lambda x: x.reverse(),
    lambda x: x.__setitem__(slice(0, 0), [1]),
    lambda x: x.__delitem__(slice(0, 1)),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
]
CHANGES_OF_DICTS: list[Callable[[dict[str, Any]], Any]] = [
    lambda x: x.update(z=1),
    lambda x: x.setdefault("z", 1),
    lambda x: x.pop("a", None),
    lambda x: x.popitem(),
    lambda x: x.clear(),
    lambda x: x.__setitem__("z", 1),
    lambda x: x.__delitem__("a"),
    lambda x: x.__ior__({"z": 1}),
]


@pytest.mark.parametrize("take", LISTS)
@pytest.mark.parametrize("change", CHANGES_OF_LISTS)
def test_a_list_in_a_frozen_value_stays_as_it_is(take: Callable[[], list[Any]], change: Callable[[list[Any]], Any]) -> None:
    """Each way to change it is refused, at any depth, in defaults too; it is a list all the same."""
    found = take()
    before = list(found)
    with pytest.raises(TypeError, match="this list is part of a frozen value"):
        change(found)
    assert found == before
    assert isinstance(found, list)


@pytest.mark.parametrize("take", DICTS)
@pytest.mark.parametrize("change", CHANGES_OF_DICTS)
def test_a_mapping_in_a_frozen_value_stays_as_it_is(take: Callable[[], dict[str, Any]], change: Callable[[dict[str, Any]], Any]) -> None:
    """The same for mappings."""
    found = take()
    before = dict(found)
    with pytest.raises(TypeError, match="this dict is part of a frozen value"):
        change(found)
    assert found == before
    assert isinstance(found, dict)


def test_every_way_to_change_a_list_or_a_mapping_is_refused() -> None:
    """No method that changes one is left over: what these types have beyond tuples and mapping proxies is refused, copying aside."""
    for plain, reading in (
        (list, {"copy", "__reversed__"}),
        (dict, {"copy", "fromkeys", "get", "items", "keys", "values", "__or__", "__ror__"}),
    ):
        kind = type(CALL.parameters if plain is dict else CALL.parameters["a"]["b"])
        changing = set(dir(plain)) - set(dir(tuple)) - reading
        assert changing
        assert {name for name in changing if getattr(kind, name) is getattr(plain, name)} <= {"__class_getitem__", "__reversed__"}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.model_copy(deep=True)])
def test_frozen_values_can_be_copied_and_written(copied: Callable[[ToolExecution], ToolExecution]) -> None:
    """A copy is equal and as frozen; what is written out is plain."""
    again = copied(CALL)
    assert again == CALL
    with pytest.raises(TypeError, match="frozen"):
        again.parameters["a"]["b"].append(1)
    assert json.loads(CALL.model_dump_json())["parameters"] == json.loads(json.dumps(CALL.parameters)) == {"a": {"b": [1, {"c": 2}]}}
    plain = CALL.model_dump()["parameters"]
    assert [type(each) for each in (plain, plain["a"], plain["a"]["b"], plain["a"]["b"][1])] == [dict, dict, list, dict]


def test_what_was_handed_in_is_not_frozen() -> None:
    """The caller's own containers stay theirs, and changing them later changes no value."""
    inner: dict[str, Any] = {"type": "object", "properties": {"x": {}}}
    spec = ToolSpec(name="t", parameters=inner)
    inner["properties"]["y"] = {}
    assert spec.parameters == {"type": "object", "properties": {"x": {}}}
