"""Spans as trees, whatever order, duplicates or loops they come in.

Nothing here recurses: a trace may be nested thousands of levels deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from holodeck.traces.collector import collector_at_rest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from holodeck.traces.records import SpanRecord


__all__ = ["KINDS", "STATUSES", "Node", "as_data", "build_trees", "walk"]

KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
"""Names of OTLP's span kinds, by number."""
STATUSES: Final = ("unset", "ok", "error")
"""Names of its status codes, by number."""


@dataclass(slots=True, eq=False)
class Node:
    """A span and those that it caused.

    Attributes:
        span: The span itself.
        children: By start time, then end, then name.
        orphan: True for a root whose parent is not among the spans, or that is its own ancestor.
    """

    span: SpanRecord
    children: list[Node] = field(default_factory=list, repr=False)
    orphan: bool = False


def build_trees(spans: Iterable[SpanRecord]) -> list[Node]:
    """The trees that the spans make, by start time of their roots.

    Every span is in exactly one tree, once for each time that it was given. Where two spans have the same ids, the children stand under the
    first. A loop of parents is cut at the member that was given first.
    """
    spans = list(spans)
    with collector_at_rest():
        nodes = [Node(span) for span in spans]
    parents = _parents(nodes)
    _cut_loops(parents)
    for node, parent in zip(nodes, parents, strict=True):
        if parent is None:
            node.orphan = bool(node.span.parent_id)
        else:
            nodes[parent].children.append(node)
    for node in nodes:
        if len(node.children) > 1:
            node.children.sort(key=_by_time)
    return sorted((node for node, parent in zip(nodes, parents, strict=True) if parent is None), key=_by_time)


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node of the tree with its depth (0 for the root), parents first, siblings in order."""
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending.extend((child, depth + 1) for child in reversed(node.children))


def as_data(root: Node, *, attributes: Collection[str] | None = None) -> dict[str, Any]:
    """The tree as nested plain data, to be compared with a literal.

    Args:
        root: Where to begin.
        attributes: Names of the attributes to keep; None keeps all. A name that a span does not have is left out there.

    Returns:
        ``name``, ``kind`` (such as ``client``), ``status`` (``unset``, ``ok``, ``error``), ``attributes`` and ``children``, a list of
        the same.
    """
    above: list[dict[str, Any]] = []  # the data of the nodes on the way from the root to the current one
    for node, depth in walk(root):
        data = _data(node.span, attributes)
        del above[depth:]
        if above:
            above[-1]["children"].append(data)
        above.append(data)
    return above[0]


def _data(span: SpanRecord, attributes: Collection[str] | None) -> dict[str, Any]:
    kept = span.attributes.items() if attributes is None else [item for item in span.attributes.items() if item[0] in attributes]
    return {
        "name": span.name,
        "kind": KINDS[span.kind],
        "status": STATUSES[span.status_code],
        "attributes": dict(kept),
        "children": [],
    }


def _by_time(node: Node) -> tuple[int, int, str]:
    return node.span.start, node.span.end, node.span.name


def _parents(nodes: list[Node]) -> list[int | None]:
    """The position of each node's parent, None where there is none."""
    positions: dict[tuple[str, str], int] = {}
    for position, node in enumerate(nodes):
        positions.setdefault((node.span.trace_id, node.span.span_id), position)
    return [positions.get((node.span.trace_id, node.span.parent_id)) if node.span.parent_id else None for node in nodes]


def _cut_loops(parents: list[int | None]) -> None:
    """Makes a root of the first member of every loop; each position is visited at most twice."""
    visit = [0] * len(parents)  # the walk that came by, 0 for none yet
    for start in range(len(parents)):
        position: int | None = start
        while position is not None and not visit[position]:
            visit[position] = start + 1
            position = parents[position]
        if position is not None and visit[position] == start + 1:
            parents[min(_loop(parents, position))] = None


def _loop(parents: list[int | None], member: int) -> Iterator[int]:
    yield member
    position = parents[member]
    while position is not None and position != member:
        yield position
        position = parents[position]
