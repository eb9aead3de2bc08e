"""Editing at the prompt, in a real terminal."""

from __future__ import annotations

import json
import re
import stat

import pytest

from holodeck.cli.slash import COMMANDS
from support.command import HOLODECK, Terminal
from support.scripts import scripted_agent

_ANSWERED = re.compile(r"first token [\d.]+ [mµ]?s")


@pytest.fixture
def agent(tmp_path):
    """An agent that always says the same."""
    return scripted_agent(tmp_path / "agent", {"text": "All right.", "repeat": True})


@pytest.fixture
def home(tmp_path):
    """A home that sessions share."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def _saved(terminal, path):
    """What was sent, as /save writes it."""
    terminal.line(f"/save {path}")
    terminal.wait_for("saved: ")
    return [turn["asked"] for turn in json.loads(path.read_text())["turns"]]


def test_history_lives_in_a_file_of_the_user_alone(agent, home):
    """What was typed in one session comes back in the next, and is suggested while typing."""
    with Terminal(["chat", agent], home=home) as terminal:
        terminal.wait_for("> ")
        terminal.line("Where is the lamp?")
        terminal.wait_for(_ANSWERED)
        terminal.line("exit")
        assert terminal.wait_exit() == 0
    (file,) = home.rglob("history.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Terminal(["chat", agent], home=home) as terminal:
        terminal.wait_for("> ")
        terminal.type("Wh")
        terminal.wait_for("> Where is the lamp?")  # grey, until it is taken
        terminal.key("right")
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        terminal.key("up")
        terminal.key("up")
        terminal.wait_for(re.compile(r"^> exit$", re.MULTILINE))


def test_a_secret_is_not_written_down(agent, home):
    """An entry that redaction would change is remembered for the session only."""
    with Terminal(["chat", agent], home=home) as terminal:
        terminal.wait_for("> ")
        terminal.line("my key is sk-abcdefghijklmnop1234")
        terminal.wait_for(_ANSWERED)
        terminal.line("harmless")
        terminal.wait_for(_ANSWERED, count=2)
        terminal.key("up")
        terminal.key("up")
        terminal.wait_for("sk-abcdefghijklmnop1234", count=2)
    (file,) = home.rglob("history.jsonl")
    assert [json.loads(line) for line in file.read_text().splitlines()] == ["harmless"]


@pytest.mark.parametrize(("flags", "env"), [(["--no-history"], {}), ([], {"HOLODECK_HISTORY": "off"})])
def test_history_can_be_switched_off(agent, home, flags, env):
    """Then nothing is written at all."""
    with Terminal(["chat", agent, *flags], home=home, env=env) as terminal:
        terminal.wait_for("> ")
        terminal.line("hello")
        terminal.wait_for(_ANSWERED)
    assert list(home.rglob("history*")) == []


@pytest.mark.parametrize("key", ["\x1b\r", "\n"])
def test_a_key_adds_a_line(agent, tmp_path, key):
    """Alt-Enter and Ctrl-J add a line, Enter sends all of them; the arrow goes up within them."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("first")
        terminal.wait_for(_ANSWERED)
        terminal.type(f"one{key}three")
        terminal.wait_for(re.compile(r"^> one\n  three$", re.MULTILINE))
        terminal.key("up")
        terminal.key("end")
        terminal.type(f"{key}two")
        terminal.wait_for(re.compile(r"^> one\n  two\n  three$", re.MULTILINE))
        terminal.key("enter")
        terminal.wait_for(_ANSWERED, count=2)
        assert _saved(terminal, tmp_path / "t.json") == ["first", "one\ntwo\nthree"]


def test_a_paste_keeps_its_lines(agent, tmp_path):
    """A paste of many lines, longer than the screen, is one message."""
    text = "\n".join(f"line {n}" for n in range(60))
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type(f"\x1b[200~{text}\x1b[201~")
        terminal.wait_for("line 59")
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        assert _saved(terminal, tmp_path / "t.json") == [text]


def test_what_is_typed_before_the_prompt_is_sent(agent):
    """Enter is Enter, also where the terminal has made a line feed of it."""
    with Terminal(["chat", agent]) as terminal:
        terminal.line("early")
        terminal.wait_for(_ANSWERED, timeout=20)
        terminal.wait_for(re.compile(r"^> early$", re.MULTILINE))
        assert terminal.history_text.count("> early") == 1


