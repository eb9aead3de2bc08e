"""What was typed, in a file."""

from __future__ import annotations

import json
import stat

import pytest
from prompt_toolkit.history import InMemoryHistory

from holodeck.cli.history import TypedHistory, history_for, history_path
from holodeck.lib.redaction import Redactor


def _history(path):
    return TypedHistory(path, lambda: Redactor(["project-[a-z]+"]))


def test_entries_come_back_the_newest_first(tmp_path):
    """Several lines and any character are kept."""
    path = tmp_path / "state" / "history.jsonl"
    for entry in ("one", "two\nlines", "drei ü \u2028 \U0001f600"):
        _history(path).store_string(entry)
    assert list(_history(path).load_history_strings()) == ["drei ü \u2028 \U0001f600", "two\nlines", "one"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("secret", ["password=hunter22", "mail a@example.org", "sk-abcdefghijklmnop", "about project-apollo"])
def test_secrets_are_not_written(tmp_path, secret):
    """What redaction would change never gets into the file, the user's own patterns included."""
    history = _history(tmp_path / "h")
    history.store_string(secret)
    history.store_string("harmless")
    assert (tmp_path / "h").read_text() == '"harmless"\n'


def test_a_file_that_was_open_to_others_is_closed(tmp_path):
    """Its mode is put right when something is added."""
    path = tmp_path / "h"
    path.write_text("")
    path.chmod(0o644)
    _history(path).store_string("x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_entry_is_skipped(tmp_path):
    """A damaged line costs that line."""
    (tmp_path / "h").write_bytes(b'"a"\nhalf a li\n{"b": 1}\n\xff\n"c"\n')
    assert list(_history(tmp_path / "h").load_history_strings()) == ["c", "a"]


def test_a_directory_that_cannot_be_written_costs_nothing_else(tmp_path):
    """The history is then one of this session."""
    (tmp_path / "file").write_text("")
    history = _history(tmp_path / "file" / "h")
    history.store_string("x")
    assert list(history.load_history_strings()) == []


def test_a_link_is_not_followed(tmp_path):
    """Nobody can have what is typed written somewhere else."""
    (tmp_path / "h").symlink_to(tmp_path / "elsewhere")
    _history(tmp_path / "h").store_string("x")
    assert not (tmp_path / "elsewhere").exists()


def test_the_file_does_not_grow_without_end(tmp_path):
    """Beyond two megabytes the older half goes."""
    path = tmp_path / "h"
    path.write_text("".join(json.dumps(f"{n} {'x' * 1000}") + "\n" for n in range(2200)))
    _history(path).store_string("last")
    assert path.stat().st_size < 1.1 * 1024 * 1024
    entries = list(_history(path).load_history_strings())
    assert entries[0] == "last"
    assert entries[1].startswith("2199 ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("keep", "value", "kept"), [(True, "", True), (False, "", False), (True, "off", False), (True, "OFF", False)])
def test_it_can_be_switched_off(tmp_path, keep, value, kept):
    """By the flag or by the environment."""
    history = history_for({"HOLODECK_STATE_DIR": str(tmp_path), "HOLODECK_HISTORY": value}, Redactor, keep=keep)
    assert isinstance(history, TypedHistory) is kept
    assert isinstance(history, InMemoryHistory) is not kept


def test_where_it_is(tmp_path):
    """The state directory can be chosen."""
    assert history_path({"HOLODECK_STATE_DIR": str(tmp_path)}) == tmp_path / "history.jsonl"


def test_what_is_nested_without_end_costs_its_line(tmp_path):
    """Whatever somebody wrote into the file, the other entries are there."""
    (tmp_path / "h").write_bytes(b'"a"\n' + b"[" * 200_000 + b'\n"c"\n')
    assert list(_history(tmp_path / "h").load_history_strings()) == ["c", "a"]


def test_half_an_entry_at_the_end_costs_nothing_else(tmp_path):
    """What is written behind it stands on a line of its own."""
    (tmp_path / "h").write_bytes(b'"a"\n"half an en')
    _history(tmp_path / "h").store_string("b")
    assert list(_history(tmp_path / "h").load_history_strings()) == ["b", "a"]


def test_only_so_many_entries_are_looked_at(tmp_path):
    """Each key looks through them: of tens of thousands, the newest are there."""
    (tmp_path / "h").write_text("".join(f'"{n}"\n' for n in range(60_000)))
    entries = list(_history(tmp_path / "h").load_history_strings())
    assert (entries[0], len(entries)) == ("59999", 5_000)
