"""How records stand in a segment: framed and checked, so that whatever is damaged costs itself only.

A record is ``magic (2 bytes) | type (1) | length of payload (4) | CRC-32 of type, length and payload (4) | payload``, little endian. One
record is appended by one ``write``; a process that is killed leaves a torn last record at worst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple
from zlib import crc32

__all__ = ["HEADER_SIZE", "Damage", "Kind", "Record", "pack", "scan", "unpack"]

_MAGIC: Final = b"\xf5H"
_HEADER: Final = struct.Struct("<2scII")
_CHECKED: Final = struct.Struct("<cI")
HEADER_SIZE: Final = _HEADER.size
"""Bytes before the payload."""


class Kind(Enum):
    """What a record says.

    Attributes:
        STARTED: A span has started; as it was known then.
        ENDED: A span has ended.
        SENDING: A request is about to leave; the numbers of its spans.
        SETTLED: Every span up to a number is delivered or dropped.
        RECOVERED: Another process has adopted the directory; when its owner was last known to live.
    """

    STARTED = b"S"
    ENDED = b"E"
    SENDING = b"B"
    SETTLED = b"A"
    RECOVERED = b"R"


_KINDS: Final = {kind.value: kind for kind in Kind}


class Record(NamedTuple):
    """A sound record.

    Attributes:
        kind: What it says.
        offset: Where its payload begins in the segment.
        payload: The rest is the journal's.
    """

    kind: Kind
    offset: int
    payload: bytes


class Damage(NamedTuple):
    """Bytes that make no record.

    Attributes:
        offset: Where they begin.
        length: How many.
    """

    offset: int
    length: int


def pack(kind: Kind, payload: bytes) -> bytes:
    """A record's bytes."""
    check = crc32(payload, crc32(_CHECKED.pack(kind.value, len(payload))))
    return _HEADER.pack(_MAGIC, kind.value, len(payload), check) + payload


def unpack(data: bytes, offset: int = 0) -> Record | None:
    """The record that begins at ``offset``; None if there is no sound one."""
    if len(data) - offset < HEADER_SIZE:
        return None
    magic, code, length, check = _HEADER.unpack_from(data, offset)
    start = offset + HEADER_SIZE
    if magic != _MAGIC or code not in _KINDS or length > len(data) - start:
        return None
    payload = data[start : start + length]
    if crc32(payload, crc32(_CHECKED.pack(code, length))) != check:
        return None
    return Record(_KINDS[code], start, payload)


def scan(data: bytes) -> Iterator[Record | Damage]:
    """Every sound record of a segment; what is between them comes as one :class:`Damage` a gap."""
    at = 0
    while at < len(data):
        record = unpack(data, at)
        if record is not None:
            yield record
            at = record.offset + len(record.payload)
        else:
            end = _next_record(data, at + 1)
            yield Damage(at, end - at)
            at = end


def _next_record(data: bytes, start: int) -> int:
    at = data.find(_MAGIC, start)
    while at >= 0 and unpack(data, at) is None:
        at = data.find(_MAGIC, at + 1)
    return len(data) if at < 0 else at
