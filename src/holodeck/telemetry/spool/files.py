"""The segments of one journal: files of about a megabyte, appended to one after the other, deleted from the oldest on."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Location", "SegmentFiles", "segment_numbers", "segment_path"]

_SUFFIX: Final = ".seg"
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Location(NamedTuple):
    """Where some bytes are.

    Attributes:
        segment: Number of the segment.
        offset: First byte.
        length: How many bytes.
    """

    segment: int
    offset: int
    length: int


def segment_path(directory: Path, number: int) -> Path:
    """The file of a segment."""
    return directory / f"{number:06d}{_SUFFIX}"


def segment_numbers(directory: Path) -> list[int]:
    """The segments in a directory, oldest first."""
    stems = (entry.name.removesuffix(_SUFFIX) for entry in directory.iterdir() if entry.name.endswith(_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


class SegmentFiles:
    """Appends to and reads from the segments of ``directory``; not thread-safe for appending.

    Args:
        directory: Must exist.
        limit: Size in bytes at which the next segment is begun.

    Attributes:
        numbers: The segments, oldest first; the last one is appended to.
        rolled: How many segments were begun.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self._directory, self._limit = directory, limit
        self.numbers = deque(segment_numbers(directory))
        self._next = (self.numbers[-1] if self.numbers else 0) + 1
        self._descriptor, self._current, self._size = -1, 0, 0
        self.rolled = 0

    def append(self, data: bytes) -> Location:
        """Append ``data`` in one write.

        Raises:
            OSError: It could not be written whole; what was written of it is taken back.
        """
        if self._descriptor < 0 or (self._size and self._size + len(data) > self._limit):
            self._roll()
        written = 0
        try:
            while written < len(data):  # a second write happens on a full disk only, and says why
                written += os.write(self._descriptor, data[written:] if written else data)
        except OSError:
            self._take_back(written)
            raise
        location = Location(self._current, self._size, len(data))
        self._size += len(data)
        return location

    def read(self, location: Location) -> bytes:
        """The bytes at ``location``.

        Raises:
            OSError: The segment cannot be read.
        """
        if location.segment == self._current and self._descriptor >= 0:
            return os.pread(self._descriptor, location.length, location.offset)
        descriptor = os.open(segment_path(self._directory, location.segment), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, location.length, location.offset)
        finally:
            os.close(descriptor)

    def delete_oldest(self) -> int:
        """Delete the oldest segment and return its number; never the one that is appended to."""
        number = self.numbers.popleft()
        with contextlib.suppress(OSError):  # it is gone, or a directory that is read-only by now keeps it: its spans are settled
            segment_path(self._directory, number).unlink()
        return number

    def check(self) -> None:
        """Begin another segment with the next append if somebody has deleted the current one."""
        if self._descriptor >= 0 and not os.fstat(self._descriptor).st_nlink:
            self.close()

    def close(self) -> None:
        """Close the current segment; an append begins another one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _roll(self) -> None:
        descriptor = os.open(segment_path(self._directory, self._next), _FLAGS, 0o600)
        self.close()
        self._descriptor, self._current, self._size = descriptor, self._next, 0
        self.numbers.append(self._next)
        self._next += 1
        self.rolled += 1

    def _take_back(self, written: int) -> None:
        if not written:
            return
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self.close()  # the torn record stays at the end of its segment, where a reader skips it
