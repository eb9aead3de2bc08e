"""Processes that run scripted sessions with tools until they are killed.

``python -m support.doomed AGENT STATE URL`` imports everything once and then forks: a line ``TRUTH_FILE`` on stdin starts a process, whose
id is printed; a line ``-PID`` waits for its end. Importing takes two seconds, a fork some milliseconds.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.span_truth import TruthProcessor

__all__ = ["Nursery", "nursery"]


class Nursery:
    """The test's end of a nursery of processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, truth: Path) -> int:
        """Start a process; its id."""
        return int(self._ask(str(truth)))

    def wait(self, pid: int) -> int:
        """Wait for the end of ``pid``; its wait status."""
        return int(self._ask(f"-{pid}"))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def nursery(agent: Path, state: Path, url: str) -> Iterator[Nursery]:
    """A nursery that ends with the block."""
    command = [sys.executable, "-m", "support.doomed", str(agent), str(state), url]
    where = Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


async def _talk(agent_file: str, state: str, url: str, truth: str) -> None:
    from holodeck import Session, load_agent

    environ = {
        "PATH": "/usr/bin:/bin",
        "HOLODECK_STATE_DIR": state,
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "15",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8",
    }
    options = {"environ": environ, "span_processors": [TruthProcessor(Path(truth))]}
    agent = load_agent(agent_file, observability=True, environ=environ, telemetry_options=options)
    async with agent:
        while True:
            async with Session(agent, max_messages=8) as session:
                for number in range(3):
                    await session.send(f"message {number}")


def _child(truth: str) -> None:
    devnull = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(devnull, descriptor)
    try:
        asyncio.run(_talk(*sys.argv[1:4], truth))
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(1)


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _main() -> None:
    for name in ("holodeck.telemetry.spool.queue", "holodeck.backends.kernel", "semantic_kernel"):  # what takes long
        importlib.import_module(name)
    for line in sys.stdin:
        word = line.strip()
        if word.startswith("-"):
            _say(os.waitpid(int(word[1:]), 0)[1])
            continue
        pid = os.fork()
        if not pid:
            _child(word)
        _say(pid)


if __name__ == "__main__":
    _main()
