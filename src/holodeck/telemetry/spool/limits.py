"""Keeps all queues together within their bytes and their age: the oldest segments go first, and what goes is counted."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from time import time
from typing import NamedTuple, Self

from holodeck.telemetry.spool.contents import read_contents
from holodeck.telemetry.spool.directories import SpoolSettings, directories, is_being_made, remove_directory, try_lock
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
    with _Left(on_drop) as left:
        for segment in segments:
            reason = "expired" if segment.written < oldest else "queue_full" if total > settings.max_bytes else ""
            if not reason:
                break
            if _delete(segment, held, left, reason):
                total -= segment.size
    _remove_empty(settings, held, oldest)


def _segments(directory: Path) -> list[_Segment]:
    """The segments of a directory. None counts as newer than the one after it: the clock may have been set back in between."""
    found: list[_Segment] = []
    with contextlib.suppress(OSError):
        numbers = segment_numbers(directory)
        written = float("inf")
        for number in reversed(numbers):
            with contextlib.suppress(OSError):
                stat = segment_path(directory, number).lstat()
                written = min(written, stat.st_mtime)
                found.append(_Segment(written, directory, number, stat.st_size, number == numbers[-1]))
    return found


def _delete(segment: _Segment, held: dict[Path, Journal], left: _Left, reason: str) -> bool:
    journal = held.get(segment.directory)
    if journal is not None:
        return not segment.last and journal.drop_oldest_segment(reason)
    return left.delete(segment, reason)


class _Left:
    """The directory of an ended process from which segments are deleted: locked and read once, for as long as it is the same."""

    def __init__(self, on_drop: Callable[[int, str], None]) -> None:
        self._on_drop = on_drop
        self._directory: Path | None = None
        self._lock: int | None = None
        self._spans: Counter[int] = Counter()  # of each segment

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._turn_to(None)

    def _turn_to(self, directory: Path | None) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._directory, self._lock = directory, try_lock(directory) if directory is not None else None
        if directory is not None and self._lock is not None:
            contents = read_contents(directory)
            self._spans = Counter(entry.segment for entry in contents.waiting) + Counter(at.segment for at in contents.opened.values())

    def delete(self, segment: _Segment, reason: str) -> bool:
        """Delete a segment and say how many spans go with it, those that have not ended among them; False if its process lives."""
        if segment.directory != self._directory:
            self._turn_to(segment.directory)
        if self._lock is None:
            return False
        try:
            segment_path(segment.directory, segment.number).unlink(missing_ok=True)
        except OSError:
            return False
        if lost := self._spans.pop(segment.number, 0):
            self._on_drop(lost, reason)
        if segment.last:
            remove_directory(segment.directory)
        return True


def _remove_empty(settings: SpoolSettings, held: dict[Path, Journal], oldest: float) -> None:
    for path in directories(settings.root, abandoned=True):
        with contextlib.suppress(OSError):
            if path in held or segment_numbers(path) or (is_being_made(path) and path.stat().st_mtime > oldest):
                continue
            lock = try_lock(path)
            if lock is not None:
                remove_directory(path)
                os.close(lock)
