"""Price, RequestUsage: what tokens cost, and what each request to a model took."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from pydantic import Field

from holodeck.models.base import Float, Strict, Value, all_known
from holodeck.models.token_usage import TokenUsage

__all__ = ["Price", "RequestUsage", "total_cost"]

_MILLION: Final = 1_000_000
_PLACES: Final = 12
"""Decimal places of a sum in dollars: far below the price of one token, far above what adding floats gets wrong."""


class Price(Strict):
    """Prices in US dollars per million tokens, in place of the price list's.

    Attributes:
        input: Input tokens.
        output: Output tokens, reasoning ones included.
        cached_input: Input tokens that were read from a cache; as ``input`` by default.
        cache_write: Input tokens that were written to a cache; as ``input`` by default.
    """

    input: Float = Field(ge=0)
    output: Float = Field(ge=0)
    cached_input: Float | None = Field(default=None, ge=0)
    cache_write: Float | None = Field(default=None, ge=0)

    def cost_of(self, usage: TokenUsage) -> float | None:
        """Dollars for ``usage``, each token priced once; None if its parts are more than the whole."""
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        fresh = usage.prompt_tokens - read - written
        if fresh < 0:
            return None
        prices = (
            (fresh, self.input),
            (read, self.input if self.cached_input is None else self.cached_input),
            (written, self.input if self.cache_write is None else self.cache_write),
            (usage.completion_tokens, self.output),
        )
        return round(math.fsum(tokens * price for tokens, price in prices) / _MILLION, _PLACES)


class RequestUsage(Value):
    """One request to a model, and what it took.

    Attributes:
        provider: ``gen_ai.provider.name``.
        model: The model that answered; the one that was asked where it does not say.
        tool: The prompt tool that asked; None where the agent itself did.
        usage: Token usage; None where the provider did not say.
        cost_usd: US dollars; None where the price or the usage is not known.
        answered: The reply came to its end.
    """

    provider: str
    model: str
    tool: str | None = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    answered: bool = True


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum in dollars; None if there is nothing to add, or if any part of it is unknown."""
    known = all_known(costs)
    return round(math.fsum(known), _PLACES) if known else None
