"""The segments of one journal: files of about a megabyte, appended to one after the other, deleted from the oldest on."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["MOST_READ", "Location", "SegmentFiles", "read_file", "segment_numbers", "segment_path"]

_SUFFIX: Final = ".seg"
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


MOST_READ: Final = 64 * 1024 * 1024
"""Bytes of a segment that are read at most: it has one, or those of a single span that is larger."""


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


def read_file(path: Path, most: int = MOST_READ) -> bytes:
    """The first ``most`` bytes of a file.

    Raises:
        OSError: It cannot be read, or is no regular file: a pipe would be waited for, and a device may have no end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(min(status.st_size, most))  # as much memory is taken as is asked for


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
        self._size = os.lseek(self._descriptor, 0, os.SEEK_CUR)  # asked for, since somebody else may have cut the file
        return Location(self._current, self._size - len(data), len(data))

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

    def delete_oldest(self) -> bool:
        """Delete the oldest segment; never to be called for the one that is appended to.

        False if it has to stay, in a directory that is read-only by now: what follows must stay, too, since it says what is settled.
        """
        try:
            segment_path(self._directory, self.numbers[0]).unlink(missing_ok=True)
        except OSError:
            return False
        self.numbers.popleft()
        return True

    def deleted(self) -> int:
        """The number of the current segment if somebody has deleted its file, of which :meth:`read` still knows; else 0."""
        gone = self._descriptor >= 0 and not os.fstat(self._descriptor).st_nlink
        return self._current if gone else 0

    def close(self) -> None:
        """Close the current segment; an append begins another one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _roll(self) -> None:
        try:
            descriptor = os.open(segment_path(self._directory, self._next), _FLAGS, 0o600)
        except OSError:
            if self._descriptor >= 0 or not self.numbers:
                raise
            self._reopen()
            return
        self.close()
        self._descriptor, self._current, self._size = descriptor, self._next, 0
        self.numbers.append(self._next)
        self._next += 1
        self.rolled += 1

    def _reopen(self) -> None:
        """Go on in the last segment that an ended process has left, however long it gets: no other can be made."""
        path = segment_path(self._directory, self.numbers[-1])
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._current, self._size, self._limit = self.numbers[-1], os.fstat(self._descriptor).st_size, sys.maxsize

    def _take_back(self, written: int) -> None:
        if not written:
            return
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self.close()  # the torn record stays at the end of its segment, where a reader skips it
