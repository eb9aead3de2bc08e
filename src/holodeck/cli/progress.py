"""What takes long, on its way from whoever does it to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]


class Progress:
    """Remembers the last line, and hands each one on while there is a listener.

    Attributes:
        line: The last line, "" before the first.
        listener: Called with each further line.
    """

    def __init__(self) -> None:
        self.line = ""
        self.listener: Callable[[str], None] | None = None

    def __call__(self, line: str) -> None:
        """Something that takes long has begun or ended."""
        self.line = line
        if self.listener is not None:
            self.listener(line)
