"""Tool calls as text, the one that comes nearest, and what requests cost."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from holodeck.lib.validation import shorten
from holodeck.models.cost import Price, RequestUsage, total_cost
from holodeck.models.events import TurnResult
from holodeck.models.tool_execution import ToolExecution
from holodeck.traces import SpanRecord

__all__ = ["Prices", "call_text", "nearest_call", "value_text"]


def value_text(value: Any) -> str:
    """A value as JSON, shortened."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 120)


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as ``lookup_order(order_id="1042")``."""
    return f"{name}({', '.join(f'{key}={value_text(value)}' for key, value in arguments.items())})"


def nearest_call(name: str, arguments: Mapping[str, Any], calls: Sequence[ToolExecution]) -> str:
    """Which of ``calls`` comes nearest to the one that is missing, as the end of a sentence."""
    if not calls:
        return ": no tool was called"

    def likeness(call: ToolExecution) -> float:
        wanted, made = call_text(name, arguments), call_text(call.tool_name, call.parameters)
        return (call.tool_name == name) + difflib.SequenceMatcher(None, wanted, made).ratio()

    best = max(calls, key=likeness)
    others = f" (and {len(calls) - 1} more calls)" if len(calls) > 1 else ""
    return f"; the nearest call is {call_text(best.tool_name, best.parameters)}{others}"


@dataclass(frozen=True)
class Prices:
    """Prices of a case file, in place of those that are known.

    Attributes:
        by_model: By the name of the model, as it was asked for or as it answered.
    """

    by_model: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Prices from plain data."""
        return cls({name: Price.model_validate(price) for name, price in data.items()})

    def cost(self, results: Iterable[TurnResult], spans: Iterable[SpanRecord]) -> float | str:
        """US dollars for all model requests of some turns; a sentence that says why they are not known, if they are not."""
        asked = {s.attributes.get("gen_ai.response.model"): str(s.attributes.get("gen_ai.request.model")) for s in spans if s.asks_model}
        requests = [request for result in results for request in result.requests]
        costs = [self._request(request, asked.get(request.model, request.model)) for request in requests]
        unknown = next((request for request, cost in zip(requests, costs, strict=True) if cost is None), None)
        if unknown is None:
            return total_cost(costs) or 0.0
        if unknown.usage is None:
            return "the cost is unknown: a request did not report its tokens"
        return f"the cost is unknown: no price is known for the model {unknown.model!r}: add it to 'prices'"

    def _request(self, request: RequestUsage, asked: str) -> float | None:
        price = self.by_model.get(request.model) or self.by_model.get(asked)
        return price.cost_of(request.usage) if price and request.usage else request.cost_usd
