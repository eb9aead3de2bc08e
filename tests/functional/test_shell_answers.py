"""Answers as they stream, in a real terminal: what stands there in the end is the whole text, formatted, each line once."""

from __future__ import annotations

import re
import sys
import time

import pytest

from support.command import Terminal
from support.scripts import call, scripted_agent

_ANSWERED = re.compile(r"first token [\d.]+ [mµ]?s")

_MARKDOWN = """\
# Report

Some **bold** and *italic* words with `code`, and a [link](http://example.invalid/x).

- first
- second
  - nested

1. one
2. two

```python
def double(x: int) -> int:
    return x + x
```

| a | b |
|---|--:|
| x | 1 |

> quoted

The end."""

_SHOWN = """\
Report

Some bold and italic words with code, and a link (http://example.invalid/x).

• first
• second
  • nested

1. one
2. two

```python
def double(x: int) -> int:
    return x + x
```

a │ b
──┼──
x │ 1

│ quoted

The end."""


def _answer(terminal):
    """What stands between the message and the footer."""
    terminal.wait_for(_ANSWERED, timeout=30)
    return re.search(r"^> hi\n(.*?)\n[^\n]*first token", terminal.history_text, re.DOTALL | re.MULTILINE)[1]


def _ask(terminal):
    terminal.wait_for("> ")
    terminal.line("hi")


@pytest.mark.parametrize("chunks", [1, 37, 400])
def test_markdown(tmp_path, chunks):
    """Formatted as it streams; however it is cut, the screen is the same in the end."""
    with Terminal(["chat", scripted_agent(tmp_path, {"text": _MARKDOWN, "chunks": chunks, "chunk_delay": 0.002})], lines=60) as terminal:
        _ask(terminal)
        assert _answer(terminal) == _SHOWN
        assert b"\x1b[1mbold\x1b[0m" in terminal.raw
        assert b"\x1b]8;" not in terminal.raw  # no link that is not read first


def test_more_than_a_screen(tmp_path):
    """Blocks that are longer than the window, and an answer of many windows: nothing is lost, nothing stands there twice."""
    long = " ".join(f"word{n}" for n in range(800))
    code = "\n".join(f"x{n} = {n}" for n in range(90))
    text = f"{long}\n\n```python\n{code}\n```\n\n" + "\n".join(f"- item {n}" for n in range(60))
    agent = scripted_agent(tmp_path, {"text": text, "chunks": 300, "chunk_delay": 0.003})
    with Terminal(["chat", agent], lines=20, columns=60) as terminal:
        _ask(terminal)
        shown = _answer(terminal)
        assert re.findall(r"word(\d+)", shown) == [str(n) for n in range(800)]
        assert shown.partition("```python\n")[2].partition("\n```")[0] == code
        assert re.findall(r"^• item (\d+)$", shown, re.MULTILINE) == [str(n) for n in range(60)]


def test_a_resize_while_it_streams(tmp_path):
    """What has been printed stays; what comes is laid out for the new width."""
    text = "\n\n".join(f"paragraph {n} " + "with words " * 8 for n in range(30))
    with Terminal(["chat", scripted_agent(tmp_path, {"text": text, "chunks": 200, "chunk_delay": 0.01})], columns=100) as terminal:
        _ask(terminal)
        terminal.wait_for("paragraph 8", timeout=20)
        terminal.resize(50, 24)
        terminal.wait_for(re.compile(r"^trace [0-9a-f]{32}$", re.MULTILINE), timeout=20)
        shown = terminal.history_text
        assert re.findall(r"^paragraph (\d+)", shown, re.MULTILINE) == [str(n) for n in range(30)]
        assert all(len(line) <= 50 for line in shown.partition("paragraph 20")[2].splitlines())


