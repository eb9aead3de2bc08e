"""Leaving is bounded and honest whatever the collector does, and a silent collector holds no turn up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

import pytest
import yaml

from holodeck import Session, load_agent
from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import create_telemetry
from support.command import Process, run
from support.net import HttpConnection, HttpServer, SilentPort, unused_port
from support.otlp_receiver import OtlpReceiver
from support.scripts import call, scripted_agent
from support.telemetry import RESOURCE, record_turn

TESTS = Path(__file__).parent.parent
BEHAVIOURS: dict[str, Callable[[OtlpReceiver], None]] = {
    "slow": lambda r: r.slow(5),
    "503": lambda r: r.refuse(503),
    "429 with retry-after": lambda r: r.refuse(429, headers={"retry-after": "30"}),
    "400": lambda r: r.refuse(400),
    "413": lambda r: r.refuse(413),
    "401": lambda r: r.refuse(401),
    "404": lambda r: r.refuse(404),
    "500": lambda r: r.refuse(500),
    "silent": lambda r: r.silent(),
    "partial": lambda r: r.partial(1, "too old"),
}


def all_signals(url: str, protocol: str) -> dict[str, OtlpTarget]:
    """A target a signal."""
    return {s: OtlpTarget(url=url if protocol == "grpc" else f"{url}/v1/{s}", protocol=protocol) for s in ("traces", "metrics", "logs")}


@contextmanager
def endpoint(kind: str, protocol: str) -> Iterator[str]:
    """The base URL of an endpoint that behaves in a way."""
    if kind == "refused":
        yield f"http://127.0.0.1:{unused_port()}"
    elif kind == "tls":
        with SilentPort() as port:
            yield port.base_url.replace("http:", "https:")
    else:
        with OtlpReceiver() as receiver:
            BEHAVIOURS[kind](receiver)
            yield receiver.grpc_url if protocol == "grpc" else receiver.http_url


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("kind", [*BEHAVIOURS, "refused", "tls"])
def test_leaving_is_bounded_and_honest(tmp_path: Path, kind: str, protocol: str) -> None:
    """All three signals: at most 2 s, and one plain line that says where the spans are."""
    with endpoint(kind, protocol) as url:
        targets = all_signals(url, protocol)
        if kind == "tls":
            targets = {s: t.model_copy(update={"insecure": False}) for s, t in targets.items()}
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **targets), environ={"HOLODECK_STATE_DIR": str(tmp_path)})
        record_turn(made)
        start = monotonic()
        report = made.shutdown()
        assert monotonic() - start < 2
    assert report.delivered + report.kept + report.rejected == report.made == 3
    assert report.sentence().count("\n") == 0
    if kind == "partial":
        assert report.sentence() == f"2 spans delivered, 1 rejected (not taken by the collector: too old at {report.url})"
    else:
        assert f"3 kept for later ({report.reason} at {report.url}): " in report.sentence()


CHILD = """
import sys, time
from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import create_telemetry
from support.telemetry import RESOURCE, record_turn
url, protocol = sys.argv[1:]
targets = {s: OtlpTarget(url=url if protocol == "grpc" else f"{url}/v1/{s}", protocol=protocol) for s in ("traces", "metrics", "logs")}
made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, schedule_delay_millis=50, **targets))
record_turn(made)
time.sleep(0.3)
record_turn(made, 2)
print("leaving", flush=True)
print(made.shutdown().sentence(), flush=True)
"""


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_real_process_is_gone_in_two_seconds(tmp_path: Path, protocol: str) -> None:
    """A request hangs when the process leaves: neither a thread nor an exit handler holds it back."""
    environment = {**os.environ, "HOLODECK_STATE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CHILD]
    with (
        SilentPort() as silent,
        subprocess.Popen([*command, silent.base_url, protocol], cwd=TESTS, stdout=subprocess.PIPE, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "leaving\n"
        start = monotonic()
        assert process.wait(10) == 0
        assert monotonic() - start < 3.5  # the end of the interpreter included, on a machine that may be busy; unbounded it is 7 to 30 s
        assert "no spans delivered, 6 kept for later (no answer in time at " in process.stdout.read()


AGENTS = """
import asyncio, json, sys, threading, time
from holodeck import Session, load_agent

async def main(path):
    agents = [load_agent(path, observability=True) for _ in range(5)]
    for agent in agents:
        async with Session(agent) as session:
            await session.send("hi")
    await asyncio.sleep(float(sys.argv[2]))
    start = time.monotonic()
    reports = await asyncio.gather(*(agent.close() for agent in agents))
    end = time.monotonic() + 1
    took = end - 1 - start
    while (left := ours()) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    print(json.dumps({"left": left, "kept": [report.kept for report in reports], "took": took}))

def ours():
    return [t.name for t in threading.enumerate() if t.name.lower().startswith(("holodeck", "otel"))]

