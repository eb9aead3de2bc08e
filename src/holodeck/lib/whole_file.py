"""Writing a file so that nobody ever finds half of it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["write_whole"]

_STANDARD: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


def write_whole(path: Path, text: str | Iterable[str], *, private: bool = False) -> None:
    """Write ``text``, in UTF-8: at any moment ``path`` holds what it held before, or all of it.

    Links are followed. What is no regular file is written through, and so is an open file (``/dev/stdout``, ``/dev/fd/3``): what stands in
    it already stays.

    Args:
        path: The file; its directory exists.
        text: What it is to hold, whole or in pieces; where a piece cannot be made, the file is as it was, too.
        private: Only its owner may read it; otherwise it keeps its permissions.

    Raises:
        OSError: It cannot be written, and is as it was.
    """
    pieces = (text,) if isinstance(text, str) else text
    descriptor, mode = _descriptor(path), _mode(path)
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
            file.writelines(pieces)
    elif mode is not None and not stat.S_ISREG(mode):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    else:
        kept = None if mode is None else stat.S_IMODE(mode)
        _replace(Path(os.path.realpath(path)), pieces, 0o600 if private else kept)  # resolve() raises what is no OSError for some links


def _descriptor(path: Path) -> int | None:
    """The open file that ``path`` stands for; None if it is a name like any other."""
    found = _DESCRIPTOR.fullmatch(str(path))
    return int(found.group(1)) if found else _STANDARD.get(str(path))


def _mode(path: Path) -> int | None:
    """What ``path`` is and who may read it; None if there is nothing yet."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _replace(target: Path, pieces: Iterable[str], mode: int | None) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(part, flags, 0o666 if mode is None else mode), "w", encoding="utf-8") as file:
            file.writelines(pieces)
        if mode is not None:
            part.chmod(mode)  # the umask may have taken some of it
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
