"""What is expected of a turn or a case, and what does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from holodeck.lib.problems import dotted, explain
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import call_text, value_text
from holodeck.testing.expected import ExpectedAnswer, ExpectedTool, Text
from holodeck.testing.matching import AtMost, Exactly, Given, Match, Matched, is_like, matcher_of
from holodeck.testing.outcome import Failure, Outcome
from holodeck.traces import SpanRecord

__all__ = ["Expect", "read_expectations"]


def _short_for(key: str, advice: str) -> BeforeValidator:
    """Take a plain value for ``{key: value}``; one that is no text is refused there, with how it is written."""

    def convert(value: Any) -> Any:
        if isinstance(value, list | tuple):
            raise ValueError(f"must be {advice}")  # noqa: TRY004 - pydantic reports ValueError
        return value if isinstance(value, Mapping | BaseModel) else {key: value}

    return BeforeValidator(convert)


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
    never: list[Text] = Field(default_factory=list, min_length=1)
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