asyncio.run(main(sys.argv[1]))
"""


def close_five(tmp_path: Path, url: str, protocol: str, wait: float = 0.0) -> dict[str, Any]:
    """Let five agents of one process, which has no logging, talk and end; ``wait`` seconds between the two. Nothing is on stderr."""
    path = scripted_agent(tmp_path, {"text": "hello", "repeat": True})
    own = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "HOLODECK_STATE_DIR": str(tmp_path / "state")}
    quick = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_BLRP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "50"}
    command = [sys.executable, "-c", AGENTS, str(path), str(wait)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **own, **quick})
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize(("kind", "wait"), [("refused", 0.4), ("silent", 0.0), ("silent", 0.4), ("tls", 0.4)])
def test_closed_agents_leave_nothing_behind(tmp_path: Path, kind: str, wait: float, protocol: str) -> None:
    """A process that goes on has no thread of theirs a second later and nothing on its stderr, though the collector is down."""
    with SilentPort() as silent:
        urls = {
            "refused": f"http://127.0.0.1:{unused_port()}",
            "silent": silent.base_url,
            "tls": silent.base_url.replace("http:", "https:"),
        }
        found = close_five(tmp_path, urls[kind], protocol, wait)
    assert found["left"] == []
    assert found["kept"] == [2] * 5
    assert found["took"] < 2.5


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_closed_agents_have_delivered_everything(tmp_path: Path, protocol: str) -> None:
    """With a collector that is well, the spans, metrics and log records of all five arrive."""
    with OtlpReceiver() as receiver:
        found = close_five(tmp_path, receiver.grpc_url if protocol == "grpc" else receiver.http_url, protocol)
        assert (found["left"], found["kept"]) == ([], [0] * 5)
        assert len(receiver.spans) == 10
        assert len({log.trace_id for log in receiver.logs}) == 5
        assert len({metric.resource["service.instance.id"] for metric in receiver.metrics}) == 5


async def first_words(path: Path, options: dict[str, str], state: Path, turns: int) -> list[tuple[float, float]]:
    """Seconds to the first text and to the end, of each turn."""
    environ = {"PATH": "/usr/bin:/bin", "HOLODECK_STATE_DIR": str(state), "OTEL_BSP_SCHEDULE_DELAY": "1", **options}
    agent = load_agent(path, observability=bool(options), environ=environ, telemetry_options={"environ": environ})
    found = []
    async with agent, Session(agent, max_messages=10 * turns) as session:
        for number in range(turns):
            start, first = perf_counter(), 0.0
            async for event in session.stream(f"message {number}"):
                if not first and type(event).__name__ == "TextDelta":
                    first = perf_counter() - start
            found.append((first, perf_counter() - start))
    return found


def test_a_silent_collector_does_not_stall_a_turn(tmp_path: Path) -> None:
    """Time to first token and duration stay as without telemetry, all three signals hanging."""
    path = scripted_agent(
        tmp_path / "agent",
        {"when": {"round": 1}, "text": "Let me look.", "tool_calls": [call("lookup", order_id="1")], "repeat": True},
        {"when": {"round": 2}, "text": "It is on its way.", "chunks": 20, "repeat": True},
    )
    with SilentPort() as silent:
        off = asyncio.run(first_words(path, {}, tmp_path, 30))
        on = asyncio.run(first_words(path, {"OTEL_EXPORTER_OTLP_ENDPOINT": silent.base_url}, tmp_path, 30))
        assert silent.connections > 0
    for index in (0, 1):
        plain, observed = (sorted(turn[index] for turn in turns) for turns in (off, on))
        assert median(observed) - median(plain) < 0.02
        assert observed[-1] - plain[-1] < 0.25


class LoginPage(HttpServer):
    """Answers everything with 200 and a page, as a proxy that wants a login does."""

    def answer(self, http: HttpConnection) -> None:
        """Take the request, and none of its spans."""
        http.body()
        http.respond(200, b"<!doctype html><title>Sign in</title>", {"content-type": "text/html; charset=utf-8"})


def test_a_page_is_no_delivery(tmp_path: Path) -> None:
    """A server that answers 200 with HTML has taken nothing: the spans are kept, and the line says what answered."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True})
    state = {"HOLODECK_STATE_DIR": str(tmp_path / "state")}
    with LoginPage() as page:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": page.base_url, **state}
        done = run(["chat", path, "--observability", "-m", "hi"], env=env)
        assert (done.code, done.out) == (0, "hi\n")
        assert "2 kept for later" in done.err
        assert "text/html" in done.err
        flushed = run(["trace", "spool", "flush"], env=env)
        assert flushed.code == 1
        assert "0 spans delivered" in flushed.out + flushed.err or "no span" in flushed.out + flushed.err


