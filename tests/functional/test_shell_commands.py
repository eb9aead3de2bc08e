"""Every slash command, in a real terminal."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from holodeck.cli.slash import COMMANDS
from support.command import Terminal, run
from support.otlp_receiver import OtlpReceiver
from support.scripts import call, scripted_agent, usage

_ANSWERED = re.compile(r"first token [\d.]+ [mµ]?s")


@pytest.fixture
def agent(tmp_path):
    """An agent that calls a tool once, then counts its answers."""
    return scripted_agent(
        tmp_path / "agent",
        {"tool_calls": [call("lookup", order_id="1042")], "usage": usage(10, 1)},
        *({"text": f"Answer **{n}**.", "usage": usage(20, 2)} for n in range(1, 6)),
    )


@pytest.fixture
def terminal(agent, tmp_path):
    """A chat with one turn behind it."""
    with Terminal(["chat", agent, "--trace-file", tmp_path / "t.jsonl"], columns=100, lines=50, cwd=tmp_path) as terminal:
        terminal.wait_for("> ")
        terminal.line("hello")
        terminal.wait_for("Answer 1.", timeout=20)
        terminal.wait_for(_ANSWERED)
        yield terminal
        assert "Traceback" not in terminal.history_text


def _roots(tmp_path):
    requests = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    spans = [s for r in requests for rs in r["resourceSpans"] for ss in rs["scopeSpans"] for s in ss["spans"]]
    return [s for s in spans if not s.get("parentSpanId")], spans


def _attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


def test_every_command_has_a_test_here():
    """A new row in the table needs one."""
    text = Path(__file__).read_text(encoding="utf-8") + "/usage"  # which has tests of its own
    assert [name for name in COMMANDS if f"/{name}" not in text.replace('f"/{name}"', "")] == []


def test_help(terminal):
    """/help lists every command of the table."""
    terminal.line("/help")
    for command in COMMANDS.values():
        terminal.wait_for(f"{command.usage} ")
    rows = [row for row in terminal.history_text.splitlines() if row.startswith("/")]
    assert [row.split()[0] for row in rows if not row.startswith("/help lists")] == [f"/{name}" for name in COMMANDS]


def test_trace(terminal):
    """/trace draws the last turn, /trace 1 that one."""
    terminal.line("/trace")
    terminal.wait_for(re.compile(r"├─ execute_tool lookup|├─ tool lookup"))
    terminal.line("/trace 1")
    terminal.wait_for(re.compile(r"├─ execute_tool lookup|├─ tool lookup"), count=2)
    first, second = re.findall(r"(?<=invoke_agent support)[^\n]*\n├─[^\n]*\n├─[^\n]*", terminal.history_text)
    assert first == second


def test_tools(terminal):
    """/tools lists them, under /verbose with what they take."""
    terminal.line("/tools")
    terminal.wait_for("lookup  Look an order up.")
    assert '"properties"' not in terminal.history_text
    terminal.line("/verbose")
    terminal.wait_for("Tools are shown in full")
    terminal.line("/tools")
    terminal.wait_for('"properties"')


def test_call(terminal, tmp_path):
    """/call runs a tool as a turn of its own, and puts its result at the prompt, from where it can be sent."""
    terminal.line('/call lookup order_id="10 43"')
    terminal.wait_for("Enter sends the result")
    terminal.wait_for(re.compile(r'^> lookup\(order_id="10 43"\) returned:\n  \{.*"10 43"', re.MULTILINE))
    terminal.key("enter")
    terminal.wait_for("Answer 2.")
    terminal.line("/trace 2")
    terminal.wait_for(re.compile(r"└─ execute_tool lookup"))
    terminal.line("exit")
    assert terminal.wait_exit() == 0
    roots, spans = _roots(tmp_path)
    assert [_attributes(r)["holodeck.turn.number"] for r in roots] == ["1", "2", "3"]
    by_hand = [s for s in spans if s.get("parentSpanId") == roots[1]["spanId"]]
    assert [s["name"] for s in by_hand] == ["execute_tool lookup"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "error: /call takes a tool and its arguments (tools: lookup, where, "),
        ("lokup x=1", "error: there is no tool lokup: did you mean lookup? (tools: lookup, where, "),
        ("zzzz", "error: there is no tool zzzz (tools: lookup, "),
        ("LOOKUP x=1", "error: there is no tool LOOKUP: did you mean lookup? (tools: "),
        ("lookup order_id=1 order_id=2", "error: order_id is given twice"),
        ("lookup order_id", "error: 'order_id' is no argument: write key=value"),
        ("lookup {x", "error: the arguments are not JSON"),
    ],
)
def test_call_says_what_it_needs(terminal, arguments, words):
    """A call that cannot be made is one line."""
    terminal.line(f"/call {arguments}")
    terminal.wait_for(words)
    assert "Enter sends" not in terminal.history_text
    terminal.line("and now?")
    terminal.wait_for("Answer 2.")


def test_a_call_with_more_than_a_message_can_hold(terminal):
    """Whatever comes of it, the chat goes on."""
    terminal.type(f"\x1b[200~/call lookup order_id={'x' * 12_000}\x1b[201~")
    terminal.key("enter")
    terminal.wait_for(re.compile(r"lookup\(order_id=.*\) ✓|error: "))
    terminal.key("ctrl-c")
    terminal.line("/history")
    terminal.wait_for("1 > hello")
    assert "ValidationError" not in terminal.history_text


def test_a_call_that_fails(terminal):
    """It is shown as any other failed call, and nothing is offered."""
    terminal.line("/call fails settings=bad")
    terminal.wait_for(re.compile(r"fails\(settings=bad\) ✗ .*the canary bad"))
    terminal.line("/call lookup")
    terminal.wait_for(re.compile(r"lookup\(\) ✗"))
    assert "Enter sends" not in terminal.history_text


def test_history(terminal):
    """/history shows both sides."""
    terminal.line("/history")
    terminal.wait_for("1 > hello\nAnswer **1**.")
    assert "2 > " not in terminal.history_text


def test_retry(terminal, tmp_path):
    """/retry sends the last message again, as if it had not been answered."""
    terminal.line("/retry")
    terminal.wait_for("Answer 2.")
    terminal.line("exit")
    assert terminal.wait_exit() == 0
    roots, _ = _roots(tmp_path)
    assert [_attributes(r)["holodeck.session.message_count"] for r in roots] == ["2", "2"]


def test_retry_needs_a_message(agent):
    """Without one it says so."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("/retry")
        terminal.wait_for("error: there is no message yet", timeout=20)
        assert not _ANSWERED.search(terminal.history_text)


