"""What was typed, across sessions: a file that only its owner can read, without anything that redaction would hide."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History, InMemoryHistory

from holodeck.cli.state import state_directory

__all__ = ["TypedHistory", "history_for", "history_path"]

_LARGEST: Final = 1024 * 1024
"""Bytes of the file's end that are read; a file of twice that is cut down to it."""
_MOST: Final = 5_000
"""Entries that are looked at: each key looks through them for a suggestion, and each key of a search more than once."""


def history_path(environ: Mapping[str, str]) -> Path:
    """Where what was typed is kept."""
    return state_directory(environ) / "history.jsonl"


def history_for(environ: Mapping[str, str], redact: Callable[[], Callable[[str], str]], *, keep: bool) -> History:
    """The history of a terminal.

    Args:
        environ: ``HOLODECK_HISTORY=off`` keeps nothing, ``HOLODECK_STATE_DIR`` says where.
        redact: Makes what hides secrets; called when the first entry is to be written.
        keep: False keeps nothing, whatever the environment says.
    """
    if not keep or environ.get("HOLODECK_HISTORY", "").strip().lower() in ("off", "0", "no", "false"):
        return InMemoryHistory()
    return TypedHistory(history_path(environ), redact)


class TypedHistory(History):
    """One JSON string a line, the oldest first. A file that cannot be read or written is a history of this session only.

    Args:
        path: The file; its directory is made when it is needed.
        redact: Makes what hides secrets in a text. An entry that it would change is remembered for this session, and not written.
    """

    def __init__(self, path: Path, redact: Callable[[], Callable[[str], str]]) -> None:
        super().__init__()
        self._path, self._make_redact = path, redact
        self._redact: Callable[[str], str] | None = None

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest first."""
        entries = []
        for line in self._tail().split(b"\n"):
            with suppress(ValueError, RecursionError):  # half a line at the beginning, or what somebody else wrote
                entry = json.loads(line)
                entries += [entry] if isinstance(entry, str) else []
        return reversed(entries[-_MOST:])

    def store_string(self, string: str) -> None:
        """Write an entry, unless it holds a secret."""
        self._redact = self._redact or self._make_redact()
        if self._redact(string) != string:
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._cut_down()
            self._append(json.dumps(string).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            if (size := os.fstat(descriptor).st_size) and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line  # behind half an entry, where somebody was cut off
            os.write(descriptor, line)  # at once: other terminals append to the same file
        finally:
            os.close(descriptor)

    def _tail(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _LARGEST, 0))
                return file.read()
        except OSError:
            return b""

    def _cut_down(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < 2 * _LARGEST:
            return
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._tail().partition(b"\n")[2])
        new.replace(self._path)
