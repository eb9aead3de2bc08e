"""The table of slash commands."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace

import pytest

from holodeck.cli.console import Notes
from holodeck.cli.slash import COMMANDS, is_command, run_command, unescaped
from holodeck.models.events import TurnResult
from holodeck.models.observability import TelemetrySettings


class _Conversation:
    """As much of a conversation as commands use."""

    def __init__(self, turns: int = 0, kept: bool = True, **settings: bool) -> None:
        self.file = io.StringIO()
        self.notes = Notes(self.file)
        self.turns = [TurnResult(number=n + 1, trace_id=f"{n + 1:032x}") for n in range(turns)]
        self.left = self.failed = False
        self.agent = SimpleNamespace(settings=TelemetrySettings(**settings))
        self.shown: list[int] = []
        self._kept = kept

    def complain(self, message: str) -> None:
        self.failed = True
        self.notes.error(message)

    def show_trace(self, result: TurnResult) -> bool:
        self.shown.append(result.number)
        return self._kept

    def said_after(self, text: str) -> str:
        asyncio.run(run_command(self, text))  # type: ignore[arg-type]
        return self.file.getvalue()


@pytest.mark.parametrize(("text", "command"), [("/help", True), ("  /x", True), ("//x", False), ("x /help", False), ("", False)])
def test_what_a_command_is(text, command):
    """One slash at the beginning makes a command; two make a message."""
    assert is_command(text) is command


@pytest.mark.parametrize(("text", "message"), [("//etc/hosts", "/etc/hosts"), (" //x", "/x"), ("a//b", "a//b"), ("///", "//")])
def test_two_slashes_send_one(text, message):
    """Only a slash at the very beginning is taken away."""
    assert unescaped(text) == message


def test_help_has_every_row():
    """What is in the table is in the help, as it is typed."""
    said = _Conversation().said_after("/help")
    for command in COMMANDS.values():
        assert f"{command.usage} " in said
        assert command.help in said


@pytest.mark.parametrize(("text", "suggestion"), [("/tarce", "/trace [n]"), ("/HELPP", "/help"), ("/qexit now", "/exit")])
def test_the_nearest_is_suggested(text, suggestion):
    """A slip of the finger is answered with what was meant."""
    assert f"did you mean {suggestion}?" in _Conversation().said_after(text)


def test_nothing_near_leads_to_help():
    """A path is no slip: how to send it is said, and the exit code will tell."""
    conversation = _Conversation()
    said = conversation.said_after("/etc/passwd\x1b[2J")
    assert conversation.failed
    assert said == "error: there is no /etc/passwd: /help lists what there is (// sends a slash to the agent)\n"


@pytest.mark.parametrize(("text", "turn"), [("/trace", 3), ("/trace 1", 1), ("/TRACE  2 ", 2)])
def test_trace_shows_a_turn(text, turn):
    """The last one by default, any other by its number."""
    conversation = _Conversation(turns=3)
    assert conversation.said_after(text) == ""
    assert conversation.shown == [turn]


@pytest.mark.parametrize("argument", ["0", "4", "-1", "x", "²", "9" * 5000])
def test_trace_refuses_what_is_no_turn(argument):
    """The message says which numbers there are."""
    conversation = _Conversation(turns=3)
    assert conversation.said_after(f"/trace {argument}") == "error: /trace takes the number of a turn, 1 to 3\n"
    assert conversation.shown == []


def test_trace_without_spans_says_why():
    """No turn yet, spans that are gone, telemetry that is off, a turn that was stopped before it began: each has its words."""
    assert "no turn yet" in _Conversation().said_after("/trace")
    assert "not kept" in _Conversation(turns=1, kept=False).said_after("/trace")
    for disabled, words in ((True, "switched off"), (False, "stopped before it began")):
        without = _Conversation(kept=False, disabled=disabled)
        without.turns = [TurnResult(number=1)]
        assert words in without.said_after("/trace")


def test_exit_leaves():
    """The conversation is told to end."""
    conversation = _Conversation()
    conversation.said_after("/exit")
    assert conversation.left


@pytest.mark.parametrize("command", [command for command in COMMANDS.values() if not command.arguments], ids=lambda c: c.name)
def test_what_takes_nothing_says_so(command):
    """What follows such a command would be lost without a word."""
    conversation = _Conversation()
    said = conversation.said_after(f"/{command.name} the question")
    assert said == f"error: /{command.name} takes nothing that follows it: /help lists what there is\n"
    assert (conversation.failed, conversation.left) == (True, False)


def test_names_are_their_keys():
    """A row is found under the name that its help shows."""
    assert all(name == command.name for name, command in COMMANDS.items())
