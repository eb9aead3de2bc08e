"""What a session has taken so far: tokens and cost by turn, by model and by prompt tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holodeck.lib.money import format_usd
from holodeck.models.cost import RequestUsage, total_cost
from holodeck.models.token_usage import TokenUsage
from holodeck.traces import format_count

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation
    from holodeck.models.events import TurnResult

__all__ = ["UsageRow", "show_usage", "usage_rows"]

_LABEL = 28
"""Most cells of what a row is about."""


@dataclass(frozen=True)
class UsageRow:
    """One line of ``/usage``.

    Attributes:
        label: What it is about.
        facts: Tokens, requests and cost, as far as they are known.
    """

    label: str
    facts: tuple[str, ...]


async def show_usage(conversation: Conversation, argument: str) -> None:
    """``/usage``: tokens and cost of the session so far."""
    del argument
    notes, rows = conversation.notes, usage_rows(conversation.turns)
    if not rows:
        notes.hint("nothing has been asked yet")
        return
    labels = [notes.fit(row.label, _LABEL) for row in rows]
    width = max(map(len, labels))
    dot = f" {notes.glyphs.dot} "
    for label, row in zip(labels, rows, strict=True):
        notes.line((f"{label:<{width}}", "bold"), f"  {dot.join(row.facts)}")


def usage_rows(turns: Sequence[TurnResult]) -> list[UsageRow]:
    """A row for each turn that asked a model, each model and each prompt tool that asked one, and one for the session."""
    requests = [request for turn in turns for request in turn.requests]
    if not requests:
        return []
    rows = [UsageRow(f"turn {number}", tuple(_facts(turn.requests))) for number, turn in enumerate(turns, 1) if turn.requests]
    rows += _grouped(requests, lambda request: f"model {request.model}")
    rows += _grouped((request for request in requests if request.tool), lambda request: f"tool {request.tool}")
    return [*rows, UsageRow("session", tuple(_facts(requests)))]


def _grouped(requests: Iterable[RequestUsage], label: Callable[[RequestUsage], str]) -> Iterator[UsageRow]:
    groups: dict[str, list[RequestUsage]] = {}
    for request in requests:
        groups.setdefault(label(request), []).append(request)
    return (UsageRow(name, tuple(_facts(group))) for name, group in groups.items())


def _facts(requests: Sequence[RequestUsage]) -> Iterator[str]:
    known = [request.usage for request in requests if request.usage is not None]
    yield _tokens(known) if known else "tokens unknown"
    unknown = f" ({len(requests) - len(known)} without usage)" if known and len(known) < len(requests) else ""
    yield f"{len(requests)} request{'s' * (len(requests) != 1)}{unknown}"
    if cost := _cost(requests):
        yield cost


def _tokens(usages: Sequence[TokenUsage]) -> str:
    """Input and output, with the parts of them that are priced or spent apart."""
    parts = {
        "cached": [usage.cached_tokens for usage in usages],
        "written to the cache": [usage.cache_write_tokens for usage in usages],
        "reasoning": [usage.reasoning_tokens for usage in usages],
    }
    apart = [f"{format_count(sum(filter(None, counts)))} {name}" for name, counts in parts.items() if any(counts)]
    prompt, completion = sum(usage.prompt_tokens for usage in usages), sum(usage.completion_tokens for usage in usages)
    return f"{format_count(prompt)} + {format_count(completion)} tokens" + (f" ({', '.join(apart)})" if apart else "")


def _cost(requests: Sequence[RequestUsage]) -> str:
    """What is known of the cost; "" where nothing is."""
    known = [request.cost_usd for request in requests if request.cost_usd is not None]
    total = total_cost(known)
    if total is None:
        return ""
    return format_usd(total) + (" and what is not known" if len(known) < len(requests) else "")
