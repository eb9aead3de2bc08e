"""The conversation of the benchmark through HoloDeck, with telemetry in one of its forms."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from blocks import run_blocks, say

from holodeck import Agent, Session, load_agent

MODES: dict[str, dict[str, Any]] = {
    "off": {},
    "console": {"observability": False},
    "otlp": {"observability": True},
    "content": {"observability": True, "capture_content": True},
}


async def turn(agent: Agent) -> None:
    """Two requests, one tool, in a conversation of its own."""
    async with Session(agent) as session:
        result = await session.send("Where is order 1042?")
    assert result.message is not None, result.error
    assert result.model_requests == 2, result


async def measure(agent: Agent) -> int:
    """Run the blocks; returns the number of turns."""
    async with agent:
        return await run_blocks(lambda: turn(agent))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("agent", type=Path)
    parser.add_argument("--mode", choices=MODES, default="off")
    parser.add_argument("--otlp", default="")
    options = parser.parse_args()
    environ = {**os.environ, **({"OTEL_EXPORTER_OTLP_ENDPOINT": options.otlp} if options.otlp else {})}
    if options.mode == "off":
        environ["OTEL_SDK_DISABLED"] = "true"
    agent = load_agent(options.agent, environ=environ, keep_turns=100, **MODES[options.mode])
    say({"turns": asyncio.run(measure(agent))})


if __name__ == "__main__":
    main()
