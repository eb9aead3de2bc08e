"""Check of the directory where the command keeps what outlives it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from holodeck.cli.doctor.findings import Finding, bad, good, note
from holodeck.cli.state import state_directory
from holodeck.errors import SettingError

__all__ = ["check_state"]

_NAME: Final = "state directory"
_TRIED: Final = 4096
"""Bytes that are written and removed again: less than the smallest segment of a queue, more than a file system keeps beside a file."""
_ENOUGH: Final = 16 * 1024 * 1024
"""Free bytes below which the queue will soon have no room."""
_ELSEWHERE: Final = "set HOLODECK_STATE_DIR to a directory you may write to"


def check_state(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether what was typed and spans that wait can be kept. Nothing is made: where there is no directory yet, whether one could be."""
    path = Path()
    try:
        path = state_directory(environ)
        yield _existing(path) if os.path.lexists(path) else _missing(path)
    except SettingError as error:
        yield bad(_NAME, error.message)
    except OSError as error:
        yield bad(_NAME, f"{path}: cannot be looked at ({error.strerror})", _ELSEWHERE)


def _existing(path: Path) -> Finding:
    if not path.is_dir():
        return bad(_NAME, f"{path} is no directory", f"remove it, or {_ELSEWHERE}")
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(_TRIED))
            file.flush()
    except OSError as error:
        full = "make room on this disk, or " if shutil.disk_usage(path).free < _ENOUGH else ""
        return bad(_NAME, f"{path}: cannot be written to ({error.strerror})", full + _ELSEWHERE)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        return note(_NAME, f"{path}: others may write to it (mode {mode:04o})", fix=f"chmod 700 {path}")
    return _room(path, f"{path} can be written to (mode {mode:04o}")


def _missing(path: Path) -> Finding:
    above = next(parent for parent in path.parents if os.path.lexists(parent))
    if not above.is_dir():
        return bad(_NAME, f"{path} cannot be made: {above} is no directory", _ELSEWHERE)
    if not os.access(above, os.W_OK | os.X_OK):
        return bad(_NAME, f"{path} cannot be made: {above} may not be written to", _ELSEWHERE)
    return _room(above, f"{path} will be made when it is needed (mode 0700")


def _room(path: Path, what: str) -> Finding:
    free = shutil.disk_usage(path).free
    found = f"{what}; {free / 1_000_000:,.0f} MB free)"
    return good(_NAME, found) if free >= _ENOUGH else note(_NAME, found, fix=f"make room on this disk, or {_ELSEWHERE}")
