"""SIGKILL at random moments of scripted sessions with tools: what had finished arrives, what was open is accounted for."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.spool import flush_spool
from support.command import Home, Process, run
from support.doomed import Nursery, nursery
from support.otlp_receiver import OtlpReceiver
from support.scripts import call, scripted_agent, usage
from support.span_truth import read_truth

KILLS = 200 if os.environ.get("HOLODECK_SOAK") else 20


def session_with_tools(directory: Path) -> Path:
    """An agent that asks twice and runs three tools in a turn."""
    return scripted_agent(
        directory,
        {
            "when": {"round": 1},
            "tool_calls": [call("lookup", order_id="1042"), call("nap", "call_2", seconds=0.02)],
            "usage": usage(20, 5),
            "repeat": True,
        },
        {"when": {"round": 2}, "tool_calls": [call("fails")], "repeat": True},
        {"when": {"round": 3}, "text": "It is on its way to you.", "chunks": 4, "chunk_delay": 0.002, "repeat": True},
    )


def kill_one(doomed: Nursery, truth: Path, delay: float) -> None:
    """Start a process, let its first span start, kill it after ``delay`` seconds."""
    pid = doomed.start(truth)
    deadline = time.monotonic() + 20
    while not (truth.exists() and truth.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    assert os.WTERMSIG(doomed.wait(pid)) == signal.SIGKILL


@pytest.mark.timeout(30 + KILLS * 4)
def test_nothing_is_lost_and_nothing_doubled_by_sigkill(tmp_path: Path) -> None:
    """After SIGKILL and a flush every finished span has arrived, once but for the request in flight, and every open one as crashed."""
    state, moments = tmp_path / "state", random.Random(5)
    truths = []
    with OtlpReceiver() as receiver:
        target = OtlpTarget(url=f"{receiver.http_url}/v1/traces", protocol="http/protobuf")
        with nursery(session_with_tools(tmp_path / "agent"), state, receiver.http_url) as doomed:
            for number in range(KILLS):
                receiver.clear()
                truth = tmp_path / f"truth-{number}"
                if number % 4 == 3:
                    receiver.refuse(503)
                kill_one(doomed, truth, moments.uniform(0, 0.35))
                receiver.accept()
                report = flush_spool(target, {"HOLODECK_STATE_DIR": str(state)}, 10)
                assert (report.kept, report.rejected, report.dropped, report.notices) == (0, 0, {}, ()), report
                check(receiver, truth)
                truths.append(len(read_truth(truth).ended))
        assert not list((state / "spool").iterdir())
    assert sum(truths) > KILLS  # the sessions did run


def check(receiver: OtlpReceiver, truth_file: Path) -> None:
    """Compare what arrived with what happened."""
    truth = read_truth(truth_file)
    arrived = {span.span_id: span for span in receiver.spans}
    crashed = {i for i, span in arrived.items() if span.attributes.get("error.type") == "process_crashed"}
    assert set(truth.ended) <= set(arrived)
    assert not set(truth.ended) & crashed
    # The last one may have been killed between its start and its first attributes.
    assert set(truth.open[:-1]) <= crashed | set(arrived)
    assert all(span.parent_id in arrived for span in arrived.values() if span.parent_id)
    assert all("gen_ai.conversation.id" in span.attributes for span in arrived.values() if span.name.startswith("invoke_agent"))
    bodies = Counter(arrival.body for arrival in receiver.raw if arrival.accepted)
    assert sum(times - 1 for times in bodies.values()) <= 1
    spans = Counter(span.span_id for span in receiver.spans)
    doubled = {i for i, times in spans.items() if times > 1}
    again = next((body for body, times in bodies.items() if times > 1), b"")
    assert all(bytes.fromhex(i) in again for i in doubled)
    assert max(spans.values(), default=0) <= 2


def test_the_turn_that_died_is_in_the_collector(tmp_path: Path) -> None:
    """``holodeck chat``, killed in the middle of a tool: the next chat sends the turn as ended by a crash, whole, in one trace."""
    agent = scripted_agent(
        tmp_path / "agent",
        {"when": {"user": "sleep"}, "tool_calls": [call("nap", seconds=60)], "usage": usage(20, 5)},
        {"when": {"user": "hello"}, "text": "Hello.", "repeat": True},
    )
    with OtlpReceiver() as receiver, Home() as home:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        arguments = ["chat", str(agent), "--observability", "-m"]
        spool = home.path / ".state" / "holodeck" / "spool"
        with Process([*arguments, "please sleep"], env=env, home=home.path) as process:
            deadline = time.monotonic() + 30
            while not (spool.is_dir() and b"execute_tool" in segments(spool)) and time.monotonic() < deadline:
                time.sleep(0.02)
            assert b"execute_tool" in segments(spool)
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait().code == -signal.SIGKILL
        assert receiver.spans == []
        after = run([*arguments, "hello"], env=env, home=home.path)
        assert after.code == 0, after.err
        died = [span for span in receiver.spans if span.attributes.get("error.type") == "process_crashed"]
        assert {span.name.split()[0] for span in died} == {"invoke_agent", "execute_tool"}
        trace_id = died[0].trace_id
        assert receiver.tree(trace_id) == ("invoke_agent support", [("chat script", []), ("execute_tool nap", [])])
        assert all(span.status_code == 2 and span.end >= span.start for span in died)
        assert len({span.trace_id for span in receiver.spans}) == 2
        assert not list(spool.iterdir())


def segments(spool: Path) -> bytes:
    """What is on disk."""
    return b"".join(path.read_bytes() for path in spool.rglob("*.seg"))
