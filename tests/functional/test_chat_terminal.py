"""The conversation in a real terminal, as a user sees it."""

from __future__ import annotations

import re
import sys
import time

import pytest

from holodeck.cli.slash import COMMANDS
from support.agents import write_agent
from support.command import Terminal
from support.model_server import Call, ModelServer, Reply

_FOOTER = re.compile(r"first token [\d.]+ [mµ]?s")


@pytest.fixture
def server():
    """A model endpoint that says what the test queued, else what the user said."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent(server, tmp_path):
    """An agent file that asks it."""
    return write_agent(tmp_path / "agent", server)


def _steady(text: str) -> list[str]:
    """Lines of a screen without what differs each time."""
    text = re.sub(r"\b[0-9a-f]{32}\b", "<trace>", text)
    text = re.sub(r"[\d.]+ (ms|µs|s)\b", "<time>", text)
    return text.splitlines()


def test_a_whole_conversation(server, agent):
    """Banner, answer, tool, footer, commands and farewell: the transcript as it stands on the screen."""
    server.reply(
        Reply("Let me look.", tool_calls=[Call("lookup_order", {"order_id": "1042"})], usage=(100, 10)),
        Reply("It has been shipped.", usage=(1200, 8)),
    )
    with Terminal(["chat", agent], columns=120) as terminal:
        terminal.wait_for("> ")
        terminal.line("Where is order 1042?")
        terminal.wait_for(re.compile(r"trace [0-9a-f]{32}$", re.MULTILINE), timeout=20)
        terminal.line("/help")
        terminal.wait_for("Ctrl-D leaves.", count=2)
        terminal.line("/trce")
        terminal.wait_for("did you mean")
        terminal.line("exit")
        assert terminal.wait_exit() == 0
        width = max(len(command.usage) for command in COMMANDS.values())
        assert _steady(terminal.history_text) == [
            "support · openai/test-model",
            "traces: this terminal (/trace)",
            "/help lists commands, Ctrl-D leaves.",
            "",
            "> Where is order 1042?",
            "Let me look.",
            '⚙ lookup_order(order_id=1042) ✓ <time> → {"order_id":"1042","status":"shipped"}',
            "",
            "It has been shipped.",
            "<time> · first token <time> · 1,300 + 18 tokens · 1 tool · trace <trace>",
            "",
            "> /help",
            *(f"{command.usage:<{width}}  {command.help}" for command in COMMANDS.values()),
            "A message that begins with // is sent with one slash. Ctrl-C stops an answer, Ctrl-D leaves.",
            "",
            "> /trce",
            "error: there is no /trce: did you mean /trace [n]? (// sends a slash to the agent)",
            "",
            "> exit",
        ]


def test_narrow(server, agent):
    """At 40 columns no line is wider, and neither the trace id nor the tree is broken."""
    server.reply(Reply(tool_calls=[Call("lookup_order", {"order_id": "1042 or another one"})]), Reply("It has been shipped."))
    with Terminal(["chat", agent], columns=40) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(re.compile(r"^trace [0-9a-f]{32}$", re.MULTILINE), timeout=20)
        terminal.line("/trace")
        terminal.wait_for("└─ chat test-model")
        assert re.search(r'^⚙ lookup_order\(order_id="10.*…\) ✓ [\d.]+ (µs|ms)$', terminal.history_text, re.MULTILINE)
        assert re.search(r"^├─ tool lookup_order +[\d.]+ ", terminal.history_text, re.MULTILINE)


def test_verbose_shows_the_tree_after_each_turn(server, agent):
    """Tools are shown in full, and the spans follow the footer."""
    server.reply(Reply(tool_calls=[Call("fails", {"reason": "the depot is closed"})]), Reply("Sorry."))
    with Terminal(["chat", agent, "-v"], lines=40) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("└─ chat test-model", timeout=20)
        assert "  reason: the depot is closed\n  error: " in terminal.history_text
        assert "│  ✗ ValueError" in terminal.history_text


def test_a_message_typed_early_waits(server, agent):
    """It is answered as soon as everything has been loaded; Ctrl-C takes it back."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("never mind")
        terminal.wait_for("loading openai/test-model")
        terminal.key("ctrl-c")
        terminal.wait_for("not sent")
        terminal.line("hello")
        terminal.wait_for(_FOOTER, timeout=20)
        assert [message["content"] for message in server.requests[0].body["messages"] if message["role"] == "user"] == ["hello"]
        assert len(server.requests) == 1


def test_ctrl_c_stops_the_turn_only(server, agent):
    """What was said stays on the screen and in the history; the next message is answered."""
    server.reply(Reply("one two three four five six", chunk_delay=0.5), Reply("Fine."))
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("count")
        terminal.wait_for("one", timeout=20)
        terminal.key("ctrl-c")
        terminal.wait_for("stopped: the answer so far is kept", timeout=2)
        terminal.line("go on")
        terminal.wait_for("Fine.")
        assert [message["role"] for message in server.requests[1].body["messages"]] == ["system", "user", "assistant", "user"]