def test_forty_columns(tmp_path):
    """No line is wider than the window, and code is not touched."""
    with Terminal(["chat", scripted_agent(tmp_path, {"text": _MARKDOWN, "chunks": 50})], columns=40, lines=60) as terminal:
        _ask(terminal)
        terminal.wait_for(re.compile(r"^trace [0-9a-f]{32}$", re.MULTILINE), timeout=20)
        assert "Some bold and italic words with code,\nand a link (http://example.invalid/x)." in terminal.history_text
        assert "def double(x: int) -> int:\n    return x + x\n" in terminal.history_text


def test_typing_while_it_streams(tmp_path):
    """The prompt stays at the end of the screen, can be edited, and leaves no trace in the answer."""
    agent = scripted_agent(
        tmp_path, {"text": "\n\n".join(f"line {n}" for n in range(60)), "chunks": 150, "chunk_delay": 0.02}, {"text": "Two."}
    )
    with Terminal(["chat", agent]) as terminal:
        _ask(terminal)
        terminal.wait_for("line 3", timeout=20)
        terminal.type("and thEn")
        terminal.wait_for("> and thEn")
        for _ in range(2):
            terminal.key("backspace")
        terminal.type("en?")
        terminal.wait_for("> and then?")
        terminal.key("enter")
        terminal.wait_for("Two.", timeout=20)
        assert _answer(terminal).split("\n\n") == [f"line {n}" for n in range(60)]


@pytest.mark.parametrize(
    ("env", "bullet", "styled"),
    [
        ({"NO_COLOR": "1"}, "•", True),
        ({"LANG": "C", "PYTHONIOENCODING": "ascii"}, "-", True),
        ({"LANG": "C", "PYTHONIOENCODING": "cp1252"}, "-", True),
        ({"TERM": "dumb"}, "-", False),
    ],
)
def test_poor_terminals(tmp_path, env, bullet, styled):
    """Without colours, without Unicode, without a cursor: everything can be read; a dumb terminal gets the text as it was written."""
    text = "Some `code`, **bold**:\n\n- an item ✓\n\n```python\nx = 1\n```"
    with Terminal(
        ["chat", scripted_agent(tmp_path, {"text": text, "tool_calls": [call("lookup", order_id="1")]}, {"text": "End."})], env=env
    ) as terminal:
        _ask(terminal)
        terminal.wait_for("End.", timeout=20)
        shown = terminal.history_text
        assert f"{bullet} an item" in shown
        assert "\nx = 1\n" in shown
        assert re.search(r"lookup\(order_id=1\) \S+ \d", shown)
        assert ("**bold**" in shown) is not styled
        colours = re.findall(rb"\x1b\[(?:[0-9]+;)*(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:;[0-9]+)*m", terminal.raw)
        assert not colours or "NO_COLOR" not in env


def test_hostile_markdown(tmp_path):
    """Entities, links, images and HTML that would act on the terminal do not; what looks like markup is shown."""
    text = (
        "a&#27;]52;c;eA==&#7; &#x202e;b [bold]c[/bold] :smile: <b>d</b>\n\n"
        "[e](javascript:alert(1)) ![f](x\x1b[2J) [\x1b]8;;http://e\x07g](h)\n\n```\x1b]0;t\x07\ni\x1b[2J\n```\n\n| j |\n|-|\n| \x1b[2Jk |"
    )
    with Terminal(["chat", scripted_agent(tmp_path, {"text": text, "chunks": 100})]) as terminal:
        _ask(terminal)
        shown = _answer(terminal)
        for forbidden in (b"\x1b]52;", b"\x1b]8;", b"\x1b]0;", b"\x1b[2J", "\u202e".encode()):
            assert forbidden not in terminal.raw
        assert "[bold]c[/bold] :smile: <b>d</b>" in shown
        assert "\ni\n" in shown