def test_reset(terminal, tmp_path):
    """/reset begins a conversation with another id and turn 1; /trace still knows the turns before."""
    terminal.line("/reset")
    terminal.wait_for("A new conversation begins")
    terminal.line("again")
    terminal.wait_for(_ANSWERED, count=2)
    terminal.line("/trace 1")
    terminal.wait_for("└─ chat script")
    terminal.line("exit")
    assert terminal.wait_exit() == 0
    roots, _ = _roots(tmp_path)
    assert [_attributes(r)["holodeck.turn.number"] for r in roots] == ["1", "1"]
    assert len({_attributes(r)["gen_ai.conversation.id"] for r in roots}) == 2
    assert not roots[1].get("links")


def test_verbose(terminal):
    """/verbose is a switch."""
    terminal.line("/verbose")
    terminal.wait_for("Tools are shown in full")
    terminal.line("/call lookup order_id=7")
    terminal.wait_for("  order_id: 7")
    terminal.wait_for("└─ execute_tool lookup")
    terminal.key("ctrl-c")
    terminal.line("/verbose")
    terminal.wait_for("Tools are shown in one line")
    terminal.line("/call lookup order_id=8")
    terminal.wait_for(re.compile(r"lookup\(order_id=8\) ✓"))
    assert terminal.history_text.count("└─ execute_tool lookup") == 1


@pytest.mark.parametrize("name", ["said.json", "said.md"])
def test_save(terminal, tmp_path, name):
    """/save writes a file for its owner alone, and never over another."""
    terminal.line(f"/save {name}")
    terminal.wait_for(f"saved: {name}")
    terminal.line(f"/save {name}")
    terminal.wait_for(f"error: {name} is there already")
    path = tmp_path / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if name.endswith("json"):
        (turn,) = json.loads(path.read_text())["turns"]
        assert (turn["asked"], turn["message"]["content"], turn["tool_calls"][0]["status"]) == ("hello", "Answer **1**.", "success")
    else:
        said = path.read_text()
        assert '## You\n\nhello\n\n## support\n\n### Tool `lookup`\n\n```json\n{\n  "order_id": "1042"\n}\n```\n' in said
        assert '\nResult:\n\n```\n{"order_id":"1042","status":"shipped"}\n```\n\nAnswer **1**.\n' in said


@pytest.mark.parametrize(("argument", "words"), [("", "takes the name of a file"), ("no/such/directory/x.md", "cannot be written")])
def test_save_says_what_is_wrong(terminal, argument, words):
    """No name, no directory: one line each."""
    terminal.line(f"/save {argument}")
    terminal.wait_for(words)
    assert "saved" not in terminal.history_text


def test_stats(terminal, agent):
    """/stats says what was delivered, or that nothing is sent."""
    terminal.line("/stats")
    terminal.wait_for("there is nothing to deliver")
    with (
        OtlpReceiver() as receiver,
        Terminal(["chat", agent, "--observability"], env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}) as other,
    ):
        other.wait_for("> ")
        other.line("hello")
        other.wait_for(_ANSWERED, timeout=20)
        other.line("/stats")
        other.wait_for(re.compile(r"^spans ended +4$", re.MULTILINE))
        assert "there is nothing to deliver" not in other.history_text


def test_exit(terminal):
    """/exit leaves."""
    terminal.line("/exit")
    assert terminal.wait_exit() == 0


def test_an_unknown_command_and_a_slash_that_is_sent(terminal, tmp_path):
    """The nearest is named; // sends one slash to the agent."""
    terminal.line("/sve x")
    terminal.wait_for("did you mean /save FILE?")
    terminal.line("//save the whales")
    terminal.wait_for("Answer 2.")
    terminal.line("/save x.json")
    terminal.wait_for("saved: ")
    assert json.loads((tmp_path / "x.json").read_text())["turns"][1]["asked"] == "/save the whales"


def test_commands_in_a_pipe(agent):
    """They work there, too; what would be put at the prompt is shown only."""
    done = run(["chat", agent], stdin="/call lookup order_id=7\n/retry\nhello\n/retry\n/history\n")
    assert "lookup(order_id=7)" in done.err
    assert "there is no message yet" in done.err
    assert "4 > hello" not in done.err
    assert "2 > hello\nAnswer **1**.\n3 > hello\nAnswer **2**." in done.err
    assert "Enter sends" not in done.err
