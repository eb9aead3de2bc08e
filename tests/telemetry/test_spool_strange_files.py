"""What may stand in place of a file of the queue: nothing of it is waited for, none of it costs more than itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from holodeck.telemetry.spool import flush_spool, set_aside, spool_status
from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import remove_directory
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, queues, spans_to, target_of


def pipe(path: Path) -> None:
    """A pipe to which nobody writes."""
    os.mkfifo(path)


def device(path: Path) -> None:
    """A device without an end."""
    path.symlink_to("/dev/zero")


def gigabytes(path: Path) -> None:
    """More than fits in memory, without a byte on disk."""
    path.touch()
    os.truncate(path, 2**36)


def directory(path: Path) -> None:
    """A directory."""
    path.mkdir()


def noise(path: Path) -> None:
    """Bytes that are nothing."""
    path.write_bytes(os.urandom(100_000) + b"\xf5HE\xff\xff\x00\x00" * 1000)


def left_behind(state: Path, url: str) -> Path:
    """The queue of a run that has reached nobody."""
    spans = Spans(state / "spool", target_of(url))
    spans.make("a", "b")
    spans.queue.shutdown(0.3)
    (queue,) = (path for path in (state / "spool").iterdir() if path.name != "rejected")
    return queue


@pytest.mark.parametrize("strange", [pipe, device, gigabytes, directory, noise])
@pytest.mark.parametrize("place", ["000002.seg", "meta.json", "reserve", "../rejected/1.seg"])
def test_what_is_no_file_of_ours_holds_nobody_up(tmp_path: Path, place: str, strange: Callable[[Path], None]) -> None:
    """The status is told and the spans are delivered, soon and once, whatever stands beside them."""
    environ, start = {"HOLODECK_STATE_DIR": str(tmp_path), "HOLODECK_SPOOL_MAX_BYTES": str(2**40)}, monotonic()
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "60"})
        path = left_behind(tmp_path, receiver.http_url) / place
        receiver.accept()
        receiver.clear()
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        strange(path)
        assert [entry.spans for entry in spool_status(environ)] == [2]
        assert set_aside(environ).spans == 0
        report = flush_spool(target_of(receiver.http_url), environ, 10)
        assert (report.delivered, report.kept, report.dropped) == (2, 0, {})
        assert names_in(receiver) == ["a", "b"]
    assert monotonic() - start < 8


def test_a_segment_that_somebody_empties_costs_what_was_in_it_only(tmp_path: Path) -> None:
    """What is written afterwards is found where it is."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        spans.make("gone")
        (segment,) = queues(tmp_path)[0].glob("*.seg")
        os.truncate(segment, 0)
        spans.make("there")
        assert spans.queue.flush(3)
        assert names_in(receiver) == ["there"]
        assert spans.statistics.dropped == {"queue_damaged": 1}
        assert spans.accounted()


def test_a_segment_that_somebody_deletes_costs_nothing(tmp_path: Path) -> None:
    """Its file is still open: the spans are taken into memory, and delivered, or written elsewhere."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url)) as spans:
            spans.make("a", "b")
            shutil.rmtree(queues(tmp_path)[0])
            spans.make("c")
            assert spans.queue.flush(3)
            spans.make("d")
        assert names_in(receiver) == list("abcd")
        assert spans.accounted()


def test_a_directory_in_which_nothing_can_be_written_is_left_alone(tmp_path: Path) -> None:
    """What is delivered could not be written down, and would be sent again by every run."""
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "60"})
        queue = left_behind(tmp_path, receiver.http_url)
        receiver.accept()
        receiver.clear()
        if os.geteuid() == 0:
            locked = [queue, *queue.glob("*.seg")]
            if subprocess.run(["chattr", "+i", *map(str, locked)], capture_output=True, check=False).returncode:
                pytest.skip("this file system knows no immutable files, and root writes everywhere")
        else:
            (queue / "000001.seg").chmod(0o400)
            queue.chmod(0o500)
        try:
            reports = [flush_spool(target_of(receiver.http_url), {"HOLODECK_STATE_DIR": str(tmp_path)}, 5) for _ in range(2)]
        finally:
            if os.geteuid() == 0:
                subprocess.run(["chattr", "-i", *map(str, locked)], check=True)
            else:
                queue.chmod(0o700)
                (queue / "000001.seg").chmod(0o600)
        assert [(report.delivered, report.kept) for report in reports] == [(0, 2), (0, 2)]
        assert "cannot be written" in reports[0].notices[0]
        assert receiver.spans == []
        assert flush_spool(target_of(receiver.http_url), {"HOLODECK_STATE_DIR": str(tmp_path)}, 5).delivered == 2


def test_a_directory_that_takes_no_new_file_is_sent_once(tmp_path: Path) -> None:
    """What is delivered is written down in the last segment that is there."""
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "60"})
        queue = left_behind(tmp_path, receiver.http_url)
        receiver.accept()
        receiver.clear()
        if os.geteuid() == 0 and subprocess.run(["chattr", "+i", str(queue)], capture_output=True, check=False).returncode:
            pytest.skip("this file system knows no immutable directories, and root writes everywhere")
        queue.chmod(0o500) if os.geteuid() else None
        try:
            for _ in range(2):
                flush_spool(target_of(receiver.http_url), {"HOLODECK_STATE_DIR": str(tmp_path)}, 5)
        finally:
            if os.geteuid() == 0:
                subprocess.run(["chattr", "-i", str(queue)], check=True)
            else:
                queue.chmod(0o700)
        assert names_in(receiver) == ["a", "b"]
        assert read_contents(queue).waiting == []


def test_a_removal_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    """A directory without segments whose process has ended is nobody's: the next run takes it away."""
    queue = left_behind(tmp_path, f"http://127.0.0.1:{unused_port()}")
    (queue / "000001.seg").unlink()
    (queue / "meta.json").unlink()
    (queue / "meta.copy.json").unlink()
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path / "spool", target_of(receiver.http_url)) as spans:
            spans.make("a")
            assert spans.queue.flush(3)
        assert not queue.exists()


def test_segments_go_before_what_says_whose_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that is killed leaves no segment behind that nobody would ever look at."""
    queue, gone = left_behind(tmp_path, f"http://127.0.0.1:{unused_port()}"), list[str]()
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda self, **options: (gone.append(self.name), unlink(self, **options)))
    remove_directory(queue)
    assert gone[0] == "000001.seg"
    assert gone[-1] == "lock"
