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


def _completer(*, narrow: bool = False) -> ShellCompleter:
    return ShellCompleter(lambda: _TOOLS, lambda: narrow)


def _offered(text: str, *, tab: bool = True) -> list[str]:
    event = CompleteEvent(completion_requested=tab, text_inserted=not tab)
    found = _completer().get_completions(Document(text), event)
    return [text[: len(text) + c.start_position] + c.text for c in found]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("/re", ["/retry", "/reset"]),
        ("/TRA", ["/trace "]),
        ("/call lo", ["/call lookup_order "]),
        ("/call ", ["/call lookup_order ", "/call weather "]),
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
    assert [text.rstrip() for text in _offered("/")] == [f"/{name}" for name in COMMANDS]


def test_what_takes_arguments_is_offered_with_a_blank():
    """The next key is the first of the argument, and Tab offers those."""
    assert [text for text in _offered("/") if text.endswith(" ")] == ["/trace ", "/call ", "/save "]


def test_files(tmp_path, monkeypatch):
    """After /save while typing, in a message only when Tab asks for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    assert _offered("/save no", tab=False) == ["/save notes.md"]
    assert _offered("read ./no") == ["read ./notes.md"]
    assert _offered("read ./no", tab=False) == []


def test_which_files(tmp_path, monkeypatch):
    """Directories with the slash behind which one goes on; hidden files where a dot asks for them; no name that acts on the terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir one").mkdir()
    for name in ("dir one/with space.md", "dir one/ünï 日本.txt", ".hidden", "esc\x1b[2J.md", "line\nend.md"):
        (tmp_path / name).touch()
    assert _offered("/save ") == ["/save dir one/"]
    assert _offered("/save .h") == ["/save .hidden"]
    assert _offered("/save dir one/") == ["/save dir one/with space.md", "/save dir one/ünï 日本.txt"]


def test_descriptions_are_harmless():
    """What a tool's author wrote passes the gate."""
    (found,) = _completer().get_completions(Document("/call lo"), CompleteEvent())
    assert found.display_meta_text == "Look up."


@pytest.mark.parametrize("narrow", [True, False])
def test_a_narrow_menu_explains_nothing(narrow):
    """Two columns side by side could not be read there; the names can."""
    for text in ("/tr", "/call lo", "/call lookup_order or"):
        (found,) = _completer(narrow=narrow).get_completions(Document(text), CompleteEvent())
        assert bool(found.display_meta_text) is not narrow
        assert found.display_text
