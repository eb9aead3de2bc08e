"""Size and age: the oldest go first, in their order whatever the clock did, and what goes is counted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import Destination, Meta, SpoolSettings, make_directory
from holodeck.telemetry.spool.files import SegmentFiles
from holodeck.telemetry.spool.journal import KEY_SIZE, NUMBER
from holodeck.telemetry.spool.limits import enforce
from holodeck.telemetry.spool.records import Kind, pack
from support.net import unused_port
from support.spans import Spans, queues, target_of

LONG = "x" * 800


def segments_of_the_dead(root: Path) -> Path:
    """The directory of an ended process: several segments of 16 KiB, and a span in the first that never ended."""
    spans = Spans(root, target_of(f"http://127.0.0.1:{unused_port()}"), limits={"max_bytes": 128 * 1024})
    spans.tracer.start_span("open")
    for batch in range(5):
        spans.make(*(f"{batch}-{i}" for i in range(10)), text=LONG)
    (queue,) = queues(root)
    spans.queue._sender.own.abandon()
    assert len(list(queue.glob("*.seg"))) >= 5
    return queue


def dropped(settings: SpoolSettings) -> dict[str, int]:
    """What the limits cost, by reason."""
    counts: dict[str, int] = {}
    enforce(settings, [], lambda spans, reason: counts.update({reason: counts.get(reason, 0) + spans}))
    return counts


@pytest.mark.parametrize("place", [1, 3])
def test_a_clock_that_was_set_back_does_not_change_the_order(tmp_path: Path, place: int) -> None:
    """A segment that seems older than the ones before it: those go first, or the end of a span would go before its start."""
    queue = segments_of_the_dead(tmp_path)
    segments = sorted(queue.glob("*.seg"))
    os.utime(segments[place], (1, 1))
    before = read_contents(queue)
    assert dropped(SpoolSettings(tmp_path, max_age=3600))["expired"] > 0
    after = read_contents(queue)
    assert sorted(queue.glob("*.seg")) == segments[place + 1 :]
    assert [entry.number for entry in after.waiting] == [entry.number for entry in before.waiting][-len(after.waiting) :]
    assert after.opened == {}


def test_spans_that_had_not_ended_are_counted_too(tmp_path: Path) -> None:
    """Whatever a deleted segment held of an ended process is accounted for: 50 finished spans, and one that never ended."""
    queue = segments_of_the_dead(tmp_path)
    for path in (*queue.iterdir(), queue):
        os.utime(path, (1, 1))
    assert dropped(SpoolSettings(tmp_path, max_age=3600)) == {"expired": 51}
    assert not queue.exists()


def test_many_segments_are_deleted_quickly(tmp_path: Path) -> None:
    """A directory is read once, not once for each of its segments."""
    queue, lock = make_directory(tmp_path, Meta(Destination("http://127.0.0.1:9", "grpc", ""), b"", 0.0))
    files = SegmentFiles(queue, 16 * 1024)
    for number in range(1, 20_001):
        files.append(pack(Kind.ENDED, NUMBER.pack(number) + number.to_bytes(KEY_SIZE, "big") + bytes(100)))
    files.close()
    os.close(lock)
    for path in queue.iterdir():
        os.utime(path, (1, 1))
    start = time.process_time()
    read_contents(queue)
    once = time.process_time() - start
    start = time.process_time()
    assert dropped(SpoolSettings(tmp_path, max_age=3600)) == {"expired": 20_000}
    assert time.process_time() - start < 8 * once + 0.1
