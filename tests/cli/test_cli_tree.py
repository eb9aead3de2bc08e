"""The waterfall in colour."""

from __future__ import annotations

import io

from rich.console import Console

from holodeck.cli.console import Notes
from holodeck.cli.tree import as_text, show_tree
from holodeck.traces import Segment

_SPAN = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat [bold]m[/]\x1b[2J", "startTimeUnixNano": "1700000000000000000"}
_REQUEST = {"resourceSpans": [{"scopeSpans": [{"spans": [{**_SPAN, "endTimeUnixNano": "1700000001000000000"}]}]}]}


def _notes(width: int) -> tuple[Notes, io.StringIO]:
    file = io.StringIO()
    notes = Notes(file)
    notes.console = Console(file=file, width=width, force_terminal=True, color_system=None, markup=False)
    return notes, file


def test_nothing_is_shown_of_nothing():
    """A turn whose spans are gone is said to be, by whoever asked."""
    notes, file = _notes(80)
    assert not show_tree(notes, {}, timestamps=False)
    assert file.getvalue() == ""


def test_a_tree_fits_and_is_no_markup():
    """Lines are as wide as the terminal at most, and names are shown as they are."""
    for width in (40, 80, 120):
        notes, file = _notes(width)
        assert show_tree(notes, _REQUEST, timestamps=False)
        assert all(len(line) <= width for line in file.getvalue().splitlines())
        assert "[bold]m[/]" in file.getvalue()
        assert "\x1b[2J" not in file.getvalue()


def test_times_are_shown_on_request():
    """Wall-clock times come with include_timestamps."""
    shown = []
    for timestamps in (False, True):
        notes, file = _notes(100)
        show_tree(notes, _REQUEST, timestamps=timestamps)
        shown.append("22:13:20" in file.getvalue())
    assert shown == [False, True]


def test_styles_become_colours():
    """An error is red; a style without a colour is plain text."""
    text = as_text((Segment("x", "error"), Segment("y", "time")))
    assert text.plain == "xy"
    assert [str(span.style) for span in text.spans] == ["red"]
