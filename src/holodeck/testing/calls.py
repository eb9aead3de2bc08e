"""Tool calls as text, the one that comes nearest, and what requests cost."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field

from holodeck.lib.validation import shorten
from holodeck.models.base import Float, Strict
from holodeck.models.tool_execution import ToolExecution
from holodeck.traces import SpanRecord

__all__ = ["Price", "Prices", "call_text", "nearest_call", "value_text"]


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


class Price(Strict):
    """What a model costs, per million tokens.

    Attributes:
        input: For input tokens.
        output: For output tokens.
        cached_input: For input tokens that were read from a cache; as ``input`` by default.
    """

    input: Float = Field(ge=0)
    output: Float = Field(ge=0)
    cached_input: Float | None = Field(default=None, ge=0)


@dataclass(frozen=True)
class Prices:
    """Prices by the name of the model."""

    by_model: Mapping[str, Price]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Prices from plain data."""
        return cls({name: Price.model_validate(price) for name, price in data.items()})

    def cost(self, spans: Iterable[SpanRecord]) -> float | str:
        """What the model requests among ``spans`` cost; a sentence that says why that is not known, if it is not."""
        total = 0.0
        for span in spans:
            if not span.asks_model:
                continue
            cost = self._request(span)
            if isinstance(cost, str):
                return cost
            total += cost
        return total

    def _request(self, span: SpanRecord) -> float | str:
        names = [str(span.attributes.get(f"gen_ai.{which}.model", "")) for which in ("response", "request")]
        price = next((self.by_model[name] for name in names if name in self.by_model), None)
        if price is None:
            return f"there is no price for the model {names[1] or names[0]!r}: add it to 'prices'"
        read, written, cached = span.input_tokens, span.output_tokens, span.cached_tokens or 0
        if read is None or written is None:
            return "the cost is unknown: a request did not report its tokens"
        for_cached = price.input if price.cached_input is None else price.cached_input
        return ((read - cached) * price.input + cached * for_cached + written * price.output) / 1e6
