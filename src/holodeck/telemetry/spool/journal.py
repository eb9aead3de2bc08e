"""The spans of one process that are not delivered yet: on disk, with an index of where they are in memory.

Spans have numbers, in the order of their ends. They leave the queue in that order too, so that one number says what is settled:
everything up to it. What cannot be written stays in memory, bounded, until it can be.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from holodeck.telemetry.spool.directories import RESERVE, Meta, remove_directory, touch
from holodeck.telemetry.spool.files import Location, SegmentFiles
from holodeck.telemetry.spool.records import HEADER_SIZE, Kind, pack, unpack

__all__ = ["ENDED", "KEY_SIZE", "NUMBER", "Entry", "Journal"]

NUMBER: Final = struct.Struct("<Q")
"""A span's number, or nanoseconds."""
KEY_SIZE: Final = 24
"""Trace id and span id."""
ENDED: Final = NUMBER.size + KEY_SIZE
"""Bytes before the span in the payload of an ENDED record."""
_MEMORY_BYTES: Final = 32 * 1024 * 1024
_IN_MEMORY: Final = 0


class Entry(NamedTuple):
    """A finished span that waits.

    Attributes:
        number: Its place in the order.
        segment, offset, length: Its record; segment 0: it is in memory.
    """

    number: int
    segment: int
    offset: int
    length: int

    @property
    def size(self) -> int:
        """Bytes that it takes in a request, a little less than its record."""
        return self.length - HEADER_SIZE - ENDED


