"""Trace: what a turn did, to be asserted on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holodeck.lib.validation import shorten
from holodeck.models.chat import Message
from holodeck.models.events import TurnError, TurnResult
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution
from holodeck.testing.calls import Prices, call_text, nearest_call
from holodeck.testing.expect import Expect, read_expectations
from holodeck.testing.matching import is_like, same
from holodeck.testing.memory import drawn
from holodeck.testing.outcome import Outcome
from holodeck.traces import Node, SpanRecord, as_data, build_trees

__all__ = ["Trace"]

_TIMED: Final = frozenset({"gen_ai.response.time_to_first_chunk", "holodeck.tool.execution_time"})
"""Attributes that are another in each run, unless the clock is a fake one."""


class Trace:
    """One turn: the answer, the tools, the tokens, the spans.

    Attributes:
        result: The turn as data.
        prompt: The message that began it.

    Args:
        prompt: See above.
        result: See above.
        spans: The spans of its trace.
        draw: Put the waterfall into the messages of failed checks; not needed where it is shown anyway.
    """

    def __init__(self, prompt: str, result: TurnResult, spans: Sequence[SpanRecord], *, draw: bool = True) -> None:
        self.prompt, self.result, self._spans, self._draw = prompt, result, list(spans), draw

    @property
    def message(self) -> Message | None:
        """The assistant's answer; None if there is none."""
        return self.result.message

    @property
    def text(self) -> str:
        """The answer's text; "" if there is none."""
        return self.result.message.content if self.result.message else ""

    @property
    def tools(self) -> list[ToolExecution]:
        """The tool executions, in the order of the calls."""
        return self.result.tool_calls

    @property
    def usage(self) -> TokenUsage | None:
        """Tokens of all model requests of the turn; None if any of them did not say."""
        return self.result.usage

    @property
    def cost(self) -> float | None:
        """US dollars for all model requests of the turn; None if the price or the usage of any of them is not known."""
        return self.result.cost_usd

    @property
    def duration(self) -> float:
        """Seconds that the turn took, by its root span."""
        return self.root.span.duration if self._spans else self.result.duration

    @property
    def error(self) -> TurnError | None:
        """Why the turn failed; None if it did not."""
        return self.result.error

    @property
    def errors(self) -> list[SpanRecord]:
        """The spans that failed, by their start: also those of tools in a turn that went well."""
        return [span for span in self.spans() if span.failed]

    @property
    def root(self) -> Node:
        """The trace as a tree of span records."""
        roots = build_trees(self._spans)
        if not roots:
            raise AssertionError("the turn has no spans: telemetry is switched off")
        return roots[0]

    def tree(self, *attributes: str, full: bool = False) -> dict[str, Any]:
        """The spans as nested plain data, for a comparison with a literal or a snapshot.

        Without arguments names and children are left, and ``status`` where it is ``error``::

            {"name": "invoke_agent support", "children": [{"name": "chat gpt-4o-mini"}, {"name": "execute_tool lookup_order"}]}

        Args:
            attributes: Names of the attributes to keep; ``error.type`` is one of them.
            full: Everything: kinds, statuses and all attributes but those that measure time.
        """
        return _full(as_data(self.root)) if full else _short(as_data(self.root, attributes=attributes))

    def spans(self, operation: str | None = None, name: str | None = None) -> list[SpanRecord]:
        """The spans, by their start.

        Args:
            operation: Only those of this ``gen_ai.operation.name``: ``chat``, ``execute_tool``, ``invoke_agent``.
            name: Only those of this name, in which ``*`` stands for anything.
        """
        found = sorted(self._spans, key=lambda span: (span.start, span.end))
        return [s for s in found if operation in (None, s.operation) and (name is None or is_like(s.name, name))]

    def span(self, name: str) -> SpanRecord:
        """The one span of this name, in which ``*`` stands for anything.

        Raises:
            AssertionError: There is none, or there are several; says which there are.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        found = self.spans(name=name)
        if len(found) == 1:
            return found[0]
        names = [span.name for span in self.spans()]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near and not found else ""
        raise AssertionError(self._with_waterfall(f"{len(found)} spans are named {name!r}{hint}"))

    def tool(self, name: str, **arguments: Any) -> ToolExecution:
        """The one execution of this tool with these arguments (more may have been given).

        Raises:
            AssertionError: There is none, or there are several; says which call comes nearest.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        found = [t for t in self.tools if t.tool_name == name and _given(arguments, t.parameters)]
        if len(found) == 1:
            return found[0]
        wanted = call_text(name, arguments)
        if found:
            raise AssertionError(self._with_waterfall(f"{wanted} was called {len(found)} times"))
        raise AssertionError(self._with_waterfall(f"{wanted} was not called{nearest_call(name, arguments, self.tools)}"))

    def expect(self, *, prices: dict[str, Any] | None = None, **expectations: Any) -> None:
        """Check several things at once, in the words of case files: ``trace.expect(tools=["lookup_order"], tokens=900)``.

        Args:
            prices: US dollars per million tokens, in place of the price list's: ``{"my-model": {"input": 0.15, "output": 0.6}}``.
            expectations: The keys of ``expect`` in a case file.

        Raises:
            AssertionError: Says everything that does not hold.
            ValueError: An expectation means nothing.
        """
        __tracebackhide__ = True  # pytest shows the test's own line
        expected: Expect = read_expectations(expectations)
        outcome = Outcome([self.result], self._spans, Prices.of(prices or {}))
        if failures := expected.failures(outcome):
            raise AssertionError(self._with_waterfall("\n".join(failure.text for failure in failures)))

    def waterfall(self, width: int = 100) -> str:
        """The trace as text: a tree, bars, durations, tokens."""
        return drawn(self.root, width) if self._spans else "(no spans)"

    def __repr__(self) -> str:
        """The turn in one line."""
        calls = ", ".join(call_text(t.tool_name, t.parameters) for t in self.tools)
        outcome = f"error {self.error.error_type}" if self.error else repr(shorten(self.text, 60))
        return f"<Trace {shorten(self.prompt, 40)!r}: {f'{calls} → ' if calls else ''}{outcome}>"

    def _with_waterfall(self, text: str) -> str:
        return f"{text}\n\n{self.waterfall()}" if self._draw else text


def _given(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    return all(name in parameters and same(value, parameters[name]) for name, value in arguments.items())


def _short(node: dict[str, Any]) -> dict[str, Any]:
    kept = {"name": node["name"]}
    if node["status"] == "error":
        kept["status"] = "error"
    if node["attributes"]:
        kept["attributes"] = node["attributes"]
    if node["children"]:
        kept["children"] = [_short(child) for child in node["children"]]
    return kept


def _full(node: dict[str, Any]) -> dict[str, Any]:
    attributes = {name: value for name, value in node["attributes"].items() if name not in _TIMED}
    return {**node, "attributes": attributes, "children": [_full(child) for child in node["children"]]}
