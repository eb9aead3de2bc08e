"""How quick the shell is: key to echo while an answer streams and while Semantic Kernel loads, and CPU per streamed line.

``python benchmarks/shell_latency.py [--json]`` drives the real command in a pseudo-terminal. All times are wall-clock milliseconds of this
machine as it is; CPU is that of the command. Needs Linux.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

_KEYS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # no answer here has a capital
_PROMPT = b"?2004h"  # bracketed paste is switched on when the prompt is drawn
_LIMITS = {"streaming_p95": 20.0, "loading_p95": 25.0, "loading_worst": 350.0, "cpu_ratio": 12.0}


class Shell:
    """``holodeck chat`` in a pseudo-terminal of 100 × 30."""

    def __init__(self, agent: Path, home: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        command = [str(Path(sys.executable).parent / "holodeck"), "chat", str(agent), "--no-history"]
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "OPENAI_API_KEY": "none"}
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        os.close(slave)
        self.out = b""

    def read(self, seconds: float) -> bytes:
        """What comes next, at most ``seconds`` later."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        data = os.read(self.master, 65536)
        self.out += data
        return data

    def wait_for(self, what: bytes, seconds: float = 60) -> None:
        """Read until ``what`` has come."""
        start, deadline = len(self.out), time.monotonic() + seconds
        while what not in self.out[max(start - len(what), 0) :]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what!r} did not come: {self.out[-500:]!r}")
            self.read(0.5)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def echo(self, key: str) -> float:
        """Press a key; milliseconds until it stands on the screen."""
        start = time.perf_counter()
        self.type(key)
        seen = b""
        while key.encode() not in seen:
            seen += self.read(5)
        return (time.perf_counter() - start) * 1000

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        while self.process.poll() is None:
            try:
                self.read(0.1)
            except OSError:
                break
        self.process.wait()
        os.close(self.master)


def _agent(directory: Path, model: dict[str, Any], replies: list[dict[str, Any]]) -> Path:
    directory.mkdir()
    (directory / "script.yaml").write_text(json.dumps({"replies": replies}), encoding="utf-8")
    path = directory / "agent.yaml"
    path.write_text(json.dumps({"name": "bench", "model": model}), encoding="utf-8")
    return path


def _markdown(lines: int) -> str:
    part = [
        "## a heading",
        "",
        "some *text* that goes on for a while, with `code` and **strong** words",
        "and a second line below it",
        "",
        "- an item",
        "- another item with a [link](http://example.invalid)",
        "",
        "```python",
        "def double(x: int) -> int:",
        '    """twice as much"""',
        "    return x + x",
        "```",
        "",
        "| a | b |",
        "| --- | --- |",
        "| 1 | 2 |",
        "",
        "1. first",
        "2. second",
    ]
    return "\n".join((part * (lines // len(part) + 1))[:lines])


def _keys(shell: Shell, seconds: float, between: float = 0.03) -> list[float]:
    times, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key in _KEYS:
            times.append(shell.echo(key))
            pause = time.monotonic() + between
            while (left := pause - time.monotonic()) > 0:
                shell.read(left)
        shell.type("\x15")  # clear the line
        shell.read(0.1)
    return times


def _figures(times: list[float]) -> dict[str, float]:
    return {
        "keys": len(times),
        "median": round(statistics.median(times), 1),
        "p95": round(statistics.quantiles(times, n=20)[-1], 1),
        "worst": round(max(times), 1),
    }


def streaming(directory: Path, seconds: float = 8.0) -> dict[str, float]:
    """Key to echo while an answer streams, 100 chunks a second."""
    text = _markdown(2000)
    model = {"provider": "scripted", "name": "s", "script": "script.yaml"}
    agent = _agent(directory / "streaming", model, [{"text": text, "chunks": 4000, "chunk_delay": 0.01, "repeat": True}])
    shell = Shell(agent, directory)
    try:
        shell.wait_for(_PROMPT)
        shell.type("hi\r")
        shell.wait_for(b"second line")
        return _figures(_keys(shell, seconds))
    finally:
        shell.close()


def loading(directory: Path, seconds: float = 3.0) -> dict[str, float]:
    """Key to echo from the first prompt on, while Semantic Kernel and OpenAI's client load behind it."""
    model = {"provider": "openai", "name": "m", "endpoint": "http://127.0.0.1:9/v1", "api_key": "none"}
    shell = Shell(_agent(directory / f"loading{time.monotonic_ns()}", model, [{"text": "x"}]), directory)
    try:
        shell.wait_for(_PROMPT)
        return _figures(_keys(shell, seconds))
    finally:
        shell.close()


def cpu(directory: Path, lines: int) -> float:
    """CPU seconds that an answer of so many lines takes, streamed a line a chunk without a pause."""
    text = _markdown(lines) + "\n\nthe end of it"
    model = {"provider": "scripted", "name": "s", "script": "script.yaml"}
    replies = [{"text": "ready", "when": {"user": "warm"}}, {"text": text, "chunks": lines}]
    shell = Shell(_agent(directory / f"cpu{lines}", model, replies), directory)
    try:
        shell.wait_for(_PROMPT)
        shell.type("warm\r")
        shell.wait_for(b"trace ")
        before = shell.cpu
        shell.type("go\r")
        shell.wait_for(b"the end of it", 300)
        return shell.cpu - before
    finally:
        shell.close()


def startup(directory: Path) -> float:
    """CPU seconds until the first prompt."""
    model = {"provider": "openai", "name": "m", "endpoint": "http://127.0.0.1:9/v1", "api_key": "none"}
    shell = Shell(_agent(directory / f"startup{time.monotonic_ns()}", model, [{"text": "x"}]), directory)
    try:
        shell.wait_for(_PROMPT)
        return shell.cpu
    finally:
        shell.close()


def measure() -> dict[str, Any]:
    """Everything."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        few, many = cpu(directory, 1000), cpu(directory, 10_000)
        return {
            "streaming": streaming(directory),
            "loading": loading(directory),
            "cpu": {"lines_1000": round(few, 2), "lines_10000": round(many, 2), "ratio": round(many / few, 1)},
            "startup_cpu": round(statistics.median(startup(directory) for _ in range(3)), 2),
        }


def main() -> int:
    """Print the figures; 1 if one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    arguments = parser.parse_args()
    found = measure()
    if arguments.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            print(f"{name:12} {figures}")
    checked = {
        "streaming_p95": found["streaming"]["p95"],
        "loading_p95": found["loading"]["p95"],
        "loading_worst": found["loading"]["worst"],
        "cpu_ratio": found["cpu"]["ratio"],
    }
    over = [name for name, value in checked.items() if value > _LIMITS[name]]
    for name in over:
        print(f"{name}: {checked[name]} is over {_LIMITS[name]}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