def test_completion(agent, tmp_path):
    """Commands with their help while they are typed; tools, their arguments and files."""
    (tmp_path / "transcripts").mkdir()
    with Terminal(["chat", agent], cwd=tmp_path) as terminal:
        terminal.wait_for("> ")
        terminal.type("/re")
        terminal.wait_for("begin a new conversation")
        terminal.wait_for("/retry")
        terminal.key("ctrl-u")
        terminal.type("/ca")
        terminal.wait_for("run a tool yourself")
        terminal.key("tab")
        terminal.wait_for("> /call ")
        terminal.type("lo")
        terminal.wait_for("Look an order up.")
        terminal.key("tab")
        terminal.wait_for("> /call lookup ")
        terminal.type("o")
        terminal.wait_for("order_id=")
        terminal.key("tab")
        terminal.wait_for("> /call lookup order_id=")
        terminal.key("ctrl-u")
        terminal.type("/save tra")
        terminal.wait_for(re.compile(r"^ +transcripts", re.MULTILINE))
        terminal.key("tab")
        terminal.wait_for("> /save transcripts")
        terminal.key("ctrl-u")
        terminal.type("look at ./tra")
        terminal.type("\t")
        terminal.wait_for("look at ./transcripts")
        assert "> look at ./transcripts/" in terminal.screen


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_the_menu_can_be_read(agent, columns):
    """Names are whole at any width; what they do stands beside them where there is room for it."""
    with Terminal(["chat", agent], columns=columns) as terminal:
        terminal.wait_for("> ")
        terminal.type("/")
        terminal.wait_for(re.compile(r"^> /\n +/help(.*\n)+ +/call", re.MULTILINE))
        rows = [row.strip() for row in terminal.screen[terminal.screen.index("> /") + 1 :] if row.strip()]
        usages = [command.usage for command in COMMANDS.values()]
        assert len(rows) >= 5
        for row, command in zip(rows, COMMANDS.values(), strict=False):
            assert row.startswith(command.usage)
            assert (command.help[:20] in row) is (columns > 40)
            assert columns > 40 or row in usages
        terminal.key("ctrl-u")
        terminal.type("/call ")
        terminal.wait_for(re.compile(r"^ +fails", re.MULTILINE))
        assert ("Look an order up." in terminal.history_text) is (columns > 40)


def test_vi_keys(agent, tmp_path):
    """They can be chosen, by a variable or by readline's file."""
    (tmp_path / "inputrc").write_text("set editing-mode vi\n")
    for env in ({"HOLODECK_EDITING_MODE": "vi"}, {"INPUTRC": str(tmp_path / "inputrc")}):
        with Terminal(["chat", agent], env=env) as terminal:
            terminal.wait_for("> ")
            terminal.type("one two")
            terminal.wait_for("one two")
            terminal.key("escape")
            terminal.type("0xxithr")
            terminal.wait_for("> thre two")
            assert "> thre two" in terminal.screen


