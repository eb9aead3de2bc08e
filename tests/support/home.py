"""An environment of its own for each command, so that nothing of the developer's machine is read or written."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HOLODECK", "Home", "command_line"]

HOLODECK = Path(sys.executable).parent / "holodeck"
"""The installed console script."""

_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
_FIXED = {"LANG": "C.UTF-8", "TERM": "xterm-256color"}


class Home:
    """A home directory; a temporary one ends with ``close``.

    Args:
        path: A directory to use and to keep, where several commands share one.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="home-") if path is None else None
        self.path = path or Path(self._temporary.name if self._temporary else "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """A clean environment: no keys, no ``OTEL_*``, no ``PYTHON*``; ``extra`` comes on top."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        places = {
            "HOME": self.path,
            **{f"XDG_{kind.upper()}_HOME": self.path / f".{kind}" for kind in ("config", "data", "cache", "state")},
        }
        return {**kept, **_FIXED, **{name: str(place) for name, place in places.items()}, **extra}

    def close(self) -> None:
        """Remove a temporary home."""
        if self._temporary:
            self._temporary.cleanup()


def command_line(args: Sequence[str | os.PathLike[str]], program: Sequence[str | os.PathLike[str]] | None) -> list[str]:
    """The whole command: ``holodeck`` with ``args``, or another program with them."""
    return [os.fspath(word) for word in (*(program or [HOLODECK]), *args)]
