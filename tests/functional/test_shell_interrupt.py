"""Ctrl-C at each stage, in a real terminal: it stops what runs, and nothing else."""

from __future__ import annotations

import re

import pytest

from support.command import Terminal
from support.scripts import call, scripted_agent

_WAITS = re.compile(r"^\S scripted/script 0\.[3-9] s", re.MULTILINE)
_ANSWERED = re.compile(r"first token [\d.]+ [mµ]?s")


def _agent(tmp_path, *replies, tools=None):
    return scripted_agent(tmp_path / "agent", *replies, {"text": "Fine.", "repeat": True}, tools=tools)


def _goes_on(terminal):
    """The session is as good as before."""
    terminal.line("and now?")
    terminal.wait_for("Fine.", timeout=20)
    terminal.line("exit")
    assert terminal.wait_exit() == 0
    assert "Traceback" not in terminal.history_text


def test_while_the_first_token_is_waited_for(tmp_path):
    """A spinner says for how long; the message is forgotten, and what was being typed stays."""
    with Terminal(["chat", _agent(tmp_path, {"text": "never", "delay": 60})]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(_WAITS, timeout=20)
        terminal.type("draft")
        terminal.wait_for("> draft")
        terminal.key("ctrl-c")
        terminal.wait_for("stopped before there was an answer", timeout=3)
        terminal.wait_for(re.compile(r"^> draft$", re.MULTILINE))
        assert "never" not in terminal.history_text
        terminal.key("ctrl-u")
        _goes_on(terminal)


def test_while_an_answer_streams(tmp_path):
    """What has been said stays on the screen, formatted, once."""
    reply = {"text": "**one** two " + "three " * 200, "chunk_delay": 0.1}
    with Terminal(["chat", _agent(tmp_path, reply)]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("one two three", timeout=20)
        terminal.key("ctrl-c")
        terminal.wait_for("stopped: the answer so far is kept", timeout=3)
        assert terminal.history_text.count("one two") == 1
        _goes_on(terminal)


@pytest.mark.parametrize("tool", ["nap", "block"])
def test_while_a_tool_runs(tmp_path, tool):
    """The tool's line turns into a failed one."""
    reply = {"text": "Wait.", "tool_calls": [call(tool, seconds=60)]}
    with Terminal(["chat", _agent(tmp_path, reply)]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(re.compile(rf"{tool}\(seconds=60\) . 0\.[2-9] s"), timeout=20)
        terminal.key("ctrl-c")
        terminal.wait_for(re.compile(rf"{tool}\(seconds=60\) ✗ .*stopped by the user"), timeout=3)
        assert len(re.findall(rf"{tool}\(", terminal.history_text)) == 1
        _goes_on(terminal)


def test_at_a_question(tmp_path):
    """The tool is not run, and the turn ends."""
    tool = {"name": "careful", "type": "function", "file": "tools.py", "function": "nap", "approval": "ask"}
    agent = _agent(tmp_path, {"tool_calls": [call("careful", seconds=0)]}, tools=[tool])
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("y / n / always", timeout=20)
        terminal.key("ctrl-c")
        terminal.wait_for("stopped", timeout=3)
        assert "✓" not in terminal.history_text
        _goes_on(terminal)


def test_what_was_typed_ahead_comes_back(tmp_path):
    """It is not sent after a Ctrl-C: it stands at the prompt, to be changed or sent."""
    with Terminal(["chat", _agent(tmp_path, {"text": "never", "delay": 60})]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(_WAITS, timeout=20)
        terminal.line("ahead")
        terminal.wait_for(re.compile(r"^> ahead\n>$", re.MULTILINE))
        terminal.key("ctrl-c")
        terminal.wait_for(re.compile(r"^$\n^> ahead$", re.MULTILINE))
        terminal.key("enter")
        terminal.wait_for("Fine.")
        assert "never" not in terminal.history_text


def test_ctrl_d_while_an_answer_streams(tmp_path):
    """The answer is finished first."""
    with Terminal(["chat", _agent(tmp_path, {"text": "one two three four", "chunk_delay": 0.1})]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("one", timeout=20)
        terminal.key("ctrl-d")
        assert terminal.wait_exit() == 0
        assert "one two three four\n" in terminal.history_text
        assert _ANSWERED.search(terminal.history_text)
