"""Takes over what ended processes have left: their spans, and the ones that were open when they died."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from holodeck.telemetry.spool.contents import Contents, read_contents
from holodeck.telemetry.spool.directories import (
    Destination,
    Meta,
    SpoolSettings,
    directories,
    last_alive,
    read_meta,
    remove_directory,
    try_lock,
)
from holodeck.telemetry.spool.encoding import crashed
from holodeck.telemetry.spool.files import Location, SegmentFiles
from holodeck.telemetry.spool.journal import KEY_SIZE, Journal
from holodeck.telemetry.spool.records import unpack

__all__ = ["adopt", "adopt_all", "adoptable"]


def adoptable(settings: SpoolSettings, destination: Destination) -> list[Path]:
    """The directories with spans for ``destination``, those of living processes among them."""
    metas = ((path, read_meta(path)) for path in directories(settings.root))
    return [path for path, meta in metas if meta is not None and meta.destination == destination]


def adopt_all(
    settings: SpoolSettings, destination: Destination, on_drop: Callable[[int, str], None], on_notice: Callable[[str], None]
) -> Iterator[Journal]:
    """Adopt the directories for ``destination`` whose processes have ended, one after the other."""
    for path in adoptable(settings, destination):
        journal = adopt(path, settings, on_drop, on_notice)
        if journal is not None:
            yield journal


def adopt(
    directory: Path, settings: SpoolSettings, on_drop: Callable[[int, str], None], on_notice: Callable[[str], None]
) -> Journal | None:
    """Take ``directory`` over; None if its process lives, if it cannot be written, or if it is empty, in which case it is removed."""
    lock = try_lock(directory)
    if lock is None:
        return None
    meta, contents = read_meta(directory), read_contents(directory)
    if contents.damaged:
        saved = len(contents.waiting) + len(contents.opened)
        on_notice(f"the span queue {directory} was damaged: {contents.damaged} bytes are lost, {saved} spans are saved")
    if meta is None or not (contents.waiting or contents.opened):
        _leave(directory, lock, remove=meta is not None)
        return None
    return _journal(directory, lock, meta, contents, settings, on_drop, on_notice)


def _leave(directory: Path, lock: int, *, remove: bool) -> None:
    if remove:
        remove_directory(directory)
    os.close(lock)


def _journal(
    directory: Path,
    lock: int,
    meta: Meta,
    contents: Contents,
    settings: SpoolSettings,
    on_drop: Callable[[int, str], None],
    on_notice: Callable[[str], None],
) -> Journal | None:
    end = contents.last_alive or int(last_alive(directory, lock) * 1e9)
    files = SegmentFiles(directory, settings.segment_bytes)
    journal = Journal(meta, directory=directory, lock=lock, files=files, on_drop=on_drop, on_notice=on_notice)
    journal.restore(contents.waiting, contents.opened, contents.settled, contents.in_flight)
    if not journal.recovered(end):  # what is delivered could not be written down, and would be sent again and again
        journal.close()
        return None
    for key, location in contents.opened.items():
        _end_as_crashed(journal, files, key, location, end)
    return journal


def _end_as_crashed(journal: Journal, files: SegmentFiles, key: bytes, location: Location, end: int) -> None:
    try:
        record = unpack(files.read(location))
    except OSError:
        record = None
    span = crashed(record.payload[KEY_SIZE:], end) if record is not None else None
    if span is not None:
        journal.ended(key, span)
    else:
        journal.forget(key)
