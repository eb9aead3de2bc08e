"""What is expected of one tool call, and of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from holodeck.lib.validation import shorten
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import call_text, nearest_call
from holodeck.testing.matching import Exactly, Given, JsonSchema, Match, Matched, Pattern, compiled, matcher_of, schema_problem
from holodeck.testing.outcome import Failure

__all__ = ["ExpectedAnswer", "ExpectedTool", "Text"]


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple | Mapping) else [value]


Text = Annotated[str, Field(min_length=1)]
"""A text that says something: an empty one stands in everything."""
_Texts = Annotated[list[Text], BeforeValidator(_listed), Field(min_length=1)]


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
