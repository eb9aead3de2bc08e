"""TokenUsage: what a model request, a message or a turn cost in tokens."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce
from typing import Self

from pydantic import Field, model_validator

from holodeck.models.base import MAX_INT, Int, Value, all_known

__all__ = ["TokenUsage", "total_usage"]


class TokenUsage(Value):
    """Token counts of one or more model requests; each fits in 64 bits.

    Attributes:
        prompt_tokens: Tokens in the prompt, cached ones included.
        completion_tokens: Tokens in the completion, reasoning ones included.
        total_tokens: Always ``prompt_tokens + completion_tokens``.
        cached_tokens: The part of the prompt that was read from a cache; None where the provider does not say.
        cache_write_tokens: The part of the prompt that was written to a cache; None where the provider does not say.
        reasoning_tokens: The part of the completion spent on reasoning; None where the provider does not say.
    """

    prompt_tokens: Int = Field(ge=0)
    completion_tokens: Int = Field(ge=0)
    total_tokens: Int = Field(ge=0)
    cached_tokens: Int | None = Field(default=None, ge=0)
    cache_write_tokens: Int | None = Field(default=None, ge=0)
    reasoning_tokens: Int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _total_adds_up(self) -> Self:
        if self.total_tokens != self.prompt_tokens + self.completion_tokens:
            raise ValueError(
                f"total_tokens ({self.total_tokens}) must equal "
                f"prompt_tokens ({self.prompt_tokens}) + completion_tokens ({self.completion_tokens})"
            )
        return self

    @classmethod
    def of(cls, prompt: int, completion: int, **parts: int | None) -> TokenUsage:
        """A usage whose total is the sum of ``prompt`` and ``completion``; ``parts`` are the optional counts.

        Raises:
            ValueError: A count, or the total, is negative or does not fit in 64 bits.
        """
        return cls(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion, **parts)

    def __add__(self, other: TokenUsage) -> TokenUsage:
        """Counts of both together; an optional part is known if either side knows it, and the sum fits in 64 bits.

        Raises:
            ValueError: The prompts, the completions or the totals together do not fit in 64 bits; :func:`total_usage` calls that unknown.
        """
        return TokenUsage.of(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            cached_tokens=_add(self.cached_tokens, other.cached_tokens),
            cache_write_tokens=_add(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens=_add(self.reasoning_tokens, other.reasoning_tokens),
        )


def _add(a: int | None, b: int | None) -> int | None:
    if a is None and b is None:
        return None
    both = (a or 0) + (b or 0)
    return both if both <= MAX_INT else None


def total_usage(usages: Iterable[TokenUsage | None]) -> TokenUsage | None:
    """The sum; None if there is nothing to add, if any part of it is unknown, or if it does not fit in 64 bits."""
    known = all_known(usages)
    try:
        return reduce(operator.add, known) if known else None
    except ValueError:
        return None
