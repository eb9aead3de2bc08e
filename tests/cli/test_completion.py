"""What Tab offers."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from holodeck.cli.completion import ShellCompleter
from holodeck.cli.slash import COMMANDS
from holodeck.models.tool_execution import ToolSpec

_TOOLS = [
    ToolSpec(name="lookup_order", description="Look\n\x1b[2Jup.", parameters={"properties": {"order_id": {"type": "string"}, "deep": {}}}),
    ToolSpec(name="weather"),
]


def _offered(text: str, *, tab: bool = True) -> list[str]:
    event = CompleteEvent(completion_requested=tab, text_inserted=not tab)
    found = ShellCompleter(lambda: _TOOLS).get_completions(Document(text), event)
    return [text[: len(text) + c.start_position] + c.text for c in found]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("/re", ["/retry", "/reset"]),
        ("/TRA", ["/trace"]),
        ("/call lo", ["/call lookup_order"]),
        ("/call ", ["/call lookup_order", "/call weather"]),
        ("/call lookup_order ", ["/call lookup_order order_id=", "/call lookup_order deep="]),
        ("/call lookup_order order_id=1 d", ["/call lookup_order order_id=1 deep="]),
        ("/trace ", []),
        ("/nope x", []),
        ("//re", []),
        ("hello", []),
    ],
)
def test_what_is_offered(text, offered):
    """Commands of the table, tools and the arguments that are still missing."""
    assert _offered(text) == offered


def test_every_command_is_offered():
    """The table is where they come from."""
    assert _offered("/") == [f"/{name}" for name in COMMANDS]


def test_files(tmp_path, monkeypatch):
    """After /save while typing, in a message only when Tab asks for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    assert _offered("/save no", tab=False) == ["/save notes.md"]
    assert _offered("read ./no") == ["read ./notes.md"]
    assert _offered("read ./no", tab=False) == []


def test_descriptions_are_harmless():
    """What a tool's author wrote passes the gate."""
    (found,) = ShellCompleter(lambda: _TOOLS).get_completions(Document("/call lo"), CompleteEvent())
    assert found.display_meta_text == "Look up."
