"""Standard output while a prompt stands at its end: whole lines go above the prompt."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from holodeck.lib.validation import terminal_safe

__all__ = ["AboveWriter", "GatedWriter"]


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
        """Keep lines for :meth:`take`, and write the rest in the end. ``notify`` is called by the thread that wrote some."""
        with self._lock:
            self._notify = notify
        try:
            yield
        finally:
            with self._lock:
                rest, self._parts, self._notify = "".join(self._parts), [], None
            self.file.write(rest)
            self.file.flush()


class GatedWriter(io.TextIOBase):
    """Standard output for everybody else in the process, such as a tool that prints: nothing of it acts on the terminal.

    Args:
        writer: Where to.
    """

    def __init__(self, writer: AboveWriter) -> None:
        self._writer = writer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The terminal's."""
        return self._writer.encoding

    def fileno(self) -> int:
        """The terminal's."""
        return self._writer.fileno()

    def isatty(self) -> bool:
        """Whether there is a terminal."""
        return self._writer.isatty()

    def writable(self) -> bool:
        """It always is."""
        return True

    @property
    def buffer(self) -> io.RawIOBase:
        """The same for those who write bytes."""
        return _Bytes(self)

    def write(self, text: str) -> int:
        """Hand on what is harmless in ``text``."""
        self._writer.write(terminal_safe(text))
        return len(text)


class _Bytes(io.RawIOBase):
    def __init__(self, writer: GatedWriter) -> None:
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._writer.write(bytes(data).decode("utf-8", "replace"))
