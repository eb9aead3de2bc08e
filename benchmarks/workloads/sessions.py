"""Many sessions at once in one process, each a few turns, delivered over OTLP. Prints JSON."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from holodeck import Agent, Session, load_agent


async def converse(agent: Agent, turns: int) -> int:
    """One session; how many of its turns were answered."""
    answered = 0
    async with Session(agent, max_messages=2 * turns + 2) as session:
        for _ in range(turns):
            answered += (await session.send("Where is order 1042?")).message is not None
    return answered


async def measure(agent: Agent, sessions: int, turns: int) -> dict[str, Any]:
    """Open ``sessions`` of them, all at once."""
    async with agent:
        await converse(agent, 1)
        idle, wall, cpu = resident(), perf_counter(), process_time()
        answered = sum(await asyncio.gather(*(converse(agent, turns) for _ in range(sessions))))
        wall, cpu = perf_counter() - wall, process_time() - cpu
    return {"answered": answered + 1, "turns": sessions * turns + 1, "wall": wall, "cpu": cpu, "idle": idle, "peak": peak()}


def resident() -> float:
    """Resident set in MB."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if status.exists() else peak()


def peak() -> float:
    """Largest resident set so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("agent", type=Path)
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--otlp", required=True)
    options = parser.parse_args()
    environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": options.otlp}
    agent = load_agent(options.agent, environ=environ, observability=True)
    print(json.dumps(asyncio.run(measure(agent, options.sessions, options.turns))))


if __name__ == "__main__":
    main()
