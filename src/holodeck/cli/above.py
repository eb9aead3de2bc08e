"""Standard output while a prompt stands at its end: whole lines go above the prompt."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["AboveWriter"]


class AboveWriter(io.TextIOBase):
    """A text stream before another one, which a screen can come between. May be written to from any thread.

    Args:
        file: The stream itself.
    """

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._parts: list[str] = []
        self._notify: Callable[[], None] | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's."""
        return self.file.encoding

    def fileno(self) -> int:
        """The stream's."""
        return self.file.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self.file.isatty()

    def writable(self) -> bool:
        """It always is."""
        return True

    def write(self, text: str) -> int:
        """Hand ``text`` on: at once, or to whoever draws the screen."""
        with self._lock:
            notify = self._notify
            if notify is not None:
                self._parts.append(text)
        if notify is None:
            self.file.write(text)
            self.file.flush()
        elif "\n" in text:
            notify()
        return len(text)

    def take(self) -> str:
        """The whole lines that wait; a line that has not ended goes on waiting."""
        with self._lock:
            lines, end, rest = "".join(self._parts).rpartition("\n")
            self._parts = [rest] if rest else []
        return lines + end

    @contextmanager
    def held(self, notify: Callable[[], None]) -> Iterator[None]:
        """Keep lines for :meth:`take`; in the end write the rest. ``notify`` is called when there are some, by the thread that wrote them."""
        with self._lock:
            self._notify = notify
        try:
            yield
        finally:
            with self._lock:
                rest, self._parts, self._notify = "".join(self._parts), [], None
            self.file.write(rest)
            self.file.flush()
