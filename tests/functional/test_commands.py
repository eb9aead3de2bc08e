"""The other commands, as they are installed."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from support.command import HOLODECK, Terminal, run


@pytest.mark.parametrize("program", [[HOLODECK], [HOLODECK.parent / "python", "-m", "holodeck"]])
def test_help_and_version(program):
    """The script and the module are the same command."""
    result = run(["--help"], program=program)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: holodeck [OPTIONS] COMMAND [ARGS]...")
    for name in ("chat", "init", "schema", "models"):
        assert re.search(rf"^  {name} +\w", result.out, re.MULTILINE)
        assert run([name, "--help"], program=program).code == 0
    assert re.fullmatch(r"holodeck, version \d+\.\d+\.\d+\n", run(["--version"], program=program).out)


def test_without_a_command_help_is_shown():
    """It is a usage error all the same."""
    result = run([])
    assert result.code == 2
    assert "Commands:" in result.err


def test_init_to_first_answer(tmp_path):
    """The command that init says to type works on a bare machine: an answer, with its tool."""
    result = run(["init", "my agent"], cwd=tmp_path)
    assert result.code == 0
    command = shlex.split(result.out.splitlines()[-1])
    assert command[0] == "holodeck"
    chat = run([*command[1:], "-m", "How warm are 20 degrees Celsius in Fahrenheit?"], cwd=tmp_path)
    assert (chat.code, chat.out) == (0, "20 degrees Celsius are 68 degrees Fahrenheit.\n")
    assert "⚙ to_fahrenheit(celsius=20) ✓" in chat.err
    with Terminal(command[1:], cwd=tmp_path) as terminal:
        terminal.wait_for("assistant · scripted/script")
        terminal.line("hello")
        terminal.wait_for("I know one question", timeout=20)
        assert "> hello" in terminal.screen


def test_schema_into_a_reader_that_goes_away():
    """The schema is JSON; a reader that has enough does no harm."""
    assert json.loads(run(["schema"]).out)["title"] == "HoloDeck agent file"
    result = run(["-c", 'set -o pipefail; "$0" schema | head -1', HOLODECK], program=["bash"])
    assert (result.code, result.out, result.err) == (0, "{\n", "")


_WRITERS = {
    "schema": ["schema"],
    "models": ["models", "list"],
    "spool": ["trace", "spool"],
    "doctor": ["doctor"],
    "help": ["--help"],
    "init": ["init", "new"],
}


@pytest.mark.parametrize("name", _WRITERS)
@pytest.mark.parametrize(
    ("to", "reason"), [(">&-", "not open for writing"), ("1</dev/null", "not open for writing"), (">/dev/full", "No space left on device")]
)
def test_what_cannot_be_written_is_no_success(name, to, reason):
    """Whatever the command writes, losing it is one line and exit 1."""
    result = run(["-c", f'exec "$@" {to}', "bash", HOLODECK, *_WRITERS[name]], program=["bash"])
    assert (result.code, result.out) == (1, "")
    assert re.fullmatch(rf"error: [^\n]*{reason}[^\n]*\n", result.err)


def test_a_report_into_a_reader_that_goes_away():
    """The doctor is as quiet about it as every other command."""
    result = run(["-c", 'set -o pipefail; "$0" doctor | head -1', HOLODECK], program=["bash"])
    assert (result.code, result.err, result.out.count("\n")) == (0, "", 1)


def test_models_list_fits_the_terminal():
    """In a terminal the table is as wide as that; in a pipe each model is one line."""
    assert len([line for line in run(["models", "list"]).out.splitlines() if line.startswith("smollm2")]) == 1
    with Terminal(["models", "list"], columns=60) as terminal:
        assert terminal.wait_exit() == 0
        assert "smollm2" in terminal.history_text
        rows = terminal.history_text.splitlines()[:-8]
    with Terminal(["models", "list"], columns=60, env={"TERM": "dumb"}) as dumb:
        assert dumb.wait_exit() == 0
        assert dumb.history_text.splitlines()[:-8] == rows


def test_models_pull_of_nothing_known():
    """One line, exit 2."""
    result = run(["models", "pull", "nope"])
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+smollm2[^\n]+\n", result.err)
