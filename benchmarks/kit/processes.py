"""Runs programs and says what they cost: CPU of the process and the children that it waited for, wall time, memory."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "clean_environment", "first_paint", "run", "serving"]

_TICKS = os.sysconf("SC_CLK_TCK")
_ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[@-Z\\-_]|\][^\x07]*\x07)")


@dataclass(frozen=True)
class Cost:
    """What a run cost.

    Attributes:
        cpu: Seconds, user and system, all threads, children included.
        wall: Seconds.
        memory: Largest resident set in MB.
        code: Exit code.
        out: Standard output.
        err: Standard error.
        after: Seconds from the end of standard output's last line to the end of the process.
    """

    cpu: float
    wall: float
    memory: float
    code: int
    out: str
    err: str
    after: float = 0.0


def clean_environment(home: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which nothing of the user's own configuration counts, and nothing reports home."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "NO_PROXY": "*", "TERM": "xterm-256color"}
    return {**kept, **quiet, "HOME": home, **(more or {})}


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout: float = 120,
) -> Cost:
    """Run ``command`` to its end.

    Raises:
        TimeoutError: It took longer than ``timeout`` seconds, and was killed.
    """
    with tempfile.TemporaryDirectory(prefix="holodeck-bench-") as home, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        process = subprocess.Popen(command, env=clean_environment(home, env), cwd=cwd or home, **pipes)  # type: ignore[call-overload]
        killer = threading.Timer(timeout, process.kill)
        killer.start()
        try:
            process.stdin.write(stdin.encode())
            process.stdin.close()
            lines, said = [], start
            for line in process.stdout:
                lines.append(line)
                said = time.monotonic()
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            late = not killer.is_alive()
            killer.cancel()
        end = time.monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if late:
            raise TimeoutError(f"{command[0]}: not done after {timeout} s")
        cpu, scale = usage.ru_utime + usage.ru_stime, 2**20 if sys.platform == "darwin" else 2**10
        out, err = b"".join(lines).decode(errors="replace"), errors.read().decode(errors="replace")
        return Cost(cpu, end - start, usage.ru_maxrss / scale, process.returncode, out, err, end - said)


def first_paint(command: Sequence[str], marker: str, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """Run ``command`` in a terminal until ``marker`` (a regular expression) is on the screen, say what that cost, and end it.

    Raises:
        TimeoutError: It is not there after a minute; the message ends with what was.
    """
    with tempfile.TemporaryDirectory(prefix="holodeck-bench-") as home:
        start = time.monotonic()
        pid, terminal = pty.fork()
        if pid == 0:
            termios.tcsetwinsize(0, (40, 120))
            os.chdir(cwd or home)
            os.execve(command[0], list(command), clean_environment(home, env))
        try:
            _wait_for(terminal, re.compile(marker.encode(), re.DOTALL), start + 60)
            wall = time.monotonic() - start
            os.kill(pid, signal.SIGSTOP)  # what it loads behind its prompt does not count
            cpu, memory = _tree(pid)
        finally:
            for number in (signal.SIGKILL, signal.SIGCONT):
                os.kill(pid, number)
            os.waitpid(pid, 0)
            os.close(terminal)
    return Cost(cpu, wall, memory, 0, "", "")


def _wait_for(terminal: int, marker: re.Pattern[bytes], deadline: float) -> None:
    screen = b""
    while not marker.search(_ESCAPES.sub(b"", screen)):
        if not select.select([terminal], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise TimeoutError(f"no {marker.pattern!r} in {screen[-300:]!r}")
        try:
            data = os.read(terminal, 65536)
        except OSError as error:
            raise TimeoutError(f"ended without {marker.pattern!r}: {screen[-300:]!r}") from error
        screen += data
        if b"\x1b[6n" in data:
            os.write(terminal, b"\x1b[1;1R")  # where the cursor is: some prompts ask the terminal and wait


def _tree(pid: int) -> tuple[float, float]:
    """CPU seconds and resident MB of a process and its children."""
    cpu = memory = 0.0
    for process in [pid, *_children(pid)]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        cpu += sum(int(ticks) for ticks in fields[11:15]) / _TICKS
        memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return cpu, memory


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found


@contextmanager
def serving(server: str, *options: str) -> Iterator[str]:
    """Run a module of ``servers`` in a process of its own; gives its base URL."""
    path = Path(__file__).parent.parent / "servers" / f"{server}.py"
    process = subprocess.Popen([sys.executable, str(path), *options], stdout=subprocess.PIPE, text=True)
    try:
        port = process.stdout.readline().strip() if process.stdout else ""
        if not port:
            raise RuntimeError(f"{path} does not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
