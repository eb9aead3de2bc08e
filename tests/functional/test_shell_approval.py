"""Tools that run only once the user has allowed it."""

from __future__ import annotations

import json
import re
import time

import pytest

from support.command import Terminal, run
from support.scripts import call, scripted_agent

_TOOL = {"name": "careful", "type": "function", "file": "tools.py", "function": "lookup", "approval": "ask"}
_ANSWERED = re.compile(r"first token [\d.]+ [mµ]?s")


@pytest.fixture
def agent(tmp_path):
    """An agent that calls the tool twice in each of two turns."""
    calls = [call("careful", "call_1", order_id="one"), call("careful", "call_2", order_id="two\n\x1b[2Jlines")]
    return scripted_agent(
        tmp_path / "agent", {"tool_calls": calls}, {"text": "Done."}, {"tool_calls": calls}, {"text": "Again."}, tools=[_TOOL]
    )


def _statuses(path):
    spans = [
        span
        for line in path.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
        if span["name"] == "execute_tool careful"
    ]
    found = []
    for span in spans:
        attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
        found.append((attributes["holodeck.tool.status"], attributes.get("error.type"), span.get("status", {}).get("code")))
    return found


def test_yes_no_and_always(agent, tmp_path):
    """The call is shown in full, the answer is a line; always holds for the tool until the chat ends."""
    trace = tmp_path / "t.jsonl"
    with Terminal(["chat", agent, "--trace-file", trace], lines=50) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("careful needs your approval\n  order_id: one", timeout=20)
        terminal.wait_for("Run careful? y / n / always:")
        terminal.line("maybe")
        terminal.wait_for("Please answer y, n or a (always):")
        assert "Run careful?" not in terminal.history_text
        terminal.line("")
        terminal.line("N")
        terminal.wait_for("careful needs your approval\n  order_id: two\n    lines")
        terminal.wait_for("Run careful? y / n / always:")
        terminal.line("always")
        terminal.wait_for("Done.")
        terminal.line("again")
        terminal.wait_for("Again.")
        assert terminal.history_text.count("needs your approval") == 2
        assert re.search(r"careful\(order_id=one\) ✗ denied by the user", terminal.history_text)
        assert b"\x1b[2J" not in terminal.raw
        terminal.line("exit")
        assert terminal.wait_exit() == 0
    assert sorted(_statuses(trace), key=str) == sorted([("denied", "denied", 2), *[("success", None, None)] * 3], key=str)


def test_what_is_being_typed_answers_nothing(agent):
    """A draft is put aside for the question, and stands there again after it."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type("hi\rmy draft, y")
        terminal.wait_for("Run careful?", timeout=20)
        assert "my draft" not in terminal.screen[-1]
        terminal.line("y")
        terminal.wait_for(re.compile(r"order_id: two\n.*lines\n(.*\n)*Run careful\? y / n / always:"))  # the second question, not the first
        time.sleep(0.3)  # it takes answers a moment after it is drawn
        terminal.line("y")
        terminal.wait_for("Done.")
        terminal.wait_for(re.compile(r"^> my draft, y$", re.MULTILINE))
        assert "Please answer" not in terminal.history_text


def test_a_dumb_terminal_asks_too(agent):
    """It works without a cursor."""
    with Terminal(["chat", agent], env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("Run careful?", timeout=20)
        terminal.line("maybe")
        terminal.wait_for("Please answer y, n or a (always): ")
        terminal.line("y")
        terminal.wait_for("Run careful?", count=2)
        terminal.line("n")
        terminal.wait_for("Done.", timeout=20)
        assert "denied by the user" in terminal.history_text


@pytest.mark.parametrize(("flags", "status"), [([], "denied"), (["--yes"], "success")])
def test_without_a_terminal(agent, tmp_path, flags, status):
    """Denied, unless --yes was given; the model is told, and the turn goes on."""
    trace = tmp_path / "t.jsonl"
    done = run(["chat", agent, "-m", "hi", "--trace-file", trace, *flags])
    assert (done.code, done.out) == (0, "Done.\n")
    assert {s[0] for s in _statuses(trace)} == {status}
    assert ("warning: nobody can be asked here, so calls are denied (--yes allows them): careful" in done.err) is (status == "denied")


def test_yes_in_a_terminal_asks_nothing(agent):
    """--yes allows everything there, too."""
    with Terminal(["chat", agent, "--yes"]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("Done.", timeout=20)
        assert "needs your approval" not in terminal.history_text


@pytest.fixture
def talkative(tmp_path):
    """An agent that says something, asks for two tools with approval, and for one without."""
    calls = [call("careful", "call_1", order_id="one"), call("lookup", "call_2", order_id="free"), call("wary", "call_3", order_id="two")]
    tools = [_TOOL, _TOOL | {"name": "wary"}]
    return scripted_agent(tmp_path / "agent", {"text": "Let me look.", "tool_calls": calls}, {"text": "Done."}, tools=tools)


def test_the_question_says_what_it_is_about(talkative):
    """What the agent said stands above it, other tools may end in between, and nothing claims that the model is waited for."""
    with Terminal(["chat", talkative]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(
            re.compile(
                r"^Let me look\.\n⚙ careful needs your approval\n  order_id: one\n⚙ lookup\(.*\) ✓ .*\nRun careful\? y / n / always:$",
                re.MULTILINE,
            ),
            timeout=20,
        )
        time.sleep(0.3)
        assert not any("scripted/script" in row for row in terminal.screen[4:])
        terminal.line("y")
        terminal.wait_for(re.compile(r"^Run wary\? y / n / always:$", re.MULTILINE))
        time.sleep(0.3)
        terminal.line("n")
        terminal.wait_for("Done.")
        assert terminal.history_text.count("Let me look.") == 1


def test_the_question_begins_a_line_in_a_dumb_terminal(talkative):
    """What the agent said has ended there."""
    with Terminal(["chat", talkative], env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(re.compile(r"^Let me look\.\n\S careful needs your approval$", re.MULTILINE), timeout=20)
        terminal.wait_for("Run careful? y / n / always: ")
        assert terminal.history_text.count("needs your approval") == 1
