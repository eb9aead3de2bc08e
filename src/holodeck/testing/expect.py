"""What is expected of a turn or a case, and what does not hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from holodeck.lib.problems import dotted, explain
from holodeck.lib.validation import shorten
from holodeck.models.events import TurnResult
from holodeck.models.token_usage import TokenUsage, total_usage
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import Prices, call_text, nearest_call, value_text
from holodeck.testing.matching import (
    AtMost,
    Exactly,
    Given,
    JsonSchema,
    Match,
    Matched,
    Pattern,
    compiled,
    is_like,
    matcher_of,
    schema_problem,
)
from holodeck.traces import SpanRecord

__all__ = ["Expect", "ExpectedAnswer", "ExpectedTool", "Failure", "Outcome", "read_expectations"]


@dataclass(frozen=True)
class Failure:
    """An expectation that does not hold.

    Attributes:
        kind: Which, e.g. ``answer.contains``; holds nothing that a model or a user said.
        reason: Why not.
    """

    kind: str
    reason: str

    @property
    def text(self) -> str:
        """Both, as one sentence."""
        return f"{self.kind}: {self.reason}"


@dataclass
class Outcome:
    """What is looked at: one turn, or all turns of a case.

    Attributes:
        results: The turns.
        spans: Their spans.
        prices: What models cost, where that is not known otherwise.
    """

    results: Sequence[TurnResult]
    spans: Sequence[SpanRecord]
    prices: Prices = field(default_factory=Prices)

    @property
    def calls(self) -> list[ToolExecution]:
        """All tool executions."""
        return [call for result in self.results for call in result.tool_calls]

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of all turns; None if any is unknown."""
        return total_usage(result.usage for result in self.results)

    @property
    def cost(self) -> float | str:
        """US dollars; a sentence that says why they are not known, if they are not."""
        return self.prices.cost(self.results, self.spans)

    @property
    def answer(self) -> str:
        """The last turn's answer; "" if there is none."""
        last = self.results[-1].message if self.results else None
        return last.content if last else ""

    @property
    def duration(self) -> float:
        """Seconds that all turns took."""
        return sum(result.duration for result in self.results)


def _short_for(key: str, advice: str) -> BeforeValidator:
    """Take a plain value for ``{key: value}``; one that is no text is refused there, with how it is written."""

    def convert(value: Any) -> Any:
        if isinstance(value, list | tuple):
            raise ValueError(f"must be {advice}")  # noqa: TRY004 - pydantic reports ValueError
        return value if isinstance(value, Mapping | BaseModel) else {key: value}

    return BeforeValidator(convert)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple | Mapping) else [value]


_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[_Text], BeforeValidator(_listed), Field(min_length=1)]
"""A text or several: an empty one stands in everything."""


class ExpectedTool(Given):
    """A tool call that is expected.

    Attributes:
        name: The tool.
        arguments: Arguments that it was called with (it may have had more): values, or ``equals``, ``contains``, ``pattern``,
            ``json_schema``.
        times: How often such a call was made; at least once by default.
        status: ``success`` or ``failed``; either by default.
        result: What it returned: as for arguments.
    """

    name: str
    arguments: dict[str, Matched] = Field(default_factory=dict)
    times: Exactly | None = None
    status: Literal["success", "failed"] | None = None
    result: Matched = None
    _matchers: dict[str, Match] = PrivateAttr(default_factory=dict)
    _result: Match | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> Self:
        self._matchers = {name: matcher_of(value) for name, value in self.arguments.items()}
        if self.result is not None:
            given = {"contains": self.result} if isinstance(self.result, str) else self.result
            self._result = matcher_of(given)
        return self

    def problem(self, call: ToolExecution) -> str:
        """What keeps ``call`` from being the one; "" if it is."""
        if call.tool_name != self.name:
            return f"it is {call.tool_name}"
        for name, matcher in self._matchers.items():
            if name not in call.parameters:
                return f"{name} was not given"
            if problem := matcher.problem(call.parameters[name]):
                return f"{name}: {problem}"
        if self.status not in (None, call.status.value):
            return f"its status is {call.status.value}" + (f" ({shorten(call.error_message, 100)})" if call.error_message else "")
        return f"result: {problem}" if self._result and (problem := self._result.problem(call.result or "")) else ""

    def missing(self, calls: Sequence[ToolExecution]) -> str:
        """A sentence that says that it was not called, and what comes nearest."""
        same = [call for call in calls if call.tool_name == self.name]
        if not same:
            return f"{self} was not called{nearest_call(self.name, self.arguments, calls)}"
        nearest = min(same, key=lambda call: sum(bool(m.problem(call.parameters.get(n))) for n, m in self._matchers.items()))
        made = call_text(nearest.tool_name, nearest.parameters)
        return f"{self} was not called; the nearest call is {made}: {self.problem(nearest) or 'it counts for another expectation'}"

    def __str__(self) -> str:
        """The call as text."""
        return call_text(self.name, self.arguments)


