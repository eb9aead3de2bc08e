"""How a workload is run in lockstep with others: a block of turns for each line on standard input, its CPU on standard output.

Only the standard library: it runs in the peers' environments, too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from time import process_time

__all__ = ["run_blocks"]

WARM_UP = 20


async def run_blocks(turn: Callable[[], Awaitable[None]]) -> int:
    """Warm up, then run as many turns as each line says, until standard input ends; returns the number of all turns.

    What is printed for a line is the CPU in microseconds a turn: the whole process, threads that deliver telemetry included, and what they
    do until the next line.
    """
    loop, turns = asyncio.get_running_loop(), WARM_UP
    for _ in range(WARM_UP):
        await turn()
    say({"ready": True})
    before = process_time()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        count = int(line)
        for _ in range(count):
            await turn()
        turns += count
        now = process_time()
        say({"cpu": (now - before) / count * 1e6})
        before = now
    return turns


def say(value: dict[str, object]) -> None:
    """One line of JSON."""
    print(json.dumps(value), flush=True)
