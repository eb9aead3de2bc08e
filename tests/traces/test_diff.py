"""What is different between two traces."""

from __future__ import annotations

import pytest

from holodeck.traces import DiffOptions, diff_lines, diff_trees, differs, plain, tally, width
from traces.spans import chat, record, tree, turn


def _diff(before, after, **options):
    return list(diff_trees([before], [after], DiffOptions(**options)))


def _found(differences):
    return [(difference.span.name, difference.kinds) for difference in differences if difference.kinds]


def _turn(*below, end=2410, **attributes):
    return tree(record(1, None, "invoke_agent support", 0, end, attributes=attributes), *below)


def test_a_trace_is_the_same_as_itself():
    """Every span is found again, and nothing is different."""
    differences = _diff(turn(), turn())
    assert len(differences) == 5
    assert _found(differences) == []
    assert not differs(differences)


def test_spans_that_were_added_and_removed():
    """With everything below them."""
    old = _turn(chat(2, 1, 0, 100), record(3, 1, "execute_tool a", 100, 200), chat(5, 1, 200, 300))
    new = _turn(chat(2, 1, 0, 100), record(3, 1, "execute_tool b", 100, 200), chat(4, 3, 110, 190), chat(5, 1, 200, 300))
    assert _found(_diff(old, new)) == [
        ("execute_tool a", ("removed",)),
        ("execute_tool b", ("added",)),
        ("chat gpt-4o-mini", ("added",)),
    ]


def test_tools_that_ended_in_another_order_are_the_same():
    """They ran side by side: which was first says nothing."""
    old = _turn(record(2, 1, "execute_tool a", 0, 100), record(3, 1, "execute_tool b", 1, 100))
    new = _turn(record(2, 1, "execute_tool a", 1, 100), record(3, 1, "execute_tool b", 0, 100))
    assert _found(_diff(old, new)) == []


def test_one_more_of_the_same_kind_is_the_last_one():
    """The first request is compared with the first."""
    old = _turn(chat(2, 1, 0, 100), chat(3, 1, 200, 300))
    new = _turn(chat(2, 1, 0, 100), chat(3, 1, 200, 300), chat(4, 1, 400, 500))
    differences = _diff(old, new)
    assert tally(differences) == {"added": 1}
    assert differences[-1].kinds == ("added",)


def test_another_model_is_a_change_and_no_loss():
    """The request is paired with the one that took its place."""
    old = _turn(chat(2, 1, 0, 100, (10, 10)))
    new = _turn(record(2, 1, "chat other", 0, 100, attributes={"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 10}))
    assert _found(_diff(old, new)) == [("chat other", ("renamed",))]


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [(100, 126, ("slower",)), (100, 124, ()), (126, 90, ("faster",)), (1, 9, ()), (1, 12, ("slower",))],
)
def test_slower_is_a_share_and_ten_milliseconds(before, after, kinds):
    """A few milliseconds of a short span are noise, and so is a small share of a long one."""
    old, new = (_turn(record(2, 1, "execute_tool a", 0, end)) for end in (before, after))
    assert _diff(old, new)[1].kinds == kinds


def test_what_got_better_does_not_count():
    """It is shown, and is no reason to fail."""
    old, new = _turn(chat(2, 1, 0, 100, (20, 10))), _turn(chat(2, 1, 0, 50, (10, 10)))
    differences = _diff(old, new)
    assert differences[1].kinds == ("faster", "fewer tokens")
    assert not differs(differences)


def test_more_tokens_more_money_and_failures_count():
    """Each by itself."""
    old = _turn(chat(2, 1, 0, 100, (10, 10)), record(3, 1, "execute_tool a", 100, 109), **{"holodeck.turn.cost_usd": 0.001})
    new = _turn(
        chat(2, 1, 0, 100, (10, 11)), record(3, 1, "execute_tool a", 100, 109, error=("timeout", "x")), **{"holodeck.turn.cost_usd": 0.002}
    )
    differences = _diff(old, new)
    assert [difference.kinds for difference in differences] == [("costlier",), ("more tokens",), ("failed",)]
    assert all(differs([difference]) for difference in differences)
    assert [difference.kinds for difference in _diff(new, old)] == [("cheaper",), ("fewer tokens",), ("recovered",)]


def test_unknown_tokens_are_compared_with_nothing():
    """What was not reported is neither more nor less."""
    assert _diff(_turn(chat(2, 1, 0, 100)), _turn(chat(2, 1, 0, 100, (10, 10))))[1].kinds == ()


def test_traces_are_paired_in_their_order():
    """A further turn is added as a whole."""
    differences = list(diff_trees([turn()], [turn(), turn()], DiffOptions()))
    assert tally(differences) == {"added": 5}
    assert [difference.depth for difference in differences[5:]] == [0, 1, 1, 1, 1]


def test_lines_show_what_is_different_and_where():
    """The spans above a difference stand there, what is the same does not."""
    old = _turn(chat(2, 1, 0, 800, (412, 38)), record(3, 1, "execute_tool a", 800, 900), chat(4, 1, 900, 1000, (1, 1)))
    new = _turn(chat(2, 1, 0, 1400, (812, 38)), record(3, 1, "execute_tool b", 800, 900), chat(4, 1, 900, 1000, (1, 1)))
    assert plain(diff_lines(_diff(old, new), 100)).splitlines() == [
        "  invoke_agent support",
        "!   chat gpt-4o-mini    800 ms → 1.40 s slower · 412→38 ⇒ 812→38 more tokens",
        "-   execute_tool a      100 ms",
        "+   execute_tool b      100 ms",
    ]


@pytest.mark.parametrize("cells", [20, 40, 80])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_lines_fit_and_are_harmless(cells, ascii_only):
    """Whatever the spans are called."""
    old, new = _turn(), _turn(record(2, 1, "execute_tool 订单\x1b[2J\u202e" + "x" * 60, 0, 100), end=9000)
    for line in plain(diff_lines(_diff(old, new), cells, ascii_only=ascii_only)).splitlines():
        assert width(line) <= cells
        assert "\x1b" not in line
        assert "\u202e" not in line
        assert not ascii_only or line.isascii()


def test_depth_and_length_cost_no_more_than_they_must():
    """A chain of thousands of spans needs no stack, and thousands side by side no square."""
    chain = [record(1, None, "r", 0, 1), *(record(n, n - 1, "s", 0, 1) for n in range(2, 5000))]
    assert _found(_diff(tree(*chain), tree(*chain))) == []
    wide = [record(1, None, "r", 0, 1), *(record(n, 1, f"s{n}", 0, 1) for n in range(2, 20000))]
    assert _found(_diff(tree(*wide), tree(*wide))) == []