class ExpectedAnswer(Given):
    """What the answer has to be like; everything that is given has to hold.

    Attributes:
        equals: The answer as a whole.
        contains: Texts that stand in it.
        excludes: Texts that do not.
        pattern: RE2 pattern that is searched in it.
        json_schema: The answer is JSON, and fits this schema.
    """

    equals: str | None = None
    contains: _Texts = Field(default_factory=list)
    excludes: _Texts = Field(default_factory=list)
    pattern: Pattern | None = None
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"needs one of {', '.join(type(self).model_fields)}")
        return self

    def failures(self, answer: str) -> Iterator[Failure]:
        """What does not hold for ``answer``."""
        got = f"; the answer is {shorten(answer, 300)!r}" if answer else "; there is no answer"
        if self.equals is not None and answer != self.equals:
            yield Failure("answer.equals", f"expected {self.equals!r}{got}")
        for text in self.contains:
            if text not in answer:
                yield Failure("answer.contains", f"{text!r} is not in it{got}")
        for text in self.excludes:
            if text in answer:
                yield Failure("answer.excludes", f"{text!r} is in it{got}")
        if self.pattern is not None and not compiled(self.pattern).search(answer):
            yield Failure("answer.pattern", f"nothing in it is like {self.pattern!r}{got}")
        if self.json_schema is not None and (problem := _json_problem(self.json_schema, answer)):
            yield Failure("answer.json_schema", problem + got)


def _json_problem(schema: dict[str, Any], answer: str) -> str:
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return schema_problem(schema, value)


