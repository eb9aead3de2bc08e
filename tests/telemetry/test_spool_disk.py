"""The queue on disk: who may read it, what it says, and a disk that is full, read-only, gone or damaged."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holodeck.errors import SettingError
from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import spool_settings
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, queues, spans_to, target_of

NOBODY = "http://127.0.0.1:9"


@contextmanager
def no_more_than(size: int) -> Iterator[None]:
    """No file may grow over ``size`` bytes, as on a full disk: a real limit of the kernel."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    """Directories are 0700 and files 0600, whatever the umask is."""
    before = os.umask(0)
    try:
        with spans_to(tmp_path / "state" / "spool", target_of(NOBODY)) as spans:
            spans.make("a")
            (queue,) = queues(tmp_path / "state" / "spool")
            assert {oct(path.stat().st_mode & 0o777) for path in (queue.parent, queue)} == {"0o700"}
            assert {oct(path.stat().st_mode & 0o777) for path in queue.iterdir()} == {"0o600"}
    finally:
        os.umask(before)


def test_meta_names_the_destination_without_a_secret(tmp_path: Path) -> None:
    """URL, protocol and a hash of the headers stand there; no header value stands anywhere in the directory."""
    with spans_to(tmp_path, target_of(NOBODY, headers={"authorization": "Bearer t0ps3cret"})) as spans:
        spans.make("a")
        (queue,) = queues(tmp_path)
        meta = json.loads((queue / "meta.json").read_text())
        assert meta["destination"]["url"] == f"{NOBODY}/v1/traces"
        assert len(meta["destination"]["headers_sha256"]) == 64
        assert b"t0ps3cret" not in b"".join(path.read_bytes() for path in queue.iterdir())


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    """A child that outlives the process must not make it look alive."""
    with spans_to(tmp_path, target_of(NOBODY)) as spans:
        spans.make("a")
        command = f"ls -l /proc/self/fd 2>/dev/null | grep -c {tmp_path} || true"
        assert subprocess.run(["sh", "-c", command], capture_output=True, check=True, close_fds=False).stdout.strip() == b"0"


def test_a_forked_child_has_a_queue_of_its_own(tmp_path: Path) -> None:
    """After a fork the child neither sends the parent's spans nor holds its lock, and its own spans arrive."""
    with OtlpReceiver() as receiver:
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom support.spans import Spans, target_of\n"
            f"spans = Spans(Path({str(tmp_path)!r}), target_of({receiver.http_url!r}))\nspans.make('parent')\n"
            "pid = os.fork()\n"
            "spans.make('child' if not pid else 'parent 2')\nspans.queue.shutdown(3)\n"
            "made = spans.statistics\nassert (made.made, made.delivered) == ((1, 1) if not pid else (2, 2)), made\n"
            "os._exit(0) if not pid else sys.exit(os.waitpid(pid, 0)[1])\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], cwd=Path(__file__).parent.parent, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert sorted(names_in(receiver)) == ["child", "parent", "parent 2"]
    assert queues(tmp_path) == []


def test_a_full_disk_leaves_the_chat_alone_and_is_said_once(tmp_path: Path) -> None:
    """What cannot be written stays in memory and arrives; what was written before stays on disk."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url)) as spans:
            spans.make("written")
            with no_more_than(4096):
                spans.make(*(f"span-{i}" for i in range(30)), text="x" * 300)
            (notice,) = spans.notices
            assert notice.startswith("spans stay in memory: ")
            assert "File too large" in notice
            assert spans.queue.flush(5)
            assert spans.accounted()
        assert names_in(receiver) == ["written", *(f"span-{i}" for i in range(30))]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with room for 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_real_full_disk(small_disk: Path) -> None:
    """No space left: said once, nothing lost; what was delivered is written down none the less, so that nothing is sent twice."""
    with OtlpReceiver() as receiver:
        spans = Spans(small_disk / "spool", target_of(receiver.http_url))
        spans.make(*(f"span-{i}" for i in range(300)), text="x" * 300)
        (notice,) = spans.notices
        assert "(No space left on device)" in notice
        assert spans.statistics.queued == 300
        assert spans.queue.flush(5)
        (queue,) = queues(small_disk / "spool")
        left = read_contents(queue)
        assert left.waiting == []
        assert left.settled == 300
        spans.queue.shutdown(1)
        assert spans.accounted()
        assert names_in(receiver) == [f"span-{i}" for i in range(300)]
        assert queues(small_disk / "spool") == []


def test_what_was_in_memory_is_written_when_there_is_room_again(tmp_path: Path) -> None:
    """At the end at the latest the spans are on disk, in their order, and the next run delivers them."""
    target = target_of(f"http://127.0.0.1:{unused_port()}")
    spans = Spans(tmp_path, target)
    spans.make("written")
    with no_more_than(64):
        spans.make("1", "2", "3")
    spans.queue.shutdown(1)
    assert (spans.queue.kept, spans.statistics.dropped) == (4, {})
    (queue,) = queues(tmp_path)
    assert [entry.number for entry in read_contents(queue).waiting] == [1, 2, 3, 4]


def test_memory_is_bounded_and_the_oldest_go_first(tmp_path: Path) -> None:
    """max_queue_size limits what waits in memory; what goes is counted as queue_full."""
    (tmp_path / "file").write_text("not a directory")
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path / "file" / "spool", target_of(receiver.http_url), memory_spans=10) as spans:
            spans.make(*(str(i) for i in range(25)))
            now = spans.statistics
            assert (now.queued, now.dropped) == (10, {"queue_full": 15})
            (notice,) = spans.notices
            assert "cannot be written (Not a directory)" in notice
            assert spans.queue.flush(5)
            assert spans.accounted()
        assert names_in(receiver) == [str(i) for i in range(15, 25)]


def test_spans_that_are_only_in_memory_at_the_end_are_counted_as_lost(tmp_path: Path) -> None:
    """With neither a disk nor a collector the spans are lost, and that is counted, not called kept."""
    (tmp_path / "file").write_text("not a directory")
    spans = Spans(tmp_path / "file" / "spool", target_of(f"http://127.0.0.1:{unused_port()}"))
    spans.make("a", "b")
    spans.queue.shutdown(1)
    assert (spans.queue.kept, spans.statistics.dropped) == (0, {"not_kept": 2})


def test_what_is_on_its_way_is_not_given_up_for_want_of_room(tmp_path: Path) -> None:
    """Memory overflows while a request is out: its spans are counted once, as what they become."""
    (tmp_path / "file").write_text("not a directory")
    with OtlpReceiver() as receiver:
        receiver.slow(0.3)
        spans = Spans(tmp_path / "file" / "spool", target_of(receiver.http_url), memory_spans=5, most_spans=5)
        spans.make(*"abcde")
        receiver.wait_for(lambda r: len(r.raw) == 1)
        spans.make(*"fghijk")
        assert spans.queue.flush(5)
        assert (spans.statistics.delivered, spans.statistics.dropped) == (10, {"queue_full": 1})
        assert spans.accounted()
        spans.queue.shutdown(1)
        assert names_in(receiver) == [*"abcde", *"ghijk"]


def test_a_span_that_went_out_from_memory_does_not_come_again_as_crashed(tmp_path: Path) -> None:
    """Its start is on disk and its end was not: that it has ended is written down when there is room again."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        begun = spans.tracer.start_span("begun")
        (queue,) = queues(tmp_path)
        with no_more_than(64):
            begun.end()
            assert spans.queue.flush(5)
        assert len(read_contents(queue).opened) == 1
        spans.make("later")
        assert spans.queue.flush(5)
        left = read_contents(queue)
        assert (left.waiting, left.opened) == ([], {})
        assert names_in(receiver) == ["begun", "later"]


