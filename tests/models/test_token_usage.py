from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from holodeck.models.base import MAX_INT
from holodeck.models.token_usage import TokenUsage, total_usage

COUNTS = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}


def test_the_optional_parts_are_unknown_unless_said() -> None:
    """Cached, written and reasoning tokens are None, never 0, where the provider does not report them."""
    usage = TokenUsage(**COUNTS)
    assert (usage.cached_tokens, usage.cache_write_tokens, usage.reasoning_tokens) == (None, None, None)


@pytest.mark.parametrize("field", COUNTS)
def test_each_count_is_required(field: str) -> None:
    """No count has a default."""
    with pytest.raises(ValidationError, match=f"{field}\n  Field required"):
        TokenUsage(**{key: value for key, value in COUNTS.items() if key != field})


@pytest.mark.parametrize("field", [*COUNTS, "cached_tokens", "cache_write_tokens", "reasoning_tokens"])
@pytest.mark.parametrize("value", [-1, True, 1.5, "many", float("nan")])
def test_each_count_is_a_whole_number_from_zero(field: str, value: Any) -> None:
    """Negative numbers, switches and fractions are no counts."""
    with pytest.raises(ValidationError, match=field):
        TokenUsage(**(COUNTS | {field: value}))


def _from_json(counts: dict[str, int]) -> TokenUsage:
    return TokenUsage.model_validate_json(json.dumps(counts))


@pytest.mark.parametrize("make", [lambda counts: TokenUsage(**counts), TokenUsage.model_validate, _from_json])
def test_the_total_is_the_sum_however_it_is_made(make: Any) -> None:
    """A total that is not prompt plus completion is refused, with the numbers."""
    assert make(COUNTS).total_tokens == 8
    with pytest.raises(ValidationError, match=r"total_tokens \(9\) must equal prompt_tokens \(5\) \+ completion_tokens \(3\)"):
        make(COUNTS | {"total_tokens": 9})


def test_parts_are_not_added_to_the_total() -> None:
    """What was cached or reasoned is inside prompt and completion already."""
    assert TokenUsage.of(1000, 10, cached_tokens=900, reasoning_tokens=4).total_tokens == 1010


def test_unknown_fields_and_changes_are_refused() -> None:
    """A usage is a closed, frozen value."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        TokenUsage(**COUNTS, price=1)
    with pytest.raises(ValidationError, match="frozen"):
        TokenUsage(**COUNTS).total_tokens = 9


def test_usages_add_up() -> None:
    """The sum of two is the counts of both; a part is known if either side knows it."""
    assert TokenUsage.of(1, 2, cached_tokens=1) + TokenUsage.of(10, 20, reasoning_tokens=5) == TokenUsage.of(
        11, 22, cached_tokens=1, reasoning_tokens=5
    )
    assert (TokenUsage.of(1, 2) + TokenUsage.of(1, 2)).cached_tokens is None


def test_a_sum_over_64_bits_is_no_usage() -> None:
    """It is refused where it is asked for, and unknown in a total; an optional part that is too large is left out."""
    half = TokenUsage.of(MAX_INT // 2, 1, cached_tokens=MAX_INT)
    assert (half + TokenUsage.of(1, 1, cached_tokens=1)).cached_tokens is None
    for other in (half, TokenUsage.of(0, MAX_INT // 2 + 2)):
        with pytest.raises(ValidationError, match=r"total_tokens\n.*at most 9,223,372,036,854,775,807"):
            half + half + other
    with pytest.raises(ValidationError, match="at most"):
        TokenUsage.of(MAX_INT, 1)
    assert total_usage([half, half, half]) is None
    assert TokenUsage.of(MAX_INT - 1, 1).total_tokens == MAX_INT


def test_a_total_is_known_if_every_part_is() -> None:
    """One unknown part, or none at all, and the total is unknown."""
    assert total_usage([TokenUsage.of(1, 2), TokenUsage.of(3, 4)]) == TokenUsage.of(4, 6)
    assert total_usage([TokenUsage.of(1, 2)]) == TokenUsage.of(1, 2)
    assert total_usage([TokenUsage.of(1, 2), None]) is None
    assert total_usage([]) is None
