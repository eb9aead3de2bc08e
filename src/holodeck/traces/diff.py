"""What is different between two traces, span by span.

Spans are aligned by operation and name: the first ``chat`` below a span with the first ``chat`` below its counterpart, whatever stands
between them, so that tools that ran side by side may have ended in another order. Requests to a model that find no counterpart of their
name are paired with those that are left over of the same operation: another model is a change, and not one span less and one more.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from holodeck.traces import names
from holodeck.traces.records import SpanRecord
from holodeck.traces.tree import Node

__all__ = ["KINDS", "DiffOptions", "Difference", "cost_of", "diff_trees", "differs", "shown", "tally"]

KINDS: Final = {
    "added": True,
    "removed": True,
    "renamed": True,
    "failed": True,
    "recovered": True,
    "slower": True,
    "more tokens": True,
    "costlier": True,
    "faster": False,
    "fewer tokens": False,
    "cheaper": False,
}
"""Every kind of difference, and whether it counts: what merely got better does not."""
_Pair = tuple[Node | None, Node | None]
_Key = Callable[[SpanRecord], object]


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """What is still the same.

    Attributes:
        share: A span may be longer or shorter by this share of its duration.
        seconds: … and by this much in any case.
    """

    share: float = 0.25
    seconds: float = 0.01


@dataclass(frozen=True, slots=True)
class Difference:
    """A span in both traces, or in one of them.

    Attributes:
        before: The span in the first trace, None if it is not there.
        after: The span in the second.
        depth: 0 for the root.
        kinds: What is different, keys of ``KINDS``; empty if nothing is.
    """

    before: Node | None
    after: Node | None
    depth: int
    kinds: tuple[str, ...] = field(default=())

    @property
    def span(self) -> SpanRecord:
        """The span, as it is in the second trace if it is there."""
        node = self.after or self.before
        assert node is not None
        return node.span


def diff_trees(before: Sequence[Node], after: Sequence[Node], options: DiffOptions) -> Iterator[Difference]:
    """Every span of either side with what is different about it, parents first."""
    pending = [(pair, 0) for pair in reversed(_aligned(before, after))]
    while pending:
        (old, new), depth = pending.pop()
        yield Difference(old, new, depth, tuple(_kinds(old, new, options)))
        below = _aligned(old.children if old else (), new.children if new else ())
        pending.extend((pair, depth + 1) for pair in reversed(below))


def differs(differences: Iterable[Difference]) -> bool:
    """Whether anything is different that counts."""
    return any(KINDS[kind] for difference in differences for kind in difference.kinds)


def tally(differences: Iterable[Difference]) -> Counter[str]:
    """How often each kind of difference occurs."""
    return Counter(kind for difference in differences for kind in difference.kinds)


def shown(differences: Sequence[Difference]) -> list[Difference]:
    """The differences with the spans above them, in the same order; what is the same is left out."""
    kept, wanted = [], set[int]()
    for difference in reversed(differences):
        below = difference.depth + 1 in wanted
        wanted.discard(difference.depth + 1)
        if difference.kinds or below:
            wanted.add(difference.depth)
            kept.append(difference)
    return kept[::-1]


def cost_of(span: SpanRecord) -> float | None:
    """US dollars of a turn, as its root says; None if it does not."""
    value = span.attributes.get(names.TURN_COST)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _aligned(before: Sequence[Node], after: Sequence[Node]) -> list[_Pair]:
    """The spans of both sides in the order of the second, those that are only in the first where they were."""
    partners = _partners(before, after)
    taken = set(partners.values())
    pairs: list[_Pair] = []
    position = 0
    for number, node in enumerate(after):
        partner = partners.get(number)
        while position < len(before) and (position not in taken or (partner is not None and position < partner)):
            pairs += [(before[position], None)] if position not in taken else []
            position += 1
        pairs.append((None if partner is None else before[partner], node))
        position += partner == position
    return pairs + [(before[rest], None) for rest in range(position, len(before)) if rest not in taken]


def _partners(before: Sequence[Node], after: Sequence[Node]) -> dict[int, int]:
    """For positions in ``after`` the position in ``before`` of the same span."""
    partners = _matched(enumerate(before), enumerate(after), lambda span: (span.operation, span.name))
    taken = set(partners.values())
    old = [(n, node) for n, node in enumerate(before) if n not in taken and _may_be_renamed(node.span)]
    new = [(n, node) for n, node in enumerate(after) if n not in partners and _may_be_renamed(node.span)]
    return partners | _matched(old, new, lambda span: span.operation)


def _may_be_renamed(span: SpanRecord) -> bool:
    return span.asks_model or span.operation == names.INVOKE_AGENT


def _matched(before: Iterable[tuple[int, Node]], after: Iterable[tuple[int, Node]], key: _Key) -> dict[int, int]:
    waiting: dict[object, deque[int]] = {}
    for number, node in before:
        waiting.setdefault(key(node.span), deque()).append(number)
    return {number: found.popleft() for number, node in after if (found := waiting.get(key(node.span)))}


def _kinds(old: Node | None, new: Node | None, options: DiffOptions) -> Iterator[str]:
    if old is None or new is None:
        yield "added" if old is None else "removed"
        return
    before, after = old.span, new.span
    if before.name != after.name:
        yield "renamed"
    if before.failed != after.failed:
        yield "failed" if after.failed else "recovered"
    yield from _changed(before.duration, after.duration, "slower", "faster", max(options.seconds, options.share * before.duration))
    if before.asks_model and after.asks_model:
        yield from _changed(_tokens(before), _tokens(after), "more tokens", "fewer tokens", 0)
    yield from _changed(cost_of(before), cost_of(after), "costlier", "cheaper", 1e-9)


def _changed(before: float | None, after: float | None, more: str, less: str, least: float) -> Iterator[str]:
    if before is not None and after is not None and abs(after - before) > least:
        yield more if after > before else less


def _tokens(span: SpanRecord) -> int | None:
    """Input and output tokens; None unless both are known."""
    taken, given = span.input_tokens, span.output_tokens
    return None if taken is None or given is None else taken + given
