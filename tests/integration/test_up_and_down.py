"""``make up`` and ``make down``: the shipped configurations as plain processes."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.stack import PORTS, ROOT, get_json, script, spans_of, unused_ports, wait
from support.command import run

NAMES = [f"{prefix}_{port}_PORT" for prefix in ("JAEGER", "COLLECTOR") for port in PORTS[prefix]]


@pytest.fixture
def variables(binaries: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Ports and a state directory of this test's own; whatever was started ends with it."""
    ports = dict(zip(NAMES, map(str, unused_ports(len(NAMES))), strict=True))
    found = {**ports, "HOLODECK_STATE_DIR": str(tmp_path / "state")}
    yield found
    script("down", **found)


def make(target: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile as a user would, with variables on the command line."""
    words = ["make", "--no-print-directory", target, *(f"{name}={value}" for name, value in variables.items())]
    return subprocess.run(words, cwd=ROOT, env=dict(os.environ), text=True, capture_output=True, timeout=120, check=False)


def pids(variables: dict[str, str]) -> dict[str, str]:
    """The recorded process ids by program."""
    state = Path(variables["HOLODECK_STATE_DIR"], "backends")
    return {path.stem: path.read_text().split()[0] for path in state.glob("*.pid")}


def test_up_chat_down(variables: dict[str, str]) -> None:
    """After ``make up`` and a chat, Jaeger's API answers the turn's trace id with the whole tree; after ``make down`` nobody listens."""
    up = make("up", variables)
    assert up.returncode == 0, up.stderr
    assert f"http://127.0.0.1:{variables['COLLECTOR_HTTP_PORT']}" in up.stdout
    assert f"http://127.0.0.1:{variables['JAEGER_QUERY_PORT']}" in up.stdout
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{variables['COLLECTOR_HTTP_PORT']}"}
    chat = run(["chat", ROOT / "examples/support/agent.yaml", "--observability", "-m", "Where is order 1042?"], env=endpoint)
    assert chat.code == 0, chat
    trace_id = chat.err.rpartition("trace ")[2].split()[0]
    url = f"http://127.0.0.1:{variables['JAEGER_QUERY_PORT']}/api/v3/traces/{trace_id}"
    assert len(wait(lambda: found_spans(url), "the turn")) == 4
    down = make("down", variables)
    assert (down.returncode, down.stdout) == (0, "collector: stopped\njaeger: stopped\n")
    assert pids(variables) == {}
    for name in NAMES:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", int(variables[name]))) != 0, name


def found_spans(url: str) -> list[object]:
    """The spans behind a URL of the query API; none while it does not know the trace."""
    try:
        spans = spans_of(get_json(url))
    except OSError:
        return []
    return list(spans) if len(spans) == 4 else []


def test_up_and_down_twice(variables: dict[str, str]) -> None:
    """A second ``up`` leaves what runs alone, a second ``down`` has nothing to do, and the turns of before are there after a restart."""
    assert script("up", **variables).returncode == 0
    first = pids(variables)
    again = script("up", **variables)
    assert (again.returncode, pids(variables)) == (0, first)
    assert script("down", **variables).returncode == 0
    second = script("down", **variables)
    assert (second.returncode, second.stdout) == (0, "collector: was not running\njaeger: was not running\n")


def test_up_after_one_has_died(variables: dict[str, str]) -> None:
    """If the collector has been killed, ``up`` starts it again and leaves Jaeger alone."""
    assert script("up", **variables).returncode == 0
    first = pids(variables)
    os.kill(int(first["collector"]), 9)
    wait(lambda: "collector: not running" in script("status", **variables).stdout, "its end")
    assert script("up", **variables).returncode == 0
    assert pids(variables)["jaeger"] == first["jaeger"]
    assert pids(variables)["collector"] != first["collector"]


def test_a_port_is_taken(variables: dict[str, str]) -> None:
    """A taken port is one clear line that says which, who has it and what to do; nothing is started."""
    with socket.create_server(("127.0.0.1", int(variables["COLLECTOR_GRPC_PORT"]))):
        result = script("up", **variables)
    port = variables["COLLECTOR_GRPC_PORT"]
    assert result.returncode == 1
    assert result.stderr.startswith(f"collector: port {port} is taken by ")
    assert f"(pid {os.getpid()})" in result.stderr
    assert "make up COLLECTOR_GRPC_PORT=" in result.stderr
    assert result.stderr.count("\n") == 1
    assert pids(variables) == {}


def test_a_port_that_is_none(variables: dict[str, str]) -> None:
    """A variable that is no port is named."""
    result = script("up", **{**variables, "COLLECTOR_GRPC_PORT": "http"})
    assert (result.returncode, result.stderr) == (1, "COLLECTOR_GRPC_PORT=http is no port: give a number from 1 to 65535\n")


def test_a_start_that_fails(variables: dict[str, str], tmp_path: Path) -> None:
    """A program that ends at its start is named with the end of its log, and the other one is not left running."""
    (tmp_path / "file").touch()
    result = script("up", **variables, COLLECTOR_DATA=str(tmp_path / "file" / "below"))
    assert result.returncode == 1
    assert result.stderr.startswith("collector ended with 1 at its start; the end of ")
    assert "not a directory" in result.stderr
    assert pids(variables) == {}


def test_a_pid_file_of_another_process(variables: dict[str, str]) -> None:
    """A process that has got the number of a program by chance is not taken for it, nor ended."""
    state = Path(variables["HOLODECK_STATE_DIR"], "backends")
    state.mkdir(parents=True)
    (state / "jaeger.pid").write_text(f"{os.getpid()} 1\n")
    assert "jaeger: not running" in script("status", **variables).stdout
    assert script("down", **variables).stdout == "collector: was not running\njaeger: was not running\n"
