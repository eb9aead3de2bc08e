"""Trees out of spans in any order."""

import gc
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holodeck.traces import Node, as_data, build_trees, walk
from traces.spans import chat, record, tree, turn


def names(roots):
    """The trees as nested names."""
    return [(root.span.name, names(root.children)) if root.children else root.span.name for root in roots]


def test_children_stand_under_their_parents_by_time() -> None:
    """Siblings are in order of start, end and name, whatever order they come in."""
    spans = [
        record(1, None, "root", 0, 9),
        record(2, 1, "late", 5, 6),
        record(3, 1, "b", 1, 3),
        record(4, 1, "a", 1, 3),
        record(5, 1, "short", 1, 2),
        record(6, 5, "leaf", 1, 2),
    ]
    for seed in range(5):
        random.Random(seed).shuffle(spans)
        assert names(build_trees(spans)) == [("root", [("short", ["leaf"]), "a", "b", "late"])]


def test_a_span_without_its_parent_is_an_orphan_root() -> None:
    """A missing parent makes a root that says so; a span without parent is a root that does not."""
    roots = build_trees([record(2, 9, "lost", 5, 6), record(1, None, "root", 0, 9)])
    assert [(root.span.name, root.orphan) for root in roots] == [("root", False), ("lost", True)]


def test_a_parent_in_another_trace_does_not_count() -> None:
    """Span ids are unique in their trace only."""
    roots = build_trees([record(1, None, "a", 0, 1), record(2, 1, "b", 0, 1, trace="f" * 32)])
    assert names(roots) == ["a", "b"]


def test_duplicates_are_all_kept() -> None:
    """A span that was delivered twice is there twice; children stand under the first."""
    root = record(1, None, "root", 0, 9)
    child = record(2, 1, "child", 1, 2)
    assert names(build_trees([root, root, child, child])) == [("root", ["child", "child"]), "root"]


def test_loops_are_cut_at_their_first_member() -> None:
    """Parents that run in a circle make one tree, with what hangs on it; a span that is its own parent is a root."""
    ring = [record(1, 3, "a", 0, 1), record(2, 1, "b", 0, 1), record(3, 2, "c", 0, 1), record(4, 3, "hanger-on", 0, 1)]
    assert names(build_trees(ring)) == [("a", [("b", [("c", ["hanger-on"])])])]
    assert names(build_trees(ring[::-1])) == [("c", [("a", ["b"]), "hanger-on"])]
    assert [(r.span.name, r.orphan) for r in build_trees([record(1, 1, "self", 0, 1)])] == [("self", True)]


def test_no_spans_make_no_trees() -> None:
    """Nothing in, nothing out."""
    assert build_trees([]) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 5)), max_size=30))
def test_every_span_is_in_one_tree_once(edges) -> None:
    """Whatever the parents are, no span is lost, doubled or walked forever."""
    spans = [record(number, parent, "s", start, start + 1) for number, parent, start in edges]
    roots = build_trees(spans)
    found = [node.span for root in roots for node, _ in walk(root)]
    assert sorted(map(id, found)) == sorted(map(id, spans))


def test_a_chain_of_thousands_is_walked() -> None:
    """Depth is no limit for building, walking or plain data."""
    root = tree(*(record(n, n - 1 if n else None, f"s{n}", n, 9_000) for n in range(5_000)))
    assert max(depth for _, depth in walk(root)) == 4_999
    data = as_data(root)
    for _ in range(4_999):
        (data,) = data["children"]
    assert data["name"] == "s4999"


def test_repr_of_a_node_does_not_show_its_tree() -> None:
    """A deep tree in a failure message is one line."""
    assert "children" not in repr(turn())


def test_building_takes_time_in_proportion() -> None:
    """Ten times as many spans, all siblings or all in one loop, take nothing like a hundred times as long."""

    def cost(count: int, parent: int | None) -> float:
        spans = [record(n, (n - 1) % count if parent is None else parent, "s", 0, 1) for n in range(count)]
        began = time.process_time()
        build_trees(spans)
        return time.process_time() - began

    gc.disable()  # its time grows with everything else that this process holds
    try:
        for parent in (0, None):
            assert min(cost(20_000, parent) for _ in range(3)) < 40 * max(min(cost(2_000, parent) for _ in range(3)), 0.001)
    finally:
        gc.enable()


def test_a_turn_as_plain_data() -> None:
    """The tree compares as a literal, with the attributes that are asked for."""
    assert as_data(turn(), attributes={"gen_ai.usage.input_tokens", "error.type"}) == {
        "name": "invoke_agent support",
        "kind": "internal",
        "status": "unset",
        "attributes": {},
        "children": [
            {
                "name": "chat gpt-4o-mini",
                "kind": "client",
                "status": "unset",
                "attributes": {"gen_ai.usage.input_tokens": 412},
                "children": [],
            },
            {"name": "execute_tool lookup_order", "kind": "internal", "status": "unset", "attributes": {}, "children": []},
            {
                "name": "execute_tool refund_policy",
                "kind": "internal",
                "status": "error",
                "attributes": {"error.type": "timeout"},
                "children": [],
            },
            {
                "name": "chat gpt-4o-mini",
                "kind": "client",
                "status": "unset",
                "attributes": {"gen_ai.usage.input_tokens": 1512},
                "children": [],
            },
        ],
    }


@pytest.mark.parametrize(("wanted", "kept"), [(None, {"gen_ai.operation.name": "chat"}), ((), {})])
def test_plain_data_without_a_choice_has_all_attributes(wanted, kept) -> None:
    """None keeps every attribute, an empty choice none; the record's own attributes are not handed out."""
    node = Node(chat(1, None, 0, 1))
    data = as_data(node, attributes=wanted)
    assert data["attributes"] == kept
    data["attributes"]["x"] = 1
    assert "x" not in node.span.attributes
