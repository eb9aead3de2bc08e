"""Runs the installed ``holodeck`` command as a user would: through pipes here, in a terminal with ``Terminal``."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from support.home import HOLODECK, Home, command_line
from support.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["HOLODECK", "Home", "Process", "Result", "Terminal", "run"]


@dataclass(frozen=True)
class Result:
    """How a command ended.

    Attributes:
        code: Exit code; negative for the signal that ended it.
        out: Standard output. Bytes that are no UTF-8 become lone surrogates.
        err: Standard error, likewise.
        cpu: User and system CPU in seconds, children that it waited for included.
        duration: Wall-clock seconds.
    """

    code: int
    out: str
    err: str
    cpu: float
    duration: float


def run(
    args: Sequence[str | os.PathLike[str]],
    stdin: bytes | str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    home: Path | None = None,
    program: Sequence[str | os.PathLike[str]] | None = None,
) -> Result:
    """Run ``holodeck ARGS`` to its end; arguments as for ``Process``.

    Raises:
        AssertionError: It took longer than ``timeout`` seconds, and was killed.
    """
    with Process(args, env=env, cwd=cwd, home=home, program=program, stdin=stdin is not None) as process:
        return process.wait(stdin, timeout=timeout)


class Process:
    """A running command with pipes, for tests that act while it runs.

    Args:
        args: Arguments of the command.
        env: Variables on top of a clean environment.
        cwd: Working directory; by default the command's temporary home.
        home: A home directory that outlives the command.
        program: Another program than ``holodeck``.
        stdin: Whether it gets a pipe; else ``/dev/null``.
    """

    def __init__(
        self,
        args: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        home: Path | None = None,
        program: Sequence[str | os.PathLike[str]] | None = None,
        stdin: bool = True,
    ) -> None:
        self._home = Home(home)
        self._started = time.monotonic()
        try:
            self._process = _MeasuredPopen(
                command_line(args, program),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._home.environment(env or {}),
                cwd=cwd or self._home.path,
            )
        except BaseException:
            self._home.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, text: str | bytes) -> None:
        """Write to its standard input, which stays open."""
        assert self._process.stdin is not None, "it was started without standard input"
        self._process.stdin.write(_encoded(text))
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, stdin: str | bytes | None = None, timeout: float = 60) -> Result:
        """Write ``stdin``, close it, and wait for the end.

        Raises:
            AssertionError: It took longer than ``timeout`` seconds, and was killed.
        """
        try:
            out, err = self._process.communicate(None if stdin is None else _encoded(stdin), timeout=timeout)
        except subprocess.TimeoutExpired as late:
            self._process.kill()
            out, err = self._process.communicate()
            raise AssertionError(f"not done after {timeout} s\nstdout: {out!r}\nstderr: {err!r}") from late
        return Result(self._process.returncode, _decoded(out), _decoded(err), self._process.cpu, time.monotonic() - self._started)

    def close(self) -> None:
        """Kill it if it still runs, and remove its home."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
        self._home.close()


class _MeasuredPopen(subprocess.Popen[bytes]):
    """Knows its child's CPU time; what ``getrusage`` says of all children would mix tests that run at once."""

    cpu = 0.0

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        try:
            pid, status, usage = os.wait4(self.pid, wait_flags)
        except ChildProcessError:
            return self.pid, 0
        if pid == self.pid:
            self.cpu = usage.ru_utime + usage.ru_stime
        return pid, status


def _encoded(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
