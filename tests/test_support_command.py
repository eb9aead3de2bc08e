"""The drivers of the command, driving a shell and Python in its place."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from support.command import HOLODECK, Process, Terminal, run

SH = ["/bin/sh", "-c"]
PYTHON = [sys.executable, "-u", "-c"]


def test_a_run_has_code_output_and_cpu():
    """Both streams come back apart, and the child's CPU time is its own."""
    result = run(["cat; echo oops >&2; exit 3"], "grüße\n", program=SH)
    assert (result.code, result.out, result.err) == (3, "grüße\n", "oops\n")
    busy = run(["import time\nwhile time.process_time() < 0.2: pass"], program=PYTHON)
    assert 0.2 <= busy.cpu <= busy.duration + 0.5
    assert result.cpu < 0.1


def test_without_input_there_is_none():
    """Standard input is empty, not the test's own."""
    assert run(["cat; echo end"], program=SH).out == "end\n"


def test_bytes_go_through_unharmed():
    """What is no UTF-8 survives both ways."""
    assert run(["cat"], b"a\xffb", program=SH).out.encode("utf-8", "surrogateescape") == b"a\xffb"


def test_the_environment_is_clean(monkeypatch, tmp_path):
    """Keys, telemetry settings and the developer's home stay outside; what the test adds comes in."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    program = ["import json, os; print(json.dumps(dict(os.environ, cwd=os.getcwd())))"]
    seen = json.loads(run(program, env={"OTEL_SDK_DISABLED": "true"}, program=PYTHON).out)
    assert set(seen) - {"LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "__CF_USER_TEXT_ENCODING"} == {
        *("PATH", "LANG", "TERM", "HOME", "OTEL_SDK_DISABLED", "cwd"),
        *(f"XDG_{kind}_HOME" for kind in ("CONFIG", "DATA", "CACHE", "STATE")),
    }
    assert seen["HOME"] != os.environ.get("HOME")
    assert os.path.realpath(seen["HOME"]) == seen["cwd"]
    assert not Path(seen["HOME"]).exists()
    assert json.loads(run(program, home=tmp_path, program=PYTHON).out)["HOME"] == str(tmp_path)


def test_a_run_that_takes_too_long_is_killed_and_shown():
    """The message has what was written until then."""
    started = time.monotonic()
    with pytest.raises(AssertionError, match=r"not done after 0\.2 s\nstdout: b'begun"):
        run(["echo begun; exec sleep 30"], timeout=0.2, program=SH)
    assert time.monotonic() - started < 5


def test_a_process_can_be_talked_to_and_signalled():
    """Input can come in parts, and a signal shows in the exit code."""
    with Process(["read a; echo got $a; read b; kill -TERM $$"], program=SH) as process:
        process.send("one\n")
        result = process.wait("two\n")
    assert (result.code, result.out) == (-signal.SIGTERM, "got one\n")
    with Process(["sleep", "30"], program=["/usr/bin/env"]) as process:
        process.signal(signal.SIGINT)
        assert process.wait().code == -signal.SIGINT
    with Process(["sleep", "30"], program=["/usr/bin/env"]):
        pass


def test_the_command_stands_beside_the_interpreter():
    """What is tested is the script that this environment installed."""
    assert HOLODECK.parent == Path(sys.executable).parent
    assert HOLODECK.name == "holodeck"


def test_a_terminal_shows_what_a_user_would_see():
    """Typed text is echoed, colours and cursor movements are carried out, the exit code is known."""
    script = r"printf 'name? '; read name; printf '\033[1;31mhello %s\033[0m\n\033[2Kxyz\rab\n' $name; exit 4"
    with Terminal([script], program=SH) as terminal:
        terminal.wait_for("name? ")
        terminal.line("Ada")
        terminal.wait_for(re.compile(r"^hello \w+$", re.MULTILINE))
        assert terminal.wait_exit() == 4
        assert terminal.screen[:4] == ["name? Ada", "hello Ada", "abz", ""]
        assert b"\x1b[1;31mhello" in terminal.raw


def test_what_scrolled_by_is_kept_and_can_be_counted():
    """The history has every line, the screen the last ones, and a wrapped line is found."""
    script = "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; echo 'a long line that goes on and on'"
    with Terminal([script], columns=20, lines=5, program=SH) as terminal:
        terminal.wait_for("line ", count=50)
        terminal.wait_for("a long line that goes on and on")
        terminal.wait_exit()
        assert terminal.screen == ["line 48", "line 49", "a long line that goe", "s on and on", ""]
        assert terminal.history_text.startswith("line 0\nline 1\n")
        assert len(terminal.screen) == 5


def test_a_terminal_is_a_controlling_one_with_a_size():
    """Ctrl-C interrupts, Ctrl-D ends the input, and a change of size arrives."""
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('size', *os.get_terminal_size()))\n"
        "try:\n"
        "    print(sys.stdin.isatty(), sys.stdout.isatty(), *os.get_terminal_size())\n"
        "    while True:\n"
        "        time.sleep(0.05)\n"  # a signal on the way into a read would be seen only after it
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
        "print('rest', repr(sys.stdin.read()))\n"
    )
    with Terminal([program], columns=90, lines=30, program=PYTHON) as terminal:
        terminal.wait_for("True True 90 30")
        terminal.resize(70, 20)
        terminal.wait_for("size 70 20")
        assert len(terminal.screen) == 20
        terminal.key("ctrl-c")
        terminal.wait_for("interrupted")
        terminal.key("ctrl-d")
        terminal.wait_for("rest ''")
        assert terminal.wait_exit() == 0


def test_questions_about_the_cursor_are_answered():
    """A program that asks where the cursor is gets the answer, as from a real terminal."""
    program = (
        "import sys, termios, tty\n"
        "tty.setcbreak(0)\n"
        "print('ab', end='')\n"
        "print(end='\\x1b[6n', flush=True)\n"
        "print(repr(sys.stdin.read(6)))\n"
    )
    with Terminal([program], program=PYTHON) as terminal:
        terminal.wait_for(r"ab'\x1b[1;3R'")
        assert terminal.wait_exit() == 0


def test_wide_and_invisible_characters_keep_their_line():
    """Emoji with selectors, wide characters and accents do not swallow what comes after them."""
    with Terminal([r"printf '⚠️ warm 日本 e\314\201nd\n'"], program=SH) as terminal:
        terminal.wait_for("warm 日本 énd")
        assert terminal.wait_exit() == 0


def test_a_wait_that_fails_shows_the_screen():
    """The message of the assertion has what was there instead, whether the command has ended or not."""
    with Terminal(["echo good day; exec sleep 30"], program=SH) as terminal:
        terminal.wait_for("good day")
        with pytest.raises(AssertionError, match="good day"):
            terminal.wait_for("good night", timeout=0.05)
        with pytest.raises(AssertionError, match="still running"):
            terminal.wait_exit(0.05)
        assert terminal.cpu < 1
        terminal.signal(signal.SIGTERM)
        assert terminal.wait_exit() == -signal.SIGTERM
        with pytest.raises(AssertionError, match="has ended"):
            terminal.wait_for("good night")


def test_closing_ends_a_command_that_does_not_want_to_end():
    """A process that ignores the hang-up is killed by its id, and the terminal can be closed twice."""
    terminal = Terminal(["import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); print('up'); time.sleep(60)"], program=PYTHON)
    terminal.wait_for("up")
    terminal.close(grace=0.05)
    terminal.close()
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.pid, 0)
