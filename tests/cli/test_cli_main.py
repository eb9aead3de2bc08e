"""Entry point, exit codes, and what is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import click
import pytest

import holodeck
from holodeck.cli import main as entry
from holodeck.cli.lazy import ReaderGone
from holodeck.errors import AgentFileError, BackendError


def _imported(*arguments: str) -> set[str]:
    code = f"import json, sys\nfrom holodeck.cli.main import run\nrun({list(arguments)!r})\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["chat", "--help"], ["models", "--help"], ["init", "--help"], ["schema", "--help"]]
)
def test_help_imports_nothing_but_click(arguments):
    """Help and version start in the time that click takes."""
    heavy = {"pydantic", "rich", "yaml", "importlib.metadata", "prompt_toolkit", "semantic_kernel", "opentelemetry", "openai", "asyncio"}
    assert not heavy & _imported(*arguments)


def test_every_command_is_what_the_table_says():
    """The table's words are the first line of the command's own help, so the two cannot drift apart."""
    for name, entry_of in entry.COMMANDS.items():
        module, _, attribute = entry_of.target.partition(":")
        command = getattr(import_module(module), attribute)
        assert command.name == name
        assert command.help.splitlines()[0] == entry_of.help


def test_the_number_of_messages_has_one_default():
    """The command's default is the data model's."""
    from holodeck.cli.chat_command import chat
    from holodeck.models.chat import ChatConfig

    option = next(p for p in chat.params if p.name == "max_messages")
    assert option.default == ChatConfig.model_fields["max_messages"].default


def test_the_version(capsys):
    """--version prints the package's version."""
    assert entry.run(["--version"]) == 0
    assert capsys.readouterr().out == f"holodeck, version {holodeck.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chat"], "error: Missing argument 'AGENT'. (see: holodeck chat --help)\n"),
        (["frobnicate"], "error: No such command 'frobnicate'. (see: holodeck --help)\n"),
        (
            ["chat", "a.yaml", "--max-messages", "0"],
            "error: Invalid value for '--max-messages': 0 is not in the range x>=1. (see: holodeck chat --help)\n",
        ),
        (
            ["chat", "\x1b]0;x\x07no\x1b[2J.yaml"],
            "error: Agent config not found: no.yaml: name an agent's YAML file ('holodeck init DIR' writes one)\n",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(arguments, message, capsys):
    """Usage errors are said like any other, and harmlessly."""
    assert entry.run(arguments) == 2
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (AgentFileError("bad\nthing", file="a.yaml", line=3, key="model"), 2, "error: a.yaml:3: model: bad thing\n"),
        (BackendError("no answer", error_type="timeout", summary="s"), 1, "error: no answer\n"),
        (click.Abort(), 130, ""),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(143), 143, ""),
        (ReaderGone(), 0, ""),
        (OSError(28, "No space left on device"), 1, "error: No space left on device\n"),
        (ValueError("odd"), 1, "error: ValueError: odd (run 'holodeck chat' with -v for the traceback, and please report it)\n"),
    ],
)
def test_exit_codes(raised, code, said, monkeypatch, capsys):
    """Each kind of failure has its code and its line."""

    def fail(*args, **options):
        raise raised

    monkeypatch.setattr(entry, "_forget", lambda _: None)
    monkeypatch.setattr(entry.cli, "main", fail)
    assert entry.run(["chat"]) == code
    assert capsys.readouterr().err == said


def test_a_traceback_is_there_for_who_asks(monkeypatch, capsys):
    """With -v an unexpected error shows where it came from."""

    def fail(arguments, *, obj, **options):
        obj["verbose"] = True
        raise ValueError("odd")

    monkeypatch.setattr(entry.cli, "main", fail)
    assert entry.run(["chat", "-v"]) == 1
    assert "Traceback" in (said := capsys.readouterr().err)
    assert "ValueError: odd" in said


def test_python_m_holodeck_is_the_command():
    """The package can be run as a module."""
    done = subprocess.run([sys.executable, "-m", "holodeck", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"holodeck, version {holodeck.__version__}\n"
