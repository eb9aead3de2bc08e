"""What the segments of a directory hold, read without changing anything."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass, field
from pathlib import Path

from holodeck.telemetry.spool.files import MOST_READ, Location, read_file, segment_numbers, segment_path
from holodeck.telemetry.spool.journal import ENDED, KEY_SIZE, NUMBER, Entry
from holodeck.telemetry.spool.records import HEADER_SIZE, Damage, Kind, Record, scan

__all__ = ["Contents", "read_contents"]


@dataclass
class Contents:
    """What a directory holds.

    Attributes:
        waiting: Finished spans that are not settled, in order.
        opened: Spans that have started and not ended.
        settled: Number up to which spans are settled.
        in_flight: Numbers of the request of which it is not known whether it arrived.
        last_alive: Nanoseconds at which its owner was last known to live; None if nobody has adopted it before.
        damaged: Bytes that make no record.
    """

    waiting: list[Entry] = field(default_factory=list)
    opened: dict[bytes, Location] = field(default_factory=dict)
    settled: int = 0
    in_flight: frozenset[int] = frozenset()
    last_alive: int | None = None
    damaged: int = 0


def read_contents(directory: Path) -> Contents:
    """What ``directory`` holds; what cannot be read counts as damaged."""
    contents = Contents()
    ended: set[bytes] = set()
    with contextlib.suppress(OSError):
        for number in segment_numbers(directory):
            _read_segment(contents, ended, number, segment_path(directory, number))
    contents.waiting = sorted({e.number: e for e in contents.waiting if e.number > contents.settled}.values())
    contents.opened = {key: at for key, at in contents.opened.items() if key not in ended}
    contents.in_flight = frozenset(n for n in contents.in_flight if n > contents.settled)
    return contents


def _read_segment(contents: Contents, ended: set[bytes], number: int, path: Path) -> None:
    try:
        data = read_file(path)
        contents.damaged += max(path.stat().st_size - MOST_READ, 0)
    except FileNotFoundError:  # its process has deleted it meanwhile
        return
    except OSError:
        with contextlib.suppress(OSError):
            contents.damaged += path.stat().st_size
        return
    for found in scan(data):
        if isinstance(found, Damage):
            contents.damaged += found.length
        else:
            _take(contents, ended, number, found)


def _take(contents: Contents, ended: set[bytes], segment: int, record: Record) -> None:
    payload = record.payload
    at = Location(segment, record.offset - HEADER_SIZE, HEADER_SIZE + len(payload))
    if record.kind is Kind.STARTED:
        contents.opened[payload[:KEY_SIZE]] = at
    elif record.kind is Kind.SENDING:
        contents.in_flight = frozenset(struct.unpack(f"<{len(payload) // 8}Q", payload[: len(payload) // 8 * 8]))
    elif len(payload) < NUMBER.size:
        return
    elif record.kind is Kind.ENDED:
        ended.add(payload[NUMBER.size : ENDED])
        if len(payload) > ENDED:  # else it says only that the span has ended: it went out from memory
            contents.waiting.append(Entry(NUMBER.unpack_from(payload)[0], *at))
    elif record.kind is Kind.SETTLED:
        contents.settled = max(contents.settled, NUMBER.unpack_from(payload)[0])
    elif contents.last_alive is None:
        contents.last_alive = NUMBER.unpack_from(payload)[0]
