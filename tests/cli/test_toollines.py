"""A tool call as a line."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from holodeck.cli.console import Notes
from holodeck.cli.toollines import call_text, show_execution
from holodeck.models.tool_execution import ToolExecution


def _shown(execution: ToolExecution, *, verbose: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    notes = Notes(file)
    if width:
        notes.console = Console(file=file, width=width, force_terminal=True, color_system=None, markup=False, highlight=False, emoji=False)
    notes.glyphs = notes.glyphs.__class__("⚙", "✓", "✗", "·", "…", "dots", ascii=False)
    show_execution(notes, execution, verbose=verbose)
    return file.getvalue()


def _call(**parameters: object) -> ToolExecution:
    return ToolExecution(tool_name="lookup_order", parameters=parameters).running()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "lookup_order()"),
        ({"order_id": "1042"}, "lookup_order(order_id=1042)"),
        ({"item": "desk lamp", "n": 2}, 'lookup_order(item="desk lamp", n=2)'),
        ({"a": [1, None], "b": True, "c": ""}, 'lookup_order(a=[1, null], b=true, c="")'),
        ({"text": "line\nline"}, 'lookup_order(text="line\\nline")'),
    ],
)
def test_a_call_reads_like_a_call(parameters, text):
    """Plain words stand as they are, everything else is JSON."""
    assert call_text(_call(**parameters)) == text


def test_a_success_is_one_line():
    """Name, arguments, mark, duration and the beginning of the result."""
    call = _call(order_id="1042")
    assert _shown(call.succeeded("shipped\n today", 0.12)) == "⚙ lookup_order(order_id=1042) ✓ 120 ms → shipped today\n"
    assert _shown(call.succeeded("x" * 9999, 0.12), width=60) == f"⚙ lookup_order(order_id=1042) ✓ 120 ms → {'x' * 18}…\n"
    for nothing in (call.succeeded("", 0.12), call.succeeded(None, 0.12)):
        assert _shown(nothing) == "⚙ lookup_order(order_id=1042) ✓ 120 ms\n"


def test_a_result_without_room_is_left_out():
    """A few letters would say nothing."""
    assert _shown(_call(order_id="1042").succeeded("shipped", 0.12), width=50) == "⚙ lookup_order(order_id=1042) ✓ 120 ms\n"


def test_a_failure_says_why():
    """The reason follows."""
    assert _shown(_call().failed("no such order", 0.15)) == "⚙ lookup_order() ✗ 150 ms no such order\n"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    """Arguments and reason are shortened; a long reason has a line of its own, and stands there once."""
    shown = _shown(_call(text="日本語" * 100, more="x" * 100).failed("because " * 100, 1.5), width=width)
    assert all(cell_len(line) <= width for line in shown.splitlines())
    assert shown.count("\n") == 2
    assert "✗ 1.50 s\n  because because" in shown


def test_nothing_of_a_call_acts_on_the_terminal():
    """Name, arguments, result and reason pass the gate and are no markup."""
    hostile = "\x1b]52;c;eA==\x07[red]x[/nope]\u202e:smile:"
    for verbose in (False, True):
        good = ToolExecution(tool_name=hostile, parameters={hostile: hostile}).running().succeeded(hostile, 0.1)
        bad = ToolExecution(tool_name=hostile).failed(hostile, 0.1)
        shown = _shown(good, verbose=verbose) + _shown(bad, verbose=verbose)
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "[red]x[/nope]:smile:" in shown


def test_verbose_shows_everything():
    """Arguments and result in full, whatever their length."""
    shown = _shown(_call(text="x" * 300, more={"a": 1}).succeeded("first\nsecond", 0.1), verbose=True)
    assert shown == f'⚙ lookup_order ✓ 100 ms\n  text: {"x" * 300}\n  more: {{"a": 1}}\n  result: first\n    second\n'
    assert "  error: no\n" in _shown(_call().failed("no", 0.1), verbose=True)
