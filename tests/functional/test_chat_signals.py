"""Signals, and the way out: how fast, with which code, and what is said."""

from __future__ import annotations

import re
import signal
import time

import pytest

from support.agents import write_agent
from support.command import Process, Terminal, run
from support.model_server import Call, Fault, ModelServer, Reply
from support.otlp_receiver import OtlpReceiver, SilentPort, unused_port
from support.scripts import scripted_agent

_SLOW = Reply("one two three four five six", chunk_delay=0.5)


@pytest.fixture
def server():
    """A model endpoint."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent(server, tmp_path):
    """An agent file that asks it."""
    return write_agent(tmp_path / "agent", server)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_a_turn(server, agent, number, code, tmp_path):
    """What was said so far stands on stdout, the open spans have ended, and the code tells the signal."""
    server.reply(_SLOW)
    trace = tmp_path / "t.jsonl"
    with Process(["chat", agent, "--trace-file", trace]) as process:
        process.send("hi\nagain\n")
        first = process._process.stdout.read1(100)
        process.signal(number)
        started = time.monotonic()
        result = process.wait()
    assert time.monotonic() - started < 2
    assert (result.code, first) == (code, b"one")
    assert result.out.endswith("\n")
    assert "stopped" in result.err
    assert "Traceback" not in result.err
    assert len(server.requests) == 1
    assert "invoke_agent" in trace.read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_while_it_waits_for_input(server, agent, number, code):
    """It ends at once, and quietly."""
    with Process(["chat", agent]) as process:
        process.send("hi\n")
        assert process._process.stdout.readline() == b"hi\n"
        process.signal(number)
        result = process.wait()
    assert result.code == code
    assert "Traceback" not in result.err


def test_a_signal_while_a_tool_runs(server, agent):
    """A tool in a thread cannot be stopped, and does not hold the exit back."""
    server.reply(Reply("Wait.", tool_calls=[Call("slow", {"seconds": 60})]))
    with Process(["chat", agent]) as process:
        process.send("hi\n")
        assert process._process.stdout.read1(100) == b"Wait."
        while not server.requests:
            time.sleep(0.01)
        time.sleep(0.2)
        process.signal(signal.SIGINT)
        started = time.monotonic()
        assert process.wait().code == 130
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("stage", ["prompt", "turn"])
def test_a_signal_in_a_terminal(server, agent, number, code, stage):
    """At the prompt and in a turn alike; the terminal is put back in order."""
    server.reply(_SLOW)
    with Terminal(["-c", f"\"$HOLODECK\" chat '{agent}'; echo code $?; stty -a"], program=["bash"], env=_env()) as terminal:
        terminal.wait_for("> ")
        if stage == "turn":
            terminal.line("hi")
            terminal.wait_for("one", timeout=20)
        pids = _children(terminal.pid)
        started = time.monotonic()
        for pid in pids:
            _kill(pid, number)
        terminal.wait_for(f"code {code}")
        assert time.monotonic() - started < 2
        terminal.wait_exit()
        settings = terminal.history_text.partition("code")[2].split()
        assert {"icanon", "echo", "isig", "icrnl", "iexten"} <= set(settings)


@pytest.mark.parametrize("stage", ["loading", "prompt", "turn"])
def test_a_closed_terminal(server, agent, tmp_path, stage):
    """It ends the chat as SIGHUP does; the turn that it interrupted is in the trace."""
    server.reply(_SLOW)
    trace = tmp_path / "t.jsonl"
    with Terminal(["chat", agent, "--trace-file", trace]) as terminal:
        terminal.wait_for("/help" if stage == "loading" else "> ")
        if stage == "turn":
            terminal.line("hi")
            terminal.wait_for("one", timeout=20)
        terminal.hang_up()
        started = time.monotonic()
        assert terminal.wait_exit() == 129
        assert time.monotonic() - started < 2
    assert ('"invoke_agent' in trace.read_text()) is (stage == "turn")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("command", [["chat"], ["doctor"], ["test"]])
def test_a_signal_while_a_tool_file_is_loaded(tmp_path, command, number, code):
    """It ends the command, and is not taken for a fault of the file."""
    mark = tmp_path / "loading"
    source = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(30)\ndef slow() -> str:\n    return ''\n"
    (tmp_path / "slow.py").write_text(source)
    tool = {"name": "slow", "type": "function", "file": "slow.py", "function": "slow"}
    path = scripted_agent(tmp_path, {"text": "x"}, tools=[tool])
    (tmp_path / "cases.yaml").write_text("cases: [{input: hi}]")
    with Process([*command, path], stdin=False) as process:
        deadline = time.monotonic() + 20
        while not mark.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.signal(number)
        result = process.wait(timeout=10)
    assert result.code == code
    assert "cannot be imported" not in result.err
    assert "Traceback" not in result.err


def _env() -> dict[str, str]:
    from support.command import HOLODECK

    return {"HOLODECK": str(HOLODECK)}


def _children(pid: int) -> list[int]:
    from pathlib import Path

    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _kill(pid: int, number: int) -> None:
    import os

    os.kill(pid, number)


def test_leaving_while_everything_still_loads_is_quick(agent):
    """Ctrl-D at once: nobody waits for Semantic Kernel."""
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        started = time.monotonic()
        terminal.key("ctrl-d")
        assert terminal.wait_exit() == 0
        assert time.monotonic() - started < 1


@pytest.mark.parametrize("collector", ["nobody", "silent"])
def test_leaving_without_a_collector(server, agent, collector):
    """Within 2 s of leaving, with one line that says what was not delivered and where to."""
    with SilentPort() as silent:
        port = silent.port if collector == "silent" else unused_port()
        url = f"http://127.0.0.1:{port}"
        with Terminal(["chat", agent, "--observability"], env={"OTEL_EXPORTER_OTLP_ENDPOINT": url}, columns=300) as terminal:
            terminal.wait_for(f"traces: {url}/v1/traces")
            terminal.line("hi")
            terminal.wait_for("first token", timeout=20)
            started = time.monotonic()
            terminal.key("ctrl-d")
            assert terminal.wait_exit() == 0
            assert time.monotonic() - started < 2
            warnings = [line for line in terminal.history_text.splitlines() if line.startswith("warning: ")]
            assert len(warnings) == 1
            assert re.search(rf"\b2 .*{url}/v1/traces", warnings[0])
            assert "Traceback" not in terminal.history_text


def test_spans_are_delivered_on_the_way_out(server, agent):
    """Whatever ends the chat, its spans arrive; those of a stopped turn say so."""
    server.reply(_SLOW)
    with OtlpReceiver() as receiver:
        with Process(["chat", agent, "--observability"], env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}) as process:
            process.send("hi\n")
            process._process.stdout.read1(100)
            process.signal(signal.SIGTERM)
            assert process.wait().code == 143
        receiver.wait_for(2)
        assert receiver.tree() == ("invoke_agent support", [("chat test-model", [])])


def test_nothing_is_sent_without_the_flag(server, agent):
    """An endpoint alone turns nothing on."""
    with OtlpReceiver() as receiver:
        result = run(["chat", agent, "-m", "hi"], env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url})
        assert result.code == 0
        assert receiver.spans == []


def test_a_failing_turn_in_a_terminal_is_no_failure_of_the_chat(server, agent):
    """A person has read what went wrong: leaving is 0."""
    server.reply(Fault(status=401))
    with Terminal(["chat", agent]) as terminal:
        terminal.wait_for("> ")
        terminal.line("hi")
        terminal.wait_for("error: ", timeout=20)
        terminal.line("exit")
        assert terminal.wait_exit() == 0