def test_wide_and_reversing_characters(agent, tmp_path):
    """Cells are counted as the terminal does; what would turn the line around is shown, not done."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type("日本語 \u202eabc\u202c שלום 👍 ok")
        terminal.wait_for("ok")
        terminal.key("left")
        terminal.key("left")
        terminal.type("it is ")
        terminal.wait_for("it is ok")
        assert "\u202e".encode() not in terminal.raw
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        assert _saved(terminal, tmp_path / "t.json") == ["日本語 \u202eabc\u202c שלום 👍 it is ok"]
        assert "\u202e".encode() not in terminal.raw


@pytest.mark.parametrize("columns", [40, 200])
def test_a_long_line(agent, columns):
    """A line that is longer than the window can be edited anywhere."""
    with Terminal(["chat", agent], columns=columns) as terminal:
        terminal.wait_for("> ")
        terminal.type("x" * 250 + "end")
        terminal.wait_for("end")
        terminal.key("home")
        terminal.type("begin")
        terminal.wait_for("> beginx")
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        assert "> begin" + "x" * 250 + "end" in terminal.history_text.replace("\n", "")


def test_a_resize_at_the_prompt(agent):
    """The line is drawn anew for the new width, and goes on."""
    with Terminal(["chat", agent], columns=100) as terminal:
        terminal.wait_for("> ")
        terminal.type("y" * 70)
        terminal.wait_for("y" * 70)
        terminal.resize(40, 20)
        terminal.wait_for(re.compile(r"^> y{38}\ny{32}$|^> y{38}\n  y{32}$", re.MULTILINE))
        terminal.type("!")
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        assert "> " + "y" * 70 + "!" in terminal.history_text.replace("\n", "")


def test_tabs_are_shown_as_space(agent, tmp_path):
    """A paste with tabs looks like its text, and stays what it is."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.type("\x1b[200~if x:\n\ty\tz\x1b[201~")
        terminal.wait_for(re.compile(r"^> if x:\n {10}y {7}z$", re.MULTILINE))
        terminal.key("enter")
        terminal.wait_for(_ANSWERED)
        assert _saved(terminal, tmp_path / "t.json") == ["if x:\n\ty\tz"]


@pytest.mark.parametrize("mode", ["emacs", "vi"])
def test_ctrl_z_and_fg(agent, mode):
    """The shell gets its terminal back as it was; what was typed stands at the prompt again after fg, and an answer goes on."""
    env = {"PS1": "SHELL ", "HOLODECK_EDITING_MODE": mode}
    with Terminal(program=["bash", "--norc", "-i"], env=env) as terminal:
        terminal.wait_for("SHELL ")
        terminal.line(f"{HOLODECK} chat {agent}")
        terminal.wait_for("\n> ")
        terminal.type("draft")
        terminal.wait_for("> draft")
        terminal.key("ctrl-z")
        terminal.wait_for("Stopped")
        terminal.line("stty -a | grep -o '[ -]icanon'")
        terminal.wait_for(re.compile(r"^ icanon$", re.MULTILINE))
        terminal.line("fg")
        terminal.wait_for(re.compile(r"^> draft$", re.MULTILINE))
        terminal.line(" goes on")
        terminal.wait_for(_ANSWERED)
        terminal.wait_for("> draft goes on")
        assert "^Z" not in terminal.history_text


def test_a_history_of_many_entries_is_quick(agent, home):
    """A suggestion does not cost more than a key can take, and a search ends."""
    state = home / ".state" / "holodeck"
    state.mkdir(parents=True)
    (state / "history.jsonl").write_text("".join(f'"entry number {n}"\n' for n in range(60_000)))
    with Terminal(["chat", agent], home=home) as terminal:
        terminal.wait_for("> ")
        terminal.type("entry num")
        terminal.wait_for("> entry number 59999")
        terminal.key("ctrl-u")
        terminal.key("ctrl-r")
        terminal.type("er 5555")
        terminal.wait_for(re.compile(r"`er 5555': entry number 5555\d"), timeout=5)
        before = terminal.cpu
        terminal.type("zzzz")  # nowhere: all entries are looked through, for each key
        terminal.wait_for("zzzz", timeout=5)
        assert terminal.cpu - before < 1.0


def test_tab_takes_the_only_one_and_goes_on(agent, tmp_path):
    """A second Tab does not take it back: it takes what may follow."""
    (tmp_path / "here" / "transcripts" / "of may").mkdir(parents=True)
    with Terminal(["chat", agent], cwd=tmp_path / "here") as terminal:
        terminal.wait_for("> ")
        terminal.type("/sa")
        terminal.wait_for(re.compile(r"^ /save FILE", re.MULTILINE))
        terminal.key("tab")
        terminal.wait_for(re.compile(r"^> /save\n +transcripts/$", re.MULTILINE))
        terminal.key("tab")
        terminal.wait_for(re.compile(r"^> /save transcripts/\n +of may/$", re.MULTILINE))
        terminal.key("tab")
        terminal.type("x.md")
        terminal.wait_for("> /save transcripts/of may/x.md")
        terminal.key("ctrl-u")
        terminal.type("/sa\ttr\t\ty.md")  # quicker than any menu
        terminal.wait_for("> /save transcripts/of may/y.md")
        assert "error" not in terminal.history_text
