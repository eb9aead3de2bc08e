"""Where queues stand on disk: one directory a process, held by a lock for as long as the process lives.

``$HOLODECK_STATE_DIR/spool/<id>/`` holds ``lock``, ``meta.json`` and segments. A directory whose lock can be taken belongs to nobody: its
process has ended, and whoever takes the lock may adopt what is left. The lock is asked, never a process id: those are used again.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any, Final

import platformdirs

from holodeck.errors import SettingError
from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.spool.files import read_file

__all__ = [
    "RESERVE",
    "Destination",
    "Meta",
    "SpoolSettings",
    "directories",
    "is_being_made",
    "last_alive",
    "make_directory",
    "read_meta",
    "remove_directory",
    "spool_settings",
    "touch",
    "try_lock",
]

FORMAT: Final = 1
RESERVE: Final = "reserve"
"""Name of a small file that is given up when the disk is full, so that a delivery can still be written down."""
_LOCK: Final = "lock"
_META: Final = ("meta.json", "meta.copy.json")  # what they say cannot be told from the segments
_NEW: Final = ".new-"
_DEFAULT_BYTES: Final = 256 * 1024 * 1024
_DEFAULT_AGE: Final = 7 * 24 * 3600
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True)
class SpoolSettings:
    """Where queues are kept, and how much of them.

    Attributes:
        root: Directory of all queues.
        max_bytes: Most bytes of all queues together.
        max_age: Seconds after which what was not delivered is given up.
    """

    root: Path
    max_bytes: int = _DEFAULT_BYTES
    max_age: float = _DEFAULT_AGE

    @property
    def segment_bytes(self) -> int:
        """Size of a segment: a megabyte, less if few fit."""
        return max(min(1024 * 1024, self.max_bytes // 8), 16 * 1024)


def spool_settings(environ: Mapping[str, str]) -> SpoolSettings:
    """``HOLODECK_STATE_DIR``, ``HOLODECK_SPOOL_MAX_BYTES`` and ``HOLODECK_SPOOL_MAX_AGE`` (seconds, or with ``s``, ``m``, ``h``, ``d``).

    Raises:
        SettingError: A limit is not a positive number.
    """
    state = environ.get("HOLODECK_STATE_DIR") or platformdirs.user_state_dir("holodeck")
    max_bytes = _number(environ, "HOLODECK_SPOOL_MAX_BYTES", _DEFAULT_BYTES, {})
    max_age = _number(environ, "HOLODECK_SPOOL_MAX_AGE", _DEFAULT_AGE, _UNITS)
    return SpoolSettings(Path(state).expanduser().absolute() / "spool", max_bytes, max_age)


def _number(environ: Mapping[str, str], name: str, default: int, units: Mapping[str, int]) -> int:
    text = environ.get(name, "").strip().lower()
    if not text:
        return default
    unit = units.get(text[-1], 0)
    digits = text[:-1] if unit else text
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 16 and int(digits)):
        allowed = "a whole number, e.g. 604800, or one with a unit: 90m, 12h, 7d" if units else "a whole number of bytes, e.g. 268435456"
        raise SettingError(f"{name} is not a limit: write {allowed}")
    return int(digits) * (unit or 1)


@dataclass(frozen=True)
class Destination:
    """Where spans are meant to go, without any secret.

    Attributes:
        url: Final URL.
        protocol: ``http/protobuf`` or ``grpc``.
        headers_sha256: SHA-256 of the sorted headers, in hex.
    """

    url: str
    protocol: str
    headers_sha256: str

    @classmethod
    def of(cls, target: OtlpTarget) -> Destination:
        """The destination that ``target`` is."""
        headers = json.dumps(sorted((name.lower(), value) for name, value in target.headers.items()))
        return cls(target.url, target.protocol, hashlib.sha256(headers.encode("utf-8", "surrogatepass")).hexdigest())


@dataclass(frozen=True)
class Meta:
    """What a directory says about itself.

    Attributes:
        destination: Where its spans go.
        resource: OTLP ``ResourceSpans`` without spans, encoded.
        created: Seconds since the epoch.
    """

    destination: Destination
    resource: bytes
    created: float


def make_directory(root: Path, meta: Meta) -> tuple[Path, int]:
    """A directory of our own below ``root`` and the descriptor of its lock.

    Raises:
        OSError: It cannot be made.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    new, path = root / f"{_NEW}{name}", root / name
    new.mkdir(mode=0o700)
    lock = -1
    try:
        lock = os.open(new / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for copy in _META:
            _write(new / copy, json.dumps(_as_json(meta)).encode())
        _write(new / RESERVE, bytes(4096))
        new.rename(path)  # locked before it can be seen
    except OSError:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(new, ignore_errors=True)
        raise
    return path, lock


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _as_json(meta: Meta) -> dict[str, Any]:
    to = meta.destination
    destination = {"url": to.url, "protocol": to.protocol, "headers_sha256": to.headers_sha256}
    return {"format": FORMAT, "created": meta.created, "destination": destination, "resource": base64.b64encode(meta.resource).decode()}


def read_meta(directory: Path) -> Meta | None:
    """What ``directory`` says about itself; None if that cannot be read."""
    return next((meta for copy in _META if (meta := _read_copy(directory / copy)) is not None), None)


def _read_copy(path: Path) -> Meta | None:
    try:
        values = json.loads(read_file(path))
        if values["format"] != FORMAT:
            return None
        to = values["destination"]
        destination = Destination(str(to["url"]), str(to["protocol"]), str(to["headers_sha256"]))
        return Meta(destination, base64.b64decode(values["resource"], validate=True), float(values["created"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError, binascii.Error):
        return None


def directories(root: Path, *, abandoned: bool = False) -> list[Path]:
    """The queues below ``root``, oldest first; ``abandoned``: what never became one, too."""
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for entry in root.iterdir():
            with contextlib.suppress(OSError):
                if (abandoned or not entry.name.startswith(".")) and (entry / _LOCK).is_file():
                    found.append((entry.stat().st_mtime, entry))
    return [path for _, path in sorted(found)]


def is_being_made(directory: Path) -> bool:
    """Whether ``directory`` has no queue yet; its lock may be free for a moment although its process lives."""
    return directory.name.startswith(_NEW)


def try_lock(directory: Path) -> int | None:
    """The descriptor of ``directory``'s lock, now ours; None while its process lives."""
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:  # not removed by another adopter between the two calls
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def touch(lock: int) -> None:
    """Note that the process lives now."""
    with contextlib.suppress(OSError):
        os.utime(lock)


def last_alive(directory: Path, lock: int) -> float:
    """Seconds since the epoch at which the process that had ``directory`` was last known to live."""
    times = [os.fstat(lock).st_mtime]
    with contextlib.suppress(OSError):
        times += [entry.stat().st_mtime for entry in directory.iterdir() if entry.name.endswith(".seg")]
    return min(max(times), time())


def remove_directory(directory: Path) -> None:
    """Remove ``directory``: the segments first, since the last one says that all are settled, and the lock last."""
    with contextlib.suppress(OSError):
        for entry in sorted(directory.iterdir()):  # numbers come before names
            if entry.name != _LOCK:
                with contextlib.suppress(OSError):
                    entry.unlink()
        (directory / _LOCK).unlink()
        directory.rmdir()