def test_a_state_directory_that_cannot_be_is_said(tmp_path: Path) -> None:
    """Where the queue cannot be kept, one line names the place, and the chat goes on."""
    path = scripted_agent(tmp_path, {"text": "hi"})
    (tmp_path / "file").write_text("", encoding="utf-8")
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{unused_port()}", "HOLODECK_STATE_DIR": str(tmp_path / "file" / "x")}
    done = run(["chat", path, "--observability", "-m", "hi"], env=env)
    assert (done.code, done.out) == (0, "hi\n")
    assert str(tmp_path / "file") in done.err


def test_neither_disk_nor_collector_is_said(tmp_path: Path) -> None:
    """No place to keep the spans, and a collector that never answers: the last line says that they are lost, and why."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with SilentPort() as silent:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": silent.base_url, "HOLODECK_STATE_DIR": str(tmp_path / "file")}
        done = run(["chat", scripted_agent(tmp_path / "agent", {"text": "hi"}), "--observability", "-m", "hi"], env=env)
    assert (done.code, done.out) == (0, "hi\n")
    last = done.err.splitlines()[-1]
    assert "no spans delivered, 2 dropped (they could not be written to disk, no answer in time at " in last


def test_spans_that_grew_too_old_are_not_blamed_on_the_collector(tmp_path: Path) -> None:
    """What the age limit costs is said as that, beside what was delivered."""
    agent, state = scripted_agent(tmp_path / "agent", {"text": "hi", "repeat": True}), tmp_path / "state"
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "60"})
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "HOLODECK_STATE_DIR": str(state)}
        assert "2 kept for later" in run(["chat", agent, "--observability", "-m", "hi"], env=env).err
        for segment in (state / "spool").rglob("*.seg"):
            os.utime(segment, (1, 1))
        receiver.accept()
        done = run(["chat", agent, "--observability", "-m", "hi"], env=env)
    assert done.err.splitlines()[-1].endswith("2 spans delivered, 2 dropped (they were too old)")


BLOCKED = """
import time

from opentelemetry import trace


def block() -> str:
    \"\"\"Blocks its thread inside a span of its own.\"\"\"
    with trace.get_tracer("user").start_as_current_span("inside"):
        time.sleep(60)
    return ""
"""


def test_a_span_that_has_not_ended_is_said(tmp_path: Path) -> None:
    """SIGTERM while a tool's thread is in a span of its own: that one is kept, which the last line says, and goes out as unfinished."""
    agent = scripted_agent(tmp_path / "agent", {"tool_calls": [call("block")]})
    (tmp_path / "agent" / "tools.py").write_text(BLOCKED, encoding="utf-8")
    text = agent.read_text(encoding="utf-8")
    settings = yaml.safe_load(text)
    settings["tools"] = [tool for tool in settings["tools"] if tool["name"] == "block"]
    agent.write_text(yaml.safe_dump(settings), encoding="utf-8")
    with OtlpReceiver() as receiver:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "HOLODECK_STATE_DIR": str(tmp_path / "state")}
        with Process(["chat", agent, "--observability", "-m", "hi"], env=env, stdin=False) as process:
            deadline = monotonic() + 30
            while monotonic() < deadline and not any(b"inside" in p.read_bytes() for p in (tmp_path / "state").rglob("*.seg")):
                sleep(0.02)
            process.signal(signal.SIGTERM)
            done = process.wait()
        assert done.code == 128 + signal.SIGTERM
        assert "3 spans delivered, 1 not ended, kept for later: they go out with the next run" in done.err
        assert "1 span delivered" in run(["trace", "spool", "flush"], env=env).out
        assert [span.name for span in receiver.spans if span.attributes.get("error.type") == "process_crashed"] == ["inside"]


def test_a_trace_file_on_a_full_disk_is_said(tmp_path: Path) -> None:
    """Spans that cannot be written to --trace-file are one warning with its name, and the chat goes on."""
    done = run(["chat", scripted_agent(tmp_path, {"text": "hi"}), "--trace-file", "/dev/full", "-m", "hi"])
    assert (done.code, done.out) == (0, "hi\n")
    assert done.err.count("/dev/full") == 1


def test_outputs_never_replace_what_they_are_not(tmp_path: Path) -> None:
    """--trace-file and --record refuse a file that holds something else, and each other's; nothing is sent and nothing is changed."""
    path = scripted_agent(tmp_path, {"text": "hi", "repeat": True})
    before = path.read_bytes()
    same = tmp_path / "same"
    for flags in (
        ["--trace-file", path],
        ["--record", path],
        ["--record", tmp_path / "tools.py"],
        ["--record", same, "--trace-file", same],
    ):
        done = run(["chat", path, *flags, "-m", "hi"])
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert path.read_bytes() == before
    assert run(["chat", path, "--record", tmp_path / "r.yaml", "-m", "hi"]).code == 0
    assert run(["chat", path, "--record", tmp_path / "r.yaml", "-m", "hi"]).code == 0  # a recording may be replaced