class Expect(Given):
    """What is expected; what is not given may be anything, but a turn that fails is a failure unless ``error`` expects it.

    Attributes:
        tools: Tool calls that have to be made.
        order: ``any``: these calls, among others, in any order. ``exact``: these calls and no others, in this order.
        never: Tools that must not be called; ``*`` stands for anything.
        answer: What the (last) answer is like; a text alone stands in it.
        tokens: Tokens of all requests together; a number alone is the most.
        input_tokens: Their input.
        output_tokens: Their output.
        cost: US dollars for them; a number alone is the most.
        duration: Seconds; a number alone is the most.
        requests: Model requests; a number alone is exactly that.
        error: ``error.type`` of the turn that fails; ``any`` for whichever.
        attributes: Values that an attribute of this name has on some span.
    """

    tools: list[Annotated[ExpectedTool, _short_for("name", "the name of a tool, or a mapping with 'name'")]] = Field(default_factory=list)
    order: Literal["any", "exact"] = "any"
    never: list[_Text] = Field(default_factory=list, min_length=1)
    answer: Annotated[ExpectedAnswer | None, _short_for("contains", "text, or a mapping of 'contains', 'pattern' and others")] = None
    tokens: AtMost | None = None
    input_tokens: AtMost | None = None
    output_tokens: AtMost | None = None
    cost: AtMost | None = None
    duration: AtMost | None = None
    requests: Exactly | None = None
    error: str | None = None
    attributes: dict[str, Matched] = Field(default_factory=dict, min_length=1)
    _attributes: dict[str, Match] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _read(self) -> Self:
        self._attributes = {name: matcher_of(value) for name, value in self.attributes.items()}
        if self.order == "exact":
            self._check_exact()
        elif "tools" in self.model_fields_set and not self.tools:
            raise ValueError("an empty list of 'tools' expects nothing: with 'order: exact' it means that none is called")
        return self

    def _check_exact(self) -> None:
        if "tools" not in self.model_fields_set:
            raise ValueError("'order: exact' needs 'tools'; an empty list means that none is called")
        if any(tool.times is not None for tool in self.tools):
            raise ValueError("'times' means nothing with 'order: exact': list the call as often as it is made")

    @property
    def count(self) -> int:
        """How many things are expected, the turn's own success included."""
        single = ("tokens", "input_tokens", "output_tokens", "cost", "duration", "requests", "answer")
        given = sum(getattr(self, name) is not None for name in single)
        return 1 + given + len(self.tools) + len(self.never) + len(self.attributes)

    def failures(self, outcome: Outcome) -> list[Failure]:
        """Everything that does not hold."""
        return [
            *self._error(outcome),
            *(self._exact(outcome.calls) if self.order == "exact" else self._any_order(outcome.calls)),
            *self._never(outcome.calls),
            *(self.answer.failures(outcome.answer) if self.answer else ()),
            *self._numbers(outcome),
            *self._on_spans(outcome.spans),
        ]

    def _error(self, outcome: Outcome) -> Iterator[Failure]:
        error = next((result.error for result in outcome.results if result.error), None)
        if error is None and self.error is not None:
            yield Failure("error", f"expected the turn to fail with {self.error!r}, and it did not")
        elif error is not None and self.error is None:
            yield Failure("error", f"the turn failed: {error.message}")
        elif error is not None and self.error not in ("any", error.error_type):
            yield Failure("error", f"expected {self.error!r}, got {error.error_type!r}: {error.message}")

    def _any_order(self, calls: list[ToolExecution]) -> Iterator[Failure]:
        claimed: dict[int, int] = {}
        once = [(number, tool) for number, tool in enumerate(self.tools) if tool.times is None]
        fits = {number: [n for n, call in enumerate(calls) if not tool.problem(call)] for number, tool in once}

        def claim(number: int, tried: set[int]) -> bool:
            for call in fits[number]:
                if call not in tried:
                    tried.add(call)
                    if call not in claimed or claim(claimed[call], tried):
                        claimed[call] = number
                        return True
            return False

        for number, tool in enumerate(self.tools):
            if tool.times is None:
                if not claim(number, set()):
                    yield Failure("tools", tool.missing(calls))
            elif problem := tool.times.problem(times := sum(not tool.problem(call) for call in calls)):
                yield Failure("tools", f"{tool}: {problem} calls" + ("" if times else f" ({tool.missing(calls)})"))

    def _exact(self, calls: list[ToolExecution]) -> Iterator[Failure]:
        pairs = zip(self.tools, calls, strict=False)
        problem = next((f"call {n}: {why}" for n, (tool, call) in enumerate(pairs, 1) if (why := tool.problem(call))), "")
        if problem or len(calls) != len(self.tools):
            wanted, made = [str(tool) for tool in self.tools], [call_text(call.tool_name, call.parameters) for call in calls]
            problem = problem or f"expected {len(wanted)} calls, got {len(made)}"
            yield Failure("order", f"{problem}\n  - {', '.join(wanted) or 'no calls'}\n  + {', '.join(made) or 'no calls'}")

    def _never(self, calls: list[ToolExecution]) -> Iterator[Failure]:
        for name in self.never:
            if found := [call for call in calls if is_like(call.tool_name, name)]:
                yield Failure("never", f"{name} was called: {call_text(found[0].tool_name, found[0].parameters)}")

    def _numbers(self, outcome: Outcome) -> Iterator[Failure]:
        usage = outcome.usage
        counts = {"tokens": "total_tokens", "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        for name, count in counts.items():
            if bounds := getattr(self, name):
                problem = bounds.problem(getattr(usage, count)) if usage else "unknown: a model request did not report its tokens"
                if problem:
                    yield Failure(name, problem)
        if self.cost:
            cost = outcome.cost
            if problem := cost if isinstance(cost, str) else self.cost.problem(cost):
                yield Failure("cost", problem)
        if self.duration and (problem := self.duration.problem(round(outcome.duration, 3))):
            yield Failure("duration", f"{problem} s")
        if self.requests and (problem := self.requests.problem(sum(r.model_requests for r in outcome.results))):
            yield Failure("requests", problem)

    def _on_spans(self, spans: Sequence[SpanRecord]) -> Iterator[Failure]:
        for name, matcher in self._attributes.items():
            values = [span.attributes[name] for span in spans if name in span.attributes]
            problems = [matcher.problem(value) for value in values]
            if not values:
                yield Failure("attributes", f"no span has {name}")
            elif all(problems):
                more = f" (and {len(values) - 1} more spans have it: {', '.join(map(value_text, values[1:4]))})" if values[1:] else ""
                yield Failure("attributes", f"{name}: {problems[0]}{more}")


def read_expectations(data: Mapping[str, Any]) -> Expect:
    """Expectations from plain data, e.g. keyword arguments.

    Raises:
        ValueError: One of them means nothing; says which, and what there is.
    """
    try:
        return Expect.model_validate(dict(data))
    except ValidationError as error:
        path, message = explain(error, dict(data), Expect, lambda _: None)
        raise ValueError(f"{dotted(path) or 'expect'}: {message}") from None