def test_a_tool_that_prints(tmp_path):
    """It goes above the prompt, and does not act on the terminal."""
    (tmp_path / "chatty.py").write_text("def chatty():\n    print('hello \\x1b]0;x\\x07from a tool')\n    return 'x'\n")
    agent = scripted_agent(tmp_path, {"tool_calls": [call("chatty")]}, {"text": "End."}, tools=[_CHATTY])
    with Terminal(["chat", agent]) as terminal:
        _ask(terminal)
        terminal.wait_for("End.", timeout=20)
        assert "hello from a tool\n" in terminal.history_text
        assert b"\x1b]0;" not in terminal.raw


def test_what_takes_long_is_shown(tmp_path):
    """While a server starts a line says so and counts, above a prompt that can be used; then it is gone."""
    (tmp_path / "server.py").write_text(_SLOW_SERVER, encoding="utf-8")
    server = {"name": "files", "type": "mcp", "command": sys.executable, "args": [str(tmp_path / "server.py")]}
    with Terminal(["chat", scripted_agent(tmp_path, {"text": "End."}, tools=[server])]) as terminal:
        terminal.wait_for(re.compile(r"^\S starting MCP server files [1-9]\.\d s\n>", re.MULTILINE), timeout=20)
        terminal.type("hi")
        terminal.wait_for("> hi")
        (tmp_path / "go").touch()
        terminal.wait_for(re.compile(r"leaves\.\n\n> hi$", re.MULTILINE), timeout=20)
        terminal.key("enter")
        terminal.wait_for("End.", timeout=20)
        assert "starting MCP" not in terminal.history_text


_SLOW_SERVER = """
import pathlib, time
while not (pathlib.Path(__file__).parent / "go").exists():
    time.sleep(0.05)
from mcp.server.fastmcp import FastMCP
server = FastMCP("files")
@server.tool()
def read() -> str:
    return "x"
server.run()
"""
_CHATTY = {"name": "chatty", "type": "function", "file": "chatty.py", "function": "chatty"}


def test_typing_while_a_whole_answer_arrives_at_once(tmp_path):
    """An answer of thousands of lines in one piece does not keep keys waiting until it has been printed."""
    text = "\n".join(f"- item **{n}** with `code`" for n in range(4000))
    with Terminal(["chat", scripted_agent(tmp_path, {"text": text, "chunks": 1})]) as terminal:
        _ask(terminal)
        terminal.wait_for("item 1 ", timeout=20)
        terminal.type("meanwhile")
        terminal.wait_for("> meanwhile")
        assert "item 3999" not in terminal.history_text
        terminal.wait_for(_ANSWERED, timeout=60)
        assert re.findall(r"^• item (\d+) with code$", terminal.history_text, re.MULTILINE) == [str(n) for n in range(4000)]


def test_what_has_been_printed_does_not_stand_there_twice(tmp_path):
    """The moment a block is complete it is no live line any more."""
    text = "\n\n".join(f"paragraph {n}." for n in range(40))
    with Terminal(["chat", scripted_agent(tmp_path, {"text": text, "chunks": 200, "chunk_delay": 0.015})]) as terminal:
        _ask(terminal)
        terminal.wait_for("paragraph 2.", timeout=20)
        while "paragraph 39." not in terminal.history_text:
            rows = [row for row in terminal.screen if row.startswith("paragraph") and row.endswith(".")]
            assert len(rows) == len(set(rows))
            time.sleep(0.005)
        terminal.wait_for(_ANSWERED)


def test_a_tool_that_has_ended_does_not_run(tmp_path):
    """Its line stands there once, beside that of a tool that goes on."""
    calls = [call("nap", "call_1", seconds=1.5), call("nap", "call_2", seconds=0.4)]
    with Terminal(["chat", scripted_agent(tmp_path, {"tool_calls": calls}, {"text": "End."})]) as terminal:
        _ask(terminal)
        terminal.wait_for(re.compile(r"nap\(seconds=0.4\) ✓"), timeout=20)
        for _ in range(10):
            time.sleep(0.03)
            assert sum("nap(seconds=0.4)" in row for row in terminal.screen) == 1
        terminal.wait_for("End.")
