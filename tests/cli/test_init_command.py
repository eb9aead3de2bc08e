"""The agent that init writes."""

from __future__ import annotations

import os

import pytest

from holodeck.cli.main import run
from holodeck.config import load_agent_config


def test_what_init_writes_loads(tmp_path, capsys):
    """The files pass the strict loader without a warning, and the next command is said, ready to be pasted."""
    directory = tmp_path / "new dir" / "agent"
    assert run(["init", str(directory)]) == 0
    loaded = load_agent_config(directory / "agent.yaml", {})
    assert (loaded.config.name, loaded.warnings) == ("assistant", ())
    assert capsys.readouterr().out.endswith(f"Now type:\n  holodeck chat '{directory}/agent.yaml'\n")


@pytest.mark.parametrize("name", ["agent.yaml", "script.yaml", "tools.py"])
def test_nothing_is_overwritten(name, tmp_path, capsys):
    """One file that is there already stops it, and no other is written."""
    (tmp_path / name).write_text("mine", encoding="utf-8")
    assert run(["init", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / name} exists already: name another directory, nothing was written\n"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_a_link_is_not_followed(tmp_path):
    """A link that leads nowhere counts as a file that is there."""
    (tmp_path / "agent.yaml").symlink_to(tmp_path / "elsewhere")
    assert run(["init", str(tmp_path)]) == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_no_directory(tmp_path, capsys):
    """The error names the path and the way out."""
    (tmp_path / "file").touch()
    assert run(["init", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'file'} is a file: name a directory, which is made if it does not exist\n"


def test_nothing_can_be_made_below_a_file(tmp_path, capsys):
    """What is in the way is named."""
    (tmp_path / "file").touch()
    assert run(["init", str(tmp_path / "file" / "a" / "b")]) == 2
    err = capsys.readouterr().err
    assert f"{tmp_path}/file/a/b cannot be made ({tmp_path}/file is a file): name a directory" in err


@pytest.mark.parametrize("name", ["/proc/holodeck/agent", "x" * 300])
def test_a_directory_that_cannot_be_made(name, tmp_path, monkeypatch, capsys):
    """Where the system refuses, its reason is said, with the place."""
    monkeypatch.chdir(tmp_path)
    assert run(["init", name]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {name} cannot be made (in {'/proc' if name[0] == '/' else tmp_path}: ")
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("below", [".", "deeper/agent"])
def test_a_directory_that_may_not_be_written_to(below, tmp_path, capsys):
    """Neither it nor one in it: permission is named, and what may be done."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert run(["init", str(locked / below)]) == 2
    assert "Permission denied" in capsys.readouterr().err
