"""Keeps all queues together within their bytes and their age: the oldest segments go first, and what goes is counted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from time import time
from typing import NamedTuple

from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import SpoolSettings, directories, remove_directory, try_lock
from holodeck.telemetry.spool.files import segment_numbers, segment_path
from holodeck.telemetry.spool.journal import Journal

__all__ = ["enforce"]


class _Segment(NamedTuple):
    written: float
    directory: Path
    number: int
    size: int
    last: bool  # of its directory


def enforce(settings: SpoolSettings, ours: Collection[Journal], on_drop: Callable[[int, str], None]) -> None:
    """Delete the oldest segments of our own queues and of ended processes until the rest is within the limits.

    ``on_drop`` is told of the spans of ended processes; our own journals tell of theirs themselves.
    """
    held = {journal.directory: journal for journal in ours if journal.directory is not None}
    segments = sorted(segment for path in directories(settings.root, abandoned=True) for segment in _segments(path))
    total = sum(segment.size for segment in segments)
    oldest = time() - settings.max_age
    for segment in segments:
        reason = "expired" if segment.written < oldest else "queue_full" if total > settings.max_bytes else ""
        if not reason:
            break
        if _delete(segment, held, reason, on_drop):
            total -= segment.size
    _remove_empty(settings, held, oldest)


def _segments(directory: Path) -> list[_Segment]:
    found: list[_Segment] = []
    with contextlib.suppress(OSError):
        numbers = segment_numbers(directory)
        for number in numbers:
            with contextlib.suppress(OSError):
                stat = segment_path(directory, number).stat()
                found.append(_Segment(stat.st_mtime, directory, number, stat.st_size, number == numbers[-1]))
    return found


def _delete(segment: _Segment, held: dict[Path, Journal], reason: str, on_drop: Callable[[int, str], None]) -> bool:
    journal = held.get(segment.directory)
    if journal is not None:
        return not segment.last and journal.drop_oldest_segment(reason)
    lock = try_lock(segment.directory)
    if lock is None:
        return False
    try:
        lost = sum(1 for entry in read_contents(segment.directory).waiting if entry.segment == segment.number)
        if lost:
            on_drop(lost, reason)
        segment_path(segment.directory, segment.number).unlink(missing_ok=True)
        if segment.last:
            remove_directory(segment.directory)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _remove_empty(settings: SpoolSettings, held: dict[Path, Journal], oldest: float) -> None:
    for path in directories(settings.root, abandoned=True):
        with contextlib.suppress(OSError):
            if path in held or segment_numbers(path) or path.stat().st_mtime > oldest:
                continue
            lock = try_lock(path)
            if lock is not None:
                remove_directory(path)
                os.close(lock)
