"""What is in the queues, and a way to send it now: for a command, without telemetry of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.spool.aside import Aside
from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import Destination, Meta, directories, read_meta, spool_settings, try_lock
from holodeck.telemetry.spool.queue import SpanQueue

__all__ = ["FlushReport", "SetAside", "SpoolEntry", "flush_spool", "set_aside", "spool_status"]


@dataclass(frozen=True)
class SpoolEntry:
    """The queue of one process.

    Attributes:
        directory: Where it stands.
        url: Where its spans go; "" if that cannot be read.
        protocol: ``http/protobuf``, ``grpc`` or "".
        headers_sha256: Hash of the headers that they go with: the same URL with another token is another destination.
        live: Its process lives.
        spans: Finished spans that wait.
        open_spans: Spans that have started and not ended.
        size: Bytes on disk.
        oldest: When its oldest segment was last written to; None if there is none.
        damaged: Bytes that cannot be read.
    """

    directory: Path
    url: str
    protocol: str
    headers_sha256: str
    live: bool
    spans: int
    open_spans: int
    size: int
    oldest: datetime | None
    damaged: int

    @property
    def crashed_spans(self) -> int:
        """Spans that were open when their process died; the next run ends them."""
        return 0 if self.live else self.open_spans


@dataclass(frozen=True)
class SetAside:
    """Spans that a collector did not accept, and that are not sent again.

    Attributes:
        directory: Where they are kept.
        spans: How many.
        size: Bytes on disk.
    """

    directory: Path
    spans: int
    size: int


@dataclass(frozen=True)
class FlushReport:
    """What :func:`flush_spool` did.

    Attributes:
        url: The destination.
        delivered: Spans that were taken.
        kept: Spans for this destination that still wait, those of living processes left out.
        rejected: Spans that were refused for good.
        dropped: Spans that were given up, by reason.
        live: Queues of living processes, which send by themselves.
        other_destinations: Queues that go elsewhere, or with other headers.
        reason: Why some are kept or rejected; "" if none.
        notices: What else is to be known, one line each.
    """

    url: str
    delivered: int
    kept: int
    rejected: int
    dropped: Mapping[str, int]
    live: int
    other_destinations: int
    reason: str
    notices: tuple[str, ...]


def spool_status(environ: Mapping[str, str]) -> list[SpoolEntry]:
    """Every queue, oldest first; nothing is changed.

    Raises:
        SettingError: A limit in the environment is not a number.
    """
    return [_entry(path) for path in directories(spool_settings(environ).root)]


def set_aside(environ: Mapping[str, str]) -> SetAside:
    """The spans that were refused for good.

    Raises:
        SettingError: A limit in the environment is not a number.
    """
    aside = Aside(spool_settings(environ))
    return SetAside(aside.directory, len(aside.spans()), aside.size())


def _entry(directory: Path) -> SpoolEntry:
    live = not _is_left(directory)
    contents, meta = read_contents(directory), read_meta(directory)
    to = meta.destination if isinstance(meta, Meta) else Destination("", "", "")
    size, oldest = 0, None
    with contextlib.suppress(OSError):
        stats = [path.stat() for path in directory.iterdir() if path.suffix == ".seg"]
        size = sum(stat.st_size for stat in stats)
        oldest = min((datetime.fromtimestamp(stat.st_mtime, UTC) for stat in stats), default=None)
    return SpoolEntry(
        directory=directory,
        url=to.url,
        protocol=to.protocol,
        headers_sha256=to.headers_sha256,
        live=live,
        spans=len(contents.waiting),
        open_spans=len(contents.opened),
        size=size,
        oldest=oldest,
        damaged=contents.damaged,
    )


def _is_left(directory: Path) -> bool:
    lock = try_lock(directory)
    if lock is not None:
        os.close(lock)
    return lock is not None


def flush_spool(target: OtlpTarget, environ: Mapping[str, str], seconds: float = 30.0) -> FlushReport:
    """Send what ended processes have left for ``target``, for at most ``seconds``.

    Raises:
        SettingError: A limit in the environment is not a number.
    """
    counters, notices = Counters(), list[str]()
    queue = SpanQueue(target, spool_settings(environ), counters, notices.append)
    queue.shutdown(seconds)
    left = spool_status(environ)
    ours = [entry for entry in left if Destination(entry.url, entry.protocol, entry.headers_sha256) == Destination.of(target)]
    done = counters.statistics(queued=0)
    held = queue.held
    kept = sum(held.values()) + sum(entry.spans + entry.open_spans for entry in ours if not entry.live and entry.directory not in held)
    return FlushReport(
        url=target.url,
        delivered=done.delivered,
        kept=kept,
        rejected=done.rejected,
        dropped=done.dropped,
        live=sum(entry.live and entry.directory not in held for entry in ours),
        other_destinations=len(left) - len(ours),
        reason=done.reason if kept or done.rejected else "",
        notices=tuple(notices),
    )