class Journal:
    """A queue of spans; thread-safe.

    Args:
        meta: Destination and resource.
        directory: Where it stands, with ``lock`` and ``files``; None: in memory only.
        lock: Descriptor of the lock that is held.
        files: The segments.
        memory_spans: Most spans in memory.
        on_drop: Called with a number of spans and the reason.
        on_notice: Called with one line when writing begins to fail.
    """

    def __init__(
        self,
        meta: Meta,
        *,
        directory: Path | None = None,
        lock: int = -1,
        files: SegmentFiles | None = None,
        memory_spans: int = 2048,
        on_drop: Callable[[int, str], None],
        on_notice: Callable[[str], None],
    ) -> None:
        self.meta, self.directory = meta, directory
        self._lock_descriptor, self._files, self._memory_spans = lock, files, memory_spans
        self._on_drop, self._on_notice = on_drop, on_notice
        self._mutex = threading.RLock()
        self._waiting: deque[Entry] = deque()
        self._memory: dict[int, bytes] = {}
        self._memory_bytes = 0
        self._open: dict[bytes, Location | None] = {}
        self._last_number: dict[int, int] = {}  # of each segment
        self._unsaid: deque[bytes] = deque(maxlen=10_000)  # records that are still to be written
        self._number = self._settled = self._written = 0
        self._failing = False
        self._in_flight: frozenset[int] = frozenset()
        self.closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def open_spans(self) -> int:
        """Spans that have started and not ended."""
        return len(self._open)

    @property
    def open_on_disk(self) -> int:
        """Those of them that a later process can find."""
        with self._mutex:
            return sum(location is not None for location in self._open.values())

    @property
    def rolled(self) -> int:
        """Segments begun so far."""
        return self._files.rolled if self._files else 0

    @property
    def in_memory(self) -> int:
        """Spans that are in memory only."""
        return len(self._memory)

    def restore(self, waiting: Sequence[Entry], opened: dict[bytes, Location], settled: int, in_flight: frozenset[int]) -> None:
        """Take over what a directory holds."""
        self._waiting, self._open = deque(waiting), dict(opened)
        self._settled = self._written = settled
        self._number = max([settled, *(entry.number for entry in waiting)])
        self._in_flight = in_flight
        for entry in waiting:
            self._last_number[entry.segment] = entry.number

    def started(self, key: bytes, span: bytes) -> None:
        """Note that a span has started."""
        with self._mutex:
            if not self.closed:
                self._open[key] = self._append(pack(Kind.STARTED, key + span))

    def ended(self, key: bytes, span: bytes) -> bool:
        """Keep a finished span; False if the journal is closed."""
        with self._mutex:
            if self.closed:
                return False
            self._number += 1
            record = pack(Kind.ENDED, NUMBER.pack(self._number) + key + span)
            self._keep(self._number, record, self._append(record))
            self._open.pop(key, None)
        return True

    def forget(self, key: bytes) -> None:
        """A span that was noted at its start cannot be read any more."""
        with self._mutex:
            self._open.pop(key, None)

    def _keep(self, number: int, record: bytes, location: Location | None) -> None:
        if location is not None:
            self._last_number[location.segment] = number
            self._waiting.append(Entry(number, *location))
            return
        self._memory[number] = record
        self._memory_bytes += len(record)
        self._waiting.append(Entry(number, _IN_MEMORY, 0, len(record)))
        if len(self._memory) > self._memory_spans or self._memory_bytes > _MEMORY_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        # What is on its way may be taken in this moment, and must not be counted as dropped.
        spare = deque(number for number in self._memory if number not in self._in_flight)
        while len(spare) > self._memory_spans or (self._memory_bytes > _MEMORY_BYTES and len(spare) > 1):
            number = spare.popleft()
            # From the end: what is in memory came last, and there may be very many on disk before it.
            del self._waiting[next(i for i in range(len(self._waiting) - 1, -1, -1) if self._waiting[i].number == number)]
            self._forget(number)
            self._on_drop(1, "queue_full")

    def _forget(self, number: int) -> None:
        self._memory_bytes -= len(self._memory.pop(number, b""))

    def batch(self, most_spans: int, most_bytes: int) -> list[Entry]:
        """The spans of the next request, oldest first; one that is larger than ``most_bytes`` goes alone.

        As long as it is not known whether a request has arrived, the next one is the same.
        """
        with self._mutex:
            if self._in_flight:
                again = [entry for entry in islice(self._waiting, len(self._in_flight)) if entry.number in self._in_flight]
                if again:
                    return again
            chosen: list[Entry] = []
            size = 0
            for entry in islice(self._waiting, most_spans):
                size += entry.size
                if chosen and size > most_bytes:
                    break
                chosen.append(entry)
            return chosen

    def read(self, entry: Entry) -> bytes | None:
        """A span as ``ScopeSpans``; None if it is lost."""
        with self._mutex:
            try:
                data = self._memory.get(entry.number)
                if data is None and self._files is not None and entry.segment != _IN_MEMORY:
                    data = self._files.read(Location(entry.segment, entry.offset, entry.length))
            except OSError:
                data = None
        record = unpack(data) if data is not None else None
        return record.payload[ENDED:] if record is not None else None

    def sending(self, entries: Sequence[Entry]) -> None:
        """Note which spans are about to leave."""
        numbers = [entry.number for entry in entries]
        with self._mutex:
            self._in_flight = frozenset(numbers)
            self._append(pack(Kind.SENDING, struct.pack(f"<{len(numbers)}Q", *numbers)))

    def refused(self) -> None:
        """The last request did not arrive: the next one may be another."""
        with self._mutex:
            self._in_flight = frozenset()

    def settle(self, number: int) -> int:
        """Every span up to ``number`` is delivered or dropped; how many of them have waited until now."""
        with self._mutex:
            self._settled, before = max(self._settled, number), len(self._waiting)
            while self._waiting and self._waiting[0].number <= self._settled:
                self._leaves(self._waiting.popleft().number)
            left = before - len(self._waiting)
            self._in_flight = frozenset(number for number in self._in_flight if number > self._settled)
            self._write_settled()
            self._trim()
            return left

    def _leaves(self, number: int) -> None:
        if (record := self._memory.get(number)) is not None and self._files is not None:
            # Its start may be on disk: without its end the span would come again, as one that a crash has ended.
            self._unsaid.append(pack(Kind.ENDED, record[HEADER_SIZE : HEADER_SIZE + ENDED]))
        self._forget(number)

    def _write_settled(self) -> None:
        self._write_number()
        while self._unsaid and self._append(self._unsaid[0]) is not None:
            self._unsaid.popleft()

    def _write_number(self) -> None:
        if self._written == self._settled:
            return
        if self._append_surely(pack(Kind.SETTLED, NUMBER.pack(self._settled))):  # else tried again with the next beat
            self._written = self._settled

    def _append_surely(self, record: bytes) -> bool:
        return self._append(record) is not None or (self._give_up_reserve() and self._append(record) is not None)

    def _give_up_reserve(self) -> bool:
        try:
            (self.directory / RESERVE).unlink() if self.directory else None
        except OSError:
            return False
        return self.directory is not None

    def beat(self) -> None:
        """Once a second or so: note that the process lives, and write what could not be written before."""
        with self._mutex:
            if self.closed or self._files is None:
                return
            if self._open:
                touch(self._lock_descriptor)
            self._rescue(self._files.deleted())
            self._write_settled()
            self._write_memory()
            if not self._memory and self._written == self._settled:
                self._failing = False  # what fails from now on is news

    def _rescue(self, segment: int) -> None:
        """Take the spans of the current segment, which somebody has deleted, into memory while its file is still open."""
        if not segment or self._files is None:
            return
        for entry in [entry for entry in self._waiting if entry.segment == segment]:
            self._memory[entry.number] = self._files.read(Location(*entry[1:]))
            self._memory_bytes += entry.length
        self._waiting = deque(Entry(e.number, _IN_MEMORY, 0, e.length) if e.segment == segment else e for e in self._waiting)
        self._open = {key: None if at is not None and at.segment == segment else at for key, at in self._open.items()}
        self._files.close()

    def _write_memory(self) -> None:
        if not self._memory or self._files is None:
            return
        moved: dict[int, Location] = {}
        for number, record in self._memory.items():
            location = self._append(record)
            if location is None:
                break
            moved[number] = location
            self._last_number[location.segment] = max(number, self._last_number.get(location.segment, 0))
        if not moved:
            return
        for number in moved:
            self._forget(number)
        self._waiting = deque(Entry(e.number, *moved[e.number]) if e.number in moved else e for e in self._waiting)

    def drop_oldest_segment(self, reason: str) -> bool:
        """Give the spans of the oldest segment up to make room; False if there is only the current one."""
        with self._mutex:
            if self._files is None or len(self._files.numbers) < 2:
                return False
            number = self._files.numbers[0]
            last = self._last_number.get(number, 0)
            dropped = sum(1 for entry in self._waiting if entry.number <= last)
            if dropped:
                self._on_drop(dropped, reason)
                self.settle(last)
            return self._files.numbers[0] != number or self._delete_oldest()

    def _trim(self) -> None:
        files = self._files
        while files is not None and len(files.numbers) > 1 and self._last_number.get(files.numbers[0], 0) <= self._settled:
            if not self._delete_oldest():
                return

    def _delete_oldest(self) -> bool:
        """Delete the oldest segment; spans that are still open and began there are noted again."""
        assert self._files is not None
        oldest = self._files.numbers[0]
        for key, location in [(k, at) for k, at in self._open.items() if at is not None and at.segment == oldest]:
            try:
                moved = self._append(self._files.read(location))
            except OSError:
                moved = None
            if moved is None:
                return False
            self._open[key] = moved
        if not self._files.delete_oldest():
            return False
        self._last_number.pop(oldest, None)
        return True

    def _append(self, record: bytes) -> Location | None:
        if self._files is None:
            return None
        try:
            location = self._files.append(record)
        except OSError as error:
            if not self._failing:
                self._failing = True
                self._on_notice(f"spans stay in memory: {self.directory} cannot be written ({error.strerror or error})")
            return None
        return location

    def recovered(self, last_alive: int) -> bool:
        """Note when (nanoseconds) the owner of an adopted directory was last known to live; False if nothing can be written there."""
        with self._mutex:
            return self._append_surely(pack(Kind.RECOVERED, NUMBER.pack(last_alive)))

    def close(self) -> None:
        """Let go of the directory, and remove it if nothing is left in it. What is in memory only is lost."""
        with self._mutex:
            if self.closed:
                return
            self.beat()
            self.give_memory_up()
            self.closed = True
            if self._files is not None:
                self._files.close()
            if self.directory is not None and not self._waiting and not self._open:
                remove_directory(self.directory)
            self._unlock()

    def _unlock(self) -> None:
        # Forgotten once it is closed: its number will mean another file by then.
        descriptor, self._lock_descriptor = self._lock_descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def give_memory_up(self) -> None:
        """Write what is in memory only, or drop it: the process ends."""
        with self._mutex:
            self._write_memory()
            if not self._memory:
                return
            self._on_drop(len(self._memory), "not_kept")
            self._waiting = deque(entry for entry in self._waiting if entry.segment != _IN_MEMORY)
            self._memory.clear()
            self._memory_bytes = 0

    def abandon(self) -> None:
        """In a forked child: let go of what is the parent's, without a trace."""
        self.closed, self._mutex = True, threading.RLock()
        if self._files is not None:
            self._files.close()
        self._unlock()  # the parent's lock stays: it is held by its own descriptor
