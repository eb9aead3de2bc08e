"""What ended processes have left: adopted by the next run to the same destination, and by nobody else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
import warnings
from pathlib import Path

import pytest

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.records import HEADER_SIZE
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, queues, spans_to, target_of


@pytest.fixture
def receiver():
    """A receiver that accepts."""
    with OtlpReceiver() as made:
        yield made


def dead(root: Path, target: OtlpTarget, *names: str, leave_open: tuple[str, ...] = (), **attributes: object) -> Path:
    """A directory as a killed process leaves it: a copy of a live one, whose lock nobody holds."""
    spans = Spans(root.parent / "live", target)
    if names:
        spans.make(*names, **attributes)
    for name in leave_open:
        spans.tracer.start_span(name)
    (live,) = queues(root.parent / "live")
    root.mkdir(parents=True, exist_ok=True)
    copy = root / live.name
    shutil.copytree(live, copy)
    spans.queue._sender.own.abandon()
    shutil.rmtree(root.parent / "live")
    return copy


def run_next(root: Path, target: OtlpTarget, *names: str, **options: object) -> Spans:
    """Another run to ``target`` that makes spans of these names, and ends."""
    spans = Spans(root, target, **options)
    if names:
        spans.make(*names)
    spans.queue.shutdown(3)
    assert spans.accounted()
    return spans


def test_the_next_run_sends_what_is_left_and_removes_it(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """Own spans first, then those of the dead process; they are counted as recovered."""
    target = target_of(receiver.http_url)
    dead(tmp_path / "spool", target, "old 1", "old 2")
    now = run_next(tmp_path / "spool", target, "new").statistics
    assert (now.made, now.recovered, now.delivered) == (1, 2, 3)
    assert names_in(receiver) == ["new", "old 1", "old 2"]
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_run_without_spans_sends_what_is_left_too(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """Whoever exports there empties the queue, even if nothing was said."""
    target = target_of(receiver.http_url)
    dead(tmp_path / "spool", target, "old")
    run_next(tmp_path / "spool", target)
    assert names_in(receiver) == ["old"]


def test_other_destinations_are_left_alone(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """Another URL, another protocol or another token is another destination."""
    root = tmp_path / "spool"
    elsewhere = dead(root, target_of("http://127.0.0.1:9"), "elsewhere")
    with_token = dead(root, target_of(receiver.http_url, headers={"authorization": "a"}), "with a token")
    run_next(root, target_of(receiver.http_url), "new")
    assert names_in(receiver) == ["new"]
    assert sorted(queues(root)) == sorted([elsewhere, with_token])
    run_next(root, target_of(receiver.http_url, headers={"Authorization": "a"}), "new 2")
    assert names_in(receiver) == ["new", "new 2", "with a token"]


def test_a_living_process_keeps_its_directory(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """A held lock says that it lives; what is open in it is no crash."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    left = dead(root, target, "theirs", leave_open=("their open",))
    with (left / "lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_next(root, target, "ours")
        assert names_in(receiver) == ["ours"]
        assert queues(root) == [left]
    run_next(root, target, "ours again")
    assert sorted(names_in(receiver)) == ["ours", "ours again", "their open", "theirs"]


def test_open_spans_are_exported_as_ended_by_a_crash(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """ERROR, error.type, and the time at which the process was last known to live; what it had set at the start is there."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    left = dead(root, target, "finished", leave_open=("open",))
    alive = time.time() - 100
    for path in left.iterdir():
        os.utime(path, (alive, alive))
    run_next(root, target)
    finished, crashed = receiver.spans
    assert (finished.name, crashed.name) == ("finished", "open")
    assert (crashed.status_code, crashed.status_message) == (2, "the process ended before this span")
    assert crashed.attributes["error.type"] == "process_crashed"
    assert crashed.end == max(int(alive * 1e9), crashed.start)
    assert "error.type" not in finished.attributes


def test_a_second_adopter_keeps_the_time_of_the_crash(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """The first adopter could not deliver: what it wrote does not make the process younger, and nothing is ended twice."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    left = dead(root, target, leave_open=("open",))
    alive = time.time() + 5
    os.utime(left / "lock", (alive - 3, alive - 3))
    receiver.refuse(503, headers={"retry-after": "60"})
    assert run_next(root, target).queue.kept == 1
    first = read_contents(left)
    assert (len(first.waiting), len(first.opened)) == (1, 0)
    receiver.accept()
    run_next(root, target)
    assert names_in(receiver) == ["open"]
    assert receiver.spans[0].end <= int(alive * 1e9)


def test_the_request_in_flight_is_sent_again_byte_for_byte(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """It was written down that a batch would be sent, not that it was taken: the same request again, before the rest."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    spans = Spans(tmp_path / "live", target, most_spans=3)
    receiver.silent()
    spans.make("1", "2", "3", "4")
    receiver.wait_for(lambda r: len(r.raw) == 1)
    (live,) = queues(tmp_path / "live")
    shutil.copytree(live, root / live.name)
    receiver.accept()
    run_next(root, target, most_spans=100)
    sent, again, rest = receiver.raw
    assert sent.body == again.body
    assert names_in(receiver) == ["1", "2", "3", "4"]
    assert rest.accepted
    spans.queue._sender.own.abandon()


def test_a_damaged_segment_is_said_and_the_rest_is_saved(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """One line says how much is lost; every other span arrives."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    left = dead(root, target, *(f"span-{i}" for i in range(10)))
    entry = read_contents(left).waiting[4]
    segment = left / "000001.seg"
    data = bytearray(segment.read_bytes())
    data[entry.offset + HEADER_SIZE + 40] ^= 0xFF
    segment.write_bytes(bytes(data) + b"\xf5HE torn")
    (notice,) = run_next(root, target, "new").notices
    assert notice.startswith(f"the span queue {left} was damaged: ")
    assert {"new", *(f"span-{i}" for i in range(10) if i != 4)} <= set(names_in(receiver))


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1}', b"[" * 100_000, b"\xff", b'{"format": 1, "destination": 5}'])
def test_a_damaged_meta_file_has_a_copy(tmp_path: Path, receiver: OtlpReceiver, content: bytes) -> None:
    """What meta.json said is read from its copy; without both the directory is left alone and nothing fails."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    left = dead(root, target, "old")
    (left / "meta.json").write_bytes(content)
    run_next(root, target, "new")
    assert names_in(receiver) == ["new", "old"]
    left = dead(root, target, "older")
    (left / "meta.json").write_bytes(content)
    (left / "meta.copy.json").write_bytes(content)
    run_next(root, target, "newer")
    assert names_in(receiver) == ["new", "old", "newer"]
    assert queues(root) == [left]


def test_spans_that_are_too_old_are_dropped_and_counted(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """HOLODECK_SPOOL_MAX_AGE: also of other destinations; whole directories go, unfinished ones included."""
    root = tmp_path / "spool"
    left = dead(root, target_of("http://127.0.0.1:9"), "a", "b")
    unfinished = root / ".new-1"
    shutil.copytree(left, unfinished)
    for directory in (left, unfinished):
        for path in (*directory.iterdir(), directory):
            os.utime(path, (1, 1))
    now = run_next(root, target_of(receiver.http_url), "new", limits={"max_age": 3600}).statistics
    assert now.dropped == {"expired": 4}
    assert queues(root) == []
    assert names_in(receiver) == ["new"]


def test_the_oldest_go_first_when_there_is_too_much(tmp_path: Path) -> None:
    """HOLODECK_SPOOL_MAX_BYTES, over all directories: what goes is counted, the youngest spans are kept, and arrive."""
    root, port = tmp_path / "spool", unused_port()
    left = dead(root, target_of("http://127.0.0.1:9"), "old", text="x" * 100_000)
    os.utime(left / "000001.seg", (time.time() - 60, time.time() - 60))
    spans = Spans(root, target_of(f"http://127.0.0.1:{port}"), limits={"max_bytes": 200_000}, delay=0.01)
    for i in range(400):
        spans.make(f"span-{i}", text="x" * 1500)
        if i % 20 == 0:
            time.sleep(0.01)
    deadline = time.monotonic() + 10
    while size_of(root) > 240_000 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert size_of(root) <= 240_000
    assert not left.exists()
    spans.queue.shutdown(1)
    assert spans.accounted()
    (queue,) = queues(root)
    waiting = read_contents(queue).waiting
    assert [entry.number for entry in waiting] == list(range(waiting[0].number, 401))
    assert spans.statistics.dropped["queue_full"] == waiting[0].number


def size_of(root: Path) -> int:
    """Bytes in all segments, one of which may be deleted meanwhile."""
    total = 0
    for path in root.rglob("*.seg"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def test_a_fork_after_the_end_closes_no_file_of_others(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """The number of a lock that was let go means another file by then: a child of fork leaves it alone, and says nothing."""
    spans = run_next(tmp_path / "spool", target_of(receiver.http_url), "a")
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]  # one of them has the number that the lock had
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the receiver: the child does nothing but look
        pid = os.fork()
    if pid == 0:
        try:
            [os.fstat(file) for file in files]
        except OSError:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert spans.accounted()
    for file in files:
        os.close(file)


def test_recovery_waits_for_a_collector_that_answers(tmp_path: Path) -> None:
    """As long as nothing can be delivered nothing is adopted: two runs without a collector leave two directories."""
    root, target = tmp_path / "spool", target_of(f"http://127.0.0.1:{unused_port()}")
    left = dead(root, target, "old", leave_open=("open",))
    spans = Spans(root, target, delay=0.01)
    spans.make("new")
    time.sleep(0.2)
    assert len(queues(root)) == 2
    assert len(read_contents(left).opened) == 1
    spans.queue.shutdown(1)


def test_adoption_happens_in_the_background_of_a_running_session(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """After the first delivery of its own the running process takes over what is left."""
    root, target = tmp_path / "spool", target_of(receiver.http_url)
    dead(root, target, "old")
    with spans_to(root, target, delay=0.02) as spans:
        spans.make("new")
        receiver.wait_for(2)
        assert names_in(receiver) == ["new", "old"]
