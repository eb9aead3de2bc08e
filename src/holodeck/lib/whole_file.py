"""Writing a file so that nobody ever finds half of it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write ``text``, in UTF-8: at any moment ``path`` holds what it held before, or all of it.

    Links are followed, and what is no regular file (``/dev/stdout``) is written through.

    Args:
        path: The file; its directory exists.
        text: What it is to hold.
        private: Only its owner may read it; otherwise it keeps its permissions.

    Raises:
        OSError: It cannot be written, and is as it was.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666), "w", encoding="utf-8") as file:
            file.write(text)
        if target.exists() and not private:
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
