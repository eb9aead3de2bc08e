"""Spans that a collector does not accept: set aside, never sent again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from time import time
from typing import Final

from holodeck.telemetry.spool.directories import SpoolSettings
from holodeck.telemetry.spool.files import read_file
from holodeck.telemetry.spool.records import Kind, Record, pack, scan

__all__ = ["Aside"]

_NAME: Final = "rejected"
_SHARE: Final = 16


class Aside:
    """The directory ``rejected`` beside the queues; at most a sixteenth of their bytes, and no older than they may be."""

    def __init__(self, settings: SpoolSettings) -> None:
        self.directory = settings.root / _NAME
        self._settings = settings

    def put(self, span: bytes) -> None:
        """Keep a span (``ScopeSpans``), if there is room."""
        with contextlib.suppress(OSError):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._expire()
            record = pack(Kind.ENDED, span)
            if self.size() + len(record) > self._settings.max_bytes // _SHARE:
                return
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.directory / f"{int(time()) // 86_400}.seg", flags, 0o600)
            try:
                os.write(descriptor, record)
            finally:
                os.close(descriptor)

    def _expire(self) -> None:
        for path in self._files():
            if path.stat().st_mtime < time() - self._settings.max_age:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return [path for path in self.directory.iterdir() if path.suffix == ".seg"]
        return []

    def size(self) -> int:
        """Bytes that are set aside."""
        with contextlib.suppress(OSError):
            return sum(path.stat().st_size for path in self._files())
        return 0

    def spans(self) -> list[bytes]:
        """The spans that are set aside."""
        spans: list[bytes] = []
        for path in self._files():
            with contextlib.suppress(OSError):
                spans += [found.payload for found in scan(read_file(path)) if isinstance(found, Record)]
        return spans
