"""The collector away for a whole session, then back; and several processes on one state directory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest

from holodeck.telemetry.spool import flush_spool, spool_status
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, target_of

SOAK = bool(os.environ.get("HOLODECK_SOAK"))
SPANS = 20_000 if SOAK else 4_000
TESTS = Path(__file__).parent.parent


def resident_mb() -> float:
    """Memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_whole_session_without_a_collector_arrives_later(tmp_path: Path, protocol: str) -> None:
    """Every span waits on disk, memory stays within bounds, and the next run delivers each of them once, in order."""
    with OtlpReceiver() as receiver:
        url = receiver.grpc_url if protocol == "grpc" else receiver.http_url
        target = target_of(url, protocol)
        receiver.refuse(503, headers={"retry-after": "600"})
        away = Spans(tmp_path / "spool", target, delay=0.05)
        away.make("first", text="x" * 400)
        before = resident_mb()
        away.make(*(str(i) for i in range(1, SPANS)), text="x" * 400)
        grown = resident_mb() - before
        away.queue.shutdown(1)
        assert away.queue.kept == SPANS
        assert away.accounted()
        assert grown < 5 + SPANS / 1000  # MB: about half a kilobyte a span, and the first connections
        receiver.accept()
        receiver.clear()
        report = flush_spool(target, {"HOLODECK_STATE_DIR": str(tmp_path)}, 60)
        assert (report.delivered, report.kept, report.dropped) == (SPANS, 0, {})
        assert [span.name for span in receiver.spans] == ["first", *(str(i) for i in range(1, SPANS))]


EIGHT = """
import os, sys
from pathlib import Path
import requests
from support.spans import Spans, target_of

root, url, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])

def child(number):
    spans = Spans(root, target_of(url), delay=0.02, most_spans=50)
    for i in range(300):
        spans.make(f"{number}-{i}")
    spans.queue.shutdown(seconds)
    assert spans.accounted()
    os._exit(0)

children = [os.fork() or child(number) for number in range(8)]
sys.exit(any([os.waitpid(pid, 0)[1] for pid in children]))
"""


@pytest.mark.parametrize("away", [True, False])
def test_eight_processes_on_one_state_directory(tmp_path: Path, away: bool) -> None:
    """Each span arrives exactly once, whether the collector is there from the start or comes back after the processes have ended."""
    with OtlpReceiver() as receiver:
        if away:
            receiver.refuse(503, headers={"retry-after": "600"})
        command = [sys.executable, "-c", EIGHT, str(tmp_path / "spool"), receiver.http_url, "1.5" if away else "60"]
        subprocess.run(command, cwd=TESTS, check=True)
        receiver.accept()
        flush_all_at_once(receiver, tmp_path)
        arrived = Counter(span.name for span in receiver.spans)
        assert set(arrived) == {f"{n}-{i}" for n in range(8) for i in range(300)}
        assert set(arrived.values()) == {1}
        assert spool_status({"HOLODECK_STATE_DIR": str(tmp_path)}) == []


def flush_all_at_once(receiver: OtlpReceiver, state: Path) -> None:
    """Four flushes at the same time: no directory is sent by two."""
    target = target_of(receiver.http_url)
    threads = [threading.Thread(target=flush_spool, args=(target, {"HOLODECK_STATE_DIR": str(state)}, 20)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_burst_is_not_dropped(tmp_path: Path) -> None:
    """S11: thousands of quick spans and a slow collector: none is dropped, and leaving is bounded."""
    with OtlpReceiver() as receiver:
        receiver.slow(0.3)
        spans = Spans(tmp_path / "spool", target_of(receiver.http_url), delay=0.05)
        spans.make(*(str(i) for i in range(5000)))
        start = monotonic()
        spans.queue.shutdown(1.5)
        assert monotonic() - start < 1.9
        assert spans.accounted()
        assert spans.statistics.dropped == {}
        receiver.accept()
        flush_spool(target_of(receiver.http_url), {"HOLODECK_STATE_DIR": str(tmp_path)}, 30)
        assert {span.name for span in receiver.spans} == {str(i) for i in range(5000)}


def test_nobody_there_is_no_reason_to_wait(tmp_path: Path) -> None:
    """A refused connection is known at once: leaving does not use its 1.5 s."""
    spans = Spans(tmp_path / "spool", target_of(f"http://127.0.0.1:{unused_port()}"))
    spans.make("a")
    start = monotonic()
    spans.queue.shutdown(1.5)
    assert monotonic() - start < 1
    assert spans.queue.kept == 1