def test_a_directory_that_becomes_read_only_is_survived(tmp_path: Path) -> None:
    """No new segment can be made: spans stay in memory and arrive; the directory is immutable even for root, where that exists."""
    spans = Spans(tmp_path, target_of(NOBODY), limits={"max_bytes": 1})  # segments of 16 KiB
    spans.make("first")
    (queue,) = queues(tmp_path)
    if os.geteuid() == 0 and subprocess.run(["chattr", "+i", str(queue)], capture_output=True, check=False).returncode:
        pytest.skip("this file system knows no immutable directories, and root writes everywhere")
    queue.chmod(0o500) if os.geteuid() else None
    try:
        spans.make(*(f"span-{i}" for i in range(30)), text="x" * 1000)
        assert any("cannot be written" in notice for notice in spans.notices)
        assert spans.statistics.queued == 31
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", str(queue)], check=True)
        else:
            queue.chmod(0o700)
    spans.queue.shutdown(1)
    assert spans.accounted()


def test_a_directory_that_somebody_deletes_costs_what_was_in_it_only(tmp_path: Path) -> None:
    """The chat goes on, every span is accounted for, and those of the segment that is still open arrive."""
    import shutil

    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url)) as spans:
            spans.make("a")
            shutil.rmtree(queues(tmp_path)[0])
            spans.make("b")
            assert spans.queue.flush(5)
            spans.make("c")
            assert spans.queue.flush(5)
            assert spans.accounted()
        assert names_in(receiver) == list("abc")


def test_segments_are_deleted_as_they_are_delivered(tmp_path: Path) -> None:
    """Disk space does not grow with what was delivered, also while a span stays open for the whole time."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url), limits={"max_bytes": 160_000}) as spans:
        still_open = spans.tracer.start_span("open")
        for _ in range(20):
            spans.make(*"abcdefghij", text="x" * 2000)
            assert spans.queue.flush(5)
            assert len(list(queues(tmp_path)[0].glob("*.seg"))) <= 3
        still_open.end()
        assert spans.queue.flush(5)
        assert spans.accounted()
        assert spans.statistics.delivered == 201


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (256 * 1024 * 1024, 604_800)),
        ({"HOLODECK_SPOOL_MAX_BYTES": "1000000", "HOLODECK_SPOOL_MAX_AGE": "90m"}, (1_000_000, 5400)),
        ({"HOLODECK_SPOOL_MAX_BYTES": " ", "HOLODECK_SPOOL_MAX_AGE": "12"}, (256 * 1024 * 1024, 12)),
    ],
)
def test_limits_come_from_the_environment(tmp_path: Path, variables: dict[str, str], expected: tuple[int, int]) -> None:
    """HOLODECK_SPOOL_MAX_BYTES and HOLODECK_SPOOL_MAX_AGE, and HOLODECK_STATE_DIR for the place."""
    settings = spool_settings({"HOLODECK_STATE_DIR": str(tmp_path), **variables})
    assert (settings.root, settings.max_bytes, settings.max_age) == (tmp_path / "spool", *expected)


@pytest.mark.parametrize("name", ["HOLODECK_SPOOL_MAX_BYTES", "HOLODECK_SPOOL_MAX_AGE"])
@pytest.mark.parametrize("value", ["much", "-1", "1.5", "٣", "9" * 40, "5k"])
def test_a_limit_that_is_no_number_is_one_clear_error(name: str, value: str) -> None:
    """The variable is named, and what to write instead."""
    with pytest.raises(SettingError, match=f"^{name} is not a limit: write "):
        spool_settings({name: value})