def test_ctrl_c_stops_running_tools(server, agent):
    """Tools are shown while they run; stopped ones say so."""
    server.reply(Reply("Wait.", tool_calls=[Call("slow_async", {"seconds": 60}), Call("slow", {"seconds": 60})]))
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(re.compile(r"slow_async\(seconds=60\) . [\d.]+ s\n. slow\(seconds=60\) . [\d.]+ s\n>"), timeout=20)
        terminal.key("ctrl-c")
        terminal.wait_for("stopped by the user", timeout=3, count=2)
        terminal.wait_for("> ", count=2)
        assert "⚙ slow_async(seconds=60) ✗" in terminal.history_text


def test_ctrl_c_at_the_prompt_clears_the_line(server, agent):
    """Nothing is sent, and the way out is said."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type("half a mess")
        terminal.wait_for("half a mess")
        terminal.key("ctrl-c")
        terminal.wait_for("Ctrl-D or /exit leaves.")
        terminal.line("whole")
        terminal.wait_for(_FOOTER, timeout=20)
        assert server.requests[0].body["messages"][-1]["content"] == "whole"


def test_what_is_typed_during_an_answer_is_sent_after_it(server, agent):
    """It does not get into the answer, and is the next message."""
    server.reply(Reply("one two three four", chunk_delay=0.2), Reply("Second."))
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("first")
        terminal.wait_for("one", timeout=20)
        terminal.line("typed ahead")
        terminal.wait_for("Second.")
        assert "one two three four\n" in terminal.history_text
        assert terminal.history_text.count("typed ahead") == 1


def test_a_paste_is_one_message(server, agent):
    """Line ends in a paste do not send it."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type("\x1b[200~first line\nsecond line\x1b[201~")
        terminal.wait_for("second line")
        terminal.key("enter")
        terminal.wait_for(_FOOTER, timeout=20)
        assert server.requests[0].body["messages"][-1]["content"] == "first line\nsecond line"


def test_refused_messages_leave_the_session_alone(server, agent):
    """Empty and too long: each has its line, then it goes on."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("")
        terminal.wait_for("The message is empty", timeout=20)
        terminal.type(f"\x1b[200~{'x' * 10_001}\x1b[201~\r")
        terminal.wait_for("10,001 characters")
        terminal.line("good")
        terminal.wait_for(_FOOTER)
        assert len(server.requests) == 1


def test_the_limit_of_messages(agent):
    """The answer is complete, one line says why it ends, exit 0."""
    with Terminal(["chat", agent, "--max-messages", "2"]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hello")
        assert terminal.wait_exit(20) == 0
        terminal.wait_for("This session has reached its limit of 2 messages")
        assert "\nhello\n" in terminal.history_text


def test_an_agent_that_cannot_be_opened(server, tmp_path):
    """The reason is one line above the prompt; the next message tries again, and works once the cause is gone."""
    flag = tmp_path / "works"
    (tmp_path / "server.py").write_text(_SERVER.format(flag=str(flag)), encoding="utf-8")
    tool = {"name": "files", "type": "mcp", "command": sys.executable, "args": [str(tmp_path / "server.py")]}
    agent = write_agent(tmp_path, server, tools=[tool])
    with Terminal(["chat", agent], columns=200) as terminal:
        terminal.wait_for("> ")
        terminal.wait_for(re.compile(r"^error: .*files.*\n>", re.MULTILINE), timeout=20)
        terminal.line("one")
        terminal.wait_for(re.compile(r"^error: .*files", re.MULTILINE), timeout=20, count=2)
        flag.touch()
        terminal.line("two")
        terminal.wait_for(_FOOTER, timeout=20)
        assert "Traceback" not in terminal.history_text


_SERVER = """
import os, sys
if not os.path.exists({flag!r}):
    sys.exit("no")
from mcp.server.fastmcp import FastMCP
server = FastMCP("files")
@server.tool()
def read() -> str:
    return "x"
server.run()
"""


def test_nothing_untrusted_acts_on_the_terminal(server, tmp_path):
    """Agent name, answer, arguments, results and errors pass the gate; what looks like markup is shown as it is."""
    hostile = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\u202ed [bold]e[/nope] :smile:"
    agent = write_agent(tmp_path, server, name="evil \x1b]0;title\x07[red]name", tools=["fails"])
    server.reply(Reply(tool_calls=[Call("fails", {"reason": hostile})]), Reply(hostile, chunks=40))
    with Terminal(["chat", agent, "-v"], lines=40) as terminal:
        terminal.wait_for("evil [red]name")
        terminal.line("hi")
        terminal.wait_for(re.compile(r"^abcd \[bold\]e\[/nope\] :smile:$", re.MULTILINE), timeout=20)
        terminal.wait_for("└─ chat")
        for forbidden in (b"52;c", b"ZXZpbA", b"]0;title", b"\x1b[2J", "\u202e".encode()):
            assert forbidden not in terminal.raw


@pytest.mark.parametrize(
    ("env", "colour"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "LANG": "C", "PYTHONIOENCODING": "ascii"}, False),
    ],
)
def test_colours(agent, env, colour):
    """NO_COLOR and a dumb terminal are respected; without colour everything can still be read."""
    with Terminal(["chat", agent], env=env) as terminal:
        terminal.wait_for("> ")
        terminal.line("hello")
        terminal.wait_for(_FOOTER, timeout=20)
        terminal.line("/trace 7")
        terminal.wait_for("error: /trace takes the number of a turn, 1 to 1")
        assert (b"\x1b[1;31m" in terminal.raw) is colour
        if env.get("LANG") == "C":
            assert "tokens - trace" in " ".join(terminal.history_text.split()) or "tokens\ntrace" in terminal.history_text


def test_the_prompt_comes_before_everything_heavy(agent):
    """Until the first prompt is drawn neither Semantic Kernel nor OpenTelemetry's SDK is imported."""
    code = (
        "import os, runpy; os.dup2(os.open('imports.txt', os.O_WRONLY | os.O_CREAT), 2); runpy.run_module('holodeck', run_name='__main__')"
    )
    program = [sys.executable, "-X", "importtime", "-c", code]
    with Terminal(["chat", agent], program=program, cwd=agent.parent) as terminal:
        terminal.wait_for("> ")
        terminal.key("ctrl-d")
        assert terminal.wait_exit() == 0
    imports = [line.rpartition("|")[2].strip() for line in (agent.parent / "imports.txt").read_text().splitlines()]
    assert "prompt_toolkit.shortcuts.prompt" in imports
    before = imports[: imports.index("holodeck.cli.shell")]
    assert not [n for n in before if n.split(".")[0] in {"semantic_kernel", "openai", "mcp"} or n.startswith("opentelemetry.sdk")]


def test_where_traces_go_is_said(agent, tmp_path):
    """The banner names the final URL and the file."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with Terminal(["chat", agent, "--observability", "--trace-file", "t.jsonl"], columns=120, env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("traces: http://127.0.0.1:9/v1/traces, this terminal (/trace), t.jsonl")
        assert terminal.screen[1].endswith(", t.jsonl")


def test_json_in_a_terminal_has_no_prompt(agent):
    """Nothing but objects: what is typed is read line by line."""
    with Terminal(["chat", agent, "--json"], columns=2000) as terminal:
        terminal.line("hello")
        terminal.wait_for('{"session_id": "', timeout=20)
        terminal.type("\x04")
        assert terminal.wait_exit() == 0
        assert "> " not in terminal.history_text
        assert "holodeck" not in terminal.history_text


def test_a_resize_in_an_answer(server, agent):
    """The next lines know the new width."""
    server.reply(Reply("one two three", chunk_delay=0.3))
    with Terminal(["chat", agent], columns=100) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("one", timeout=20)
        terminal.resize(50, 24)
        terminal.wait_for(re.compile(r"^trace [0-9a-f]{32}$", re.MULTILINE))
        deadline = time.monotonic() + 5
        while not terminal.screen[[bool(line) for line in terminal.screen].count(True)].startswith(">") and time.monotonic() < deadline:
            time.sleep(0.02)
        terminal.line("again")
        terminal.wait_for(_FOOTER, count=2)
        rows = terminal.history_text.splitlines()
        assert max(len(row) for row in rows[rows.index("> again") :]) <= 50


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "en_US.ISO-8859-1", "LC_CTYPE": "C.UTF-8"}])
def test_a_terminal_that_is_not_unicode(server, agent, env):
    """The locale says so, whatever Python makes of it: nothing that we draw is more than ASCII."""
    server.reply(Reply("- one", tool_calls=[Call("lookup_order", {"order_id": "1042"})]), Reply("- two"))
    with Terminal(["chat", agent], env=env) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(_FOOTER, timeout=20)
        terminal.line("/trace")
        terminal.wait_for("|- chat test-model")
        assert "* lookup_order(order_id=1042) ok" in terminal.history_text
        assert terminal.raw.isascii()


@pytest.mark.parametrize("columns", [40, 120])
def test_a_dumb_terminal_has_its_width(agent, columns):
    """Lines are laid out for the width that it has, not for 80 cells."""
    with Terminal(["chat", agent], columns=columns, env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for(_FOOTER, timeout=20)
        terminal.line("/help")
        terminal.wait_for("leaves.", count=2)
        rows = terminal.history_text.splitlines()
        longest = "/call TOOL key=value ...  run a tool yourself, and offer its result to the model"
        assert (longest in rows) is (columns == 120)
        assert max(map(len, rows)) <= columns
