"""A command in a real pseudo-terminal, read through a terminal emulator: tests see what a user would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal as signals
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyte

from support.home import Home, command_line
from support.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Terminal"]

_END_SECONDS = 2.0
_KEYS = {
    "enter": "\r",
    "tab": "\t",
    "shift-tab": "\x1b[Z",
    "escape": "\x1b",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "page-up": "\x1b[5~",
    "page-down": "\x1b[6~",
}
_LAUNCHER = "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes the pseudo-terminal the controlling one. A child does it, since forking this process, with its threads, is not safe."""


class Terminal:
    """A command on a pseudo-terminal.

    A thread reads what it writes as soon as it comes (and answers its questions about the cursor), so it never blocks on a full buffer.

    Args:
        args: Arguments of ``holodeck``.
        columns: Width.
        lines: Height.
        env: Variables on top of a clean environment.
        cwd: Working directory; by default the command's temporary home.
        home: A home directory that outlives the command.
        program: Another program than ``holodeck``.
    """

    def __init__(
        self,
        args: Sequence[str | os.PathLike[str]] = (),
        *,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        home: Path | None = None,
        program: Sequence[str | os.PathLike[str]] | None = None,
    ) -> None:
        self._home = Home(home)
        self._master, slave = pty.openpty()
        self._wake_reader, self._wake_writer = os.pipe()
        self._emulator = Screen(columns, lines, self.type)
        self._stream = pyte.ByteStream(self._emulator)
        self._changed = threading.Condition()
        self._raw = bytearray()
        self._ended = False
        self._closed = False
        self._set_size(columns, lines)
        try:
            self._process = self._start(command_line(args, program), slave, self._home.environment(env or {}), cwd or self._home.path)
        except BaseException:
            self._release()
            raise
        finally:
            os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The command's process id."""
        return self._process.pid

    @property
    def screen(self) -> list[str]:
        """The lines that are visible now, without the blanks at their ends."""
        with self._changed:
            return self._emulator.rows

    @property
    def history_text(self) -> str:
        """Everything that scrolled by, and the screen."""
        with self._changed:
            return self._emulator.text

    @property
    def raw(self) -> bytes:
        """All bytes that the command wrote."""
        with self._changed:
            return bytes(self._raw)

    @property
    def cpu(self) -> float:
        """User and system CPU seconds of the running command so far (Linux only)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def type(self, text: str) -> None:
        """Type as a user would; nothing is added."""
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(self._master, data) :]

    def key(self, name: str) -> None:
        """Press a key: ``enter``, ``tab``, ``up`` …, ``ctrl-a`` to ``ctrl-z``."""
        control = re.fullmatch(r"ctrl-([a-z])", name)
        self.type(chr(ord(control[1]) - 96) if control else _KEYS[name])

    def line(self, text: str) -> None:
        """Type a line and press Enter."""
        self.type(text)
        self.key("enter")

    def wait_for(self, what: str | re.Pattern[str], timeout: float = 10.0, *, count: int = 1) -> None:
        """Wait until a text, or a regular expression, stands ``count`` times on the screen and in what scrolled by.

        A line that the terminal wrapped counts as one line as well.

        Raises:
            AssertionError: It did not appear; the message shows the screen.
        """
        pattern = re.compile(re.escape(what)) if isinstance(what, str) else what
        with self._changed:
            if not self._changed.wait_for(lambda: self._shows(pattern, count) or self._ended, timeout) or not self._shows(pattern, count):
                why = "the command has ended" if self._ended else f"not within {timeout} s"
                raise AssertionError(f"{pattern.pattern!r} ×{count} did not appear ({why}):\n{self.history_text}")

    def resize(self, columns: int, lines: int) -> None:
        """Change the window's size; the command gets SIGWINCH."""
        with self._changed:
            self._emulator.resize(lines, columns)
        self._set_size(columns, lines)

    def signal(self, number: int) -> None:
        """Send the command a signal."""
        self._process.send_signal(number)

    def hang_up(self) -> None:
        """Close the window: the command loses its terminal, and gets SIGHUP from the system."""
        os.write(self._wake_writer, b"x")
        self._reader.join()
        os.close(self._master)
        self._master = -1

    def wait_exit(self, timeout: float = 10.0) -> int:
        """Wait for the end of the command and of its output.

        Returns:
            Its exit code; negative for the signal that ended it.

        Raises:
            AssertionError: It still runs after ``timeout`` seconds; the message shows the screen.
        """
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {timeout} s:\n{self.history_text}") from late
        self._reader.join(_END_SECONDS)
        return code

    def close(self, grace: float = _END_SECONDS) -> None:
        """Hang up on the command if it still runs, kill it after ``grace`` seconds, and release everything."""
        if self._closed:
            return
        self._closed = True
        if self._process.poll() is None:
            self._process.send_signal(signals.SIGHUP)
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        os.write(self._wake_writer, b"x")
        self._reader.join()
        self._release()

    @staticmethod
    def _start(command: list[str], tty: int, env: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
        return subprocess.Popen(launcher, stdin=tty, stdout=tty, stderr=tty, env=env, cwd=cwd, start_new_session=True)

    def _read(self) -> None:
        sources = [self._master, self._wake_reader]  # select, since poll knows no terminals on macOS
        while self._wake_reader not in select.select(sources, [], [])[0] and self._take():
            pass
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: nobody holds the other end any more
            data = b""
        with self._changed:
            self._raw += data
            self._stream.feed(data)
            self._changed.notify_all()
        return bool(data)

    def _shows(self, pattern: re.Pattern[str], count: int) -> bool:
        emulator = self._emulator
        return any(len(pattern.findall(text)) >= count for text in (emulator.text, emulator.padded, emulator.unwrapped))

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _release(self) -> None:
        for fd in (self._master, self._wake_reader, self._wake_writer):
            if fd >= 0:
                os.close(fd)
        self._home.close()
