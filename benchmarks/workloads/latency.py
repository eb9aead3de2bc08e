"""Time to the first token and between tokens, through HoloDeck and through the raw client. Prints JSON: milliseconds, one list a kind.

The two take turns, so that what disturbs one disturbs the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from openai import AsyncOpenAI

from holodeck import Agent, Session, load_agent
from holodeck.models.events import TextDelta

QUESTION = "Where is order 1042?"


async def through_holodeck(agent: Agent) -> list[float]:
    """When each piece of text arrived, in seconds after the question."""
    async with Session(agent) as session:
        start = perf_counter()
        return [perf_counter() - start async for event in session.stream(QUESTION) if isinstance(event, TextDelta)]


async def through_client(client: AsyncOpenAI) -> list[float]:
    """The same through the plain client."""
    start = perf_counter()
    messages = [{"role": "user", "content": QUESTION}]
    stream = await client.chat.completions.create(model="gpt-4o-mini", messages=messages, stream=True)  # type: ignore[call-overload]
    return [perf_counter() - start async for chunk in stream if chunk.choices and chunk.choices[0].delta.content]


async def measure(agent: Agent, url: str, turns: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds to the first token, and between two tokens."""
    figures: dict[str, dict[str, list[float]]] = {name: {"first": [], "between": []} for name in ("holodeck", "raw")}
    async with agent, AsyncOpenAI(base_url=url, api_key="key", max_retries=0) as client:
        await through_holodeck(agent)
        await through_client(client)
        for _ in range(turns):
            for name, times in (("holodeck", await through_holodeck(agent)), ("raw", await through_client(client))):
                figures[name]["first"].append(times[0] * 1e3)
                figures[name]["between"] += [(b - a) * 1e3 for a, b in pairwise(times)]
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("agent", type=Path)
    parser.add_argument("url")
    parser.add_argument("--otlp", required=True)
    parser.add_argument("--turns", type=int, default=30)
    options = parser.parse_args()
    environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": options.otlp}
    agent = load_agent(options.agent, environ=environ, observability=True)
    print(json.dumps(asyncio.run(measure(agent, options.url, options.turns))))


if __name__ == "__main__":
    main()
