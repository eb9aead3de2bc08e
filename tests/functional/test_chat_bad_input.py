"""What is wrong before the first turn: one line, exit 2, nothing left running."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from support.agents import write_agent
from support.command import run


def _refused(*arguments: object, **options) -> str:
    """The one line on stderr of a chat that cannot begin."""
    result = run(["chat", *arguments, "-m", "hi"], **options)
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err
    assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
    return result.err


def test_no_file(tmp_path):
    """A missing file, and a directory."""
    assert "not found" in _refused(tmp_path / "nope.yaml")
    assert "not a file" in _refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "agent.yaml"),
        ("name: [a", "agent.yaml:"),
        ("\x00\x01", "agent.yaml"),
        ("just text", "agent.yaml:1"),
        ("name: a\nmodel: 3\n", "model"),
        ("name: a\nmodel: {provider: nope, name: x}\n", "nope"),
        ("name: a\nmodel: {provider: openai, name: x}\n", "OPENAI_API_KEY"),
        ("name: a\nmodle: {}\n", "modle"),
        ("name: a\nname: b\n", "name"),
    ],
)
def test_a_file_that_is_no_agent(text, said, tmp_path):
    """The line names the place, or the key, or what is missing."""
    (tmp_path / "agent.yaml").write_text(text, encoding="utf-8")
    assert said in _refused(tmp_path / "agent.yaml")


def test_a_tool_file_that_does_not_import(tmp_path):
    """It is known before anything is started."""
    agent = write_agent(tmp_path, tools=["slow"])
    (tmp_path / "tools.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    assert "nothing_of_this_name" in _refused(agent)


def _server(path: Path, body: str) -> dict[str, object]:
    path.write_text(body, encoding="utf-8")
    return {"name": path.stem, "type": "mcp", "command": sys.executable, "args": [str(path)], "timeout": 20}


def test_an_mcp_server_that_does_not_start(tmp_path):
    """The other server, which did start, is stopped again."""
    pid = tmp_path / "pid"
    waits = _server(tmp_path / "waits.py", f"import os, sys\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\nsys.stdin.read()\n")
    dies = _server(
        tmp_path / "dies.py", f"import os, time\nwhile not os.path.exists({str(pid)!r}): time.sleep(0.01)\nraise SystemExit(3)\n"
    )
    assert "dies" in _refused(write_agent(tmp_path, tools=[waits, dies]))
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid.read_text()}").exists():
        assert time.monotonic() < deadline, "the server is still running"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--model", "nope/x"], "--model"),
        (["--model", "anthropic/x"], "ANTHROPIC_API_KEY"),
        (["--model", "local/nope"], "nope"),
        (["--model", "scripted/nope.yaml"], "nope.yaml"),
        (["--trace-file", "/nope/t.jsonl"], "--trace-file"),
        (["--max-messages", "0"], "--max-messages"),
        (["--max-messages", "many"], "--max-messages"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_flags_that_mean_nothing(flags, said, tmp_path):
    """The line names the flag, or what it lacks."""
    assert said in _refused(write_agent(tmp_path), *flags)


def test_variables_that_mean_nothing(tmp_path):
    """The line names the variable."""
    assert "OTEL_TRACES_EXPORTER" in _refused(write_agent(tmp_path), env={"OTEL_TRACES_EXPORTER": "otlp,zipkin"})
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in _refused(
        write_agent(tmp_path), "--observability", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "h:4318"}
    )


@pytest.mark.parametrize("name", ["x" * 5000, "a\udcff.yaml", "\udcff" * 300])
def test_a_name_that_no_file_can_have(name, tmp_path):
    """It is one line, whatever stands in it."""
    assert "Agent config" in _refused(Path(name))
