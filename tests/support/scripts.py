"""Agents with a scripted model, for tests of the turn loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holodeck import Session, load_agent
from holodeck.testing import FakeClock, SequentialIds
from support.telemetry import MemoryTelemetry

TOOLS = '''
import asyncio
import threading
import time


def lookup(order_id: str) -> dict:
    """Look an order up."""
    return {"order_id": order_id, "status": "shipped"}


def where() -> str:
    """The thread that it runs in."""
    return threading.current_thread().name


def fails(settings: str = "x") -> str:
    """Always fails."""
    raise ValueError("the canary " + settings)


async def nap(seconds: float) -> str:
    """Sleeps."""
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


def block(seconds: float) -> str:
    """Blocks its thread."""
    time.sleep(seconds)
    return f"blocked {seconds}"
'''


def scripted_agent(directory: Path, *replies: dict[str, Any], tools: list[dict[str, Any]] | None = None, **changes: Any) -> Path:
    """Write an agent whose model says ``replies``; all functions of ``TOOLS`` are its tools."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tools.py").write_text(dedent(TOOLS), encoding="utf-8")
    (directory / "script.yaml").write_text(yaml.safe_dump({"replies": list(replies)}, allow_unicode=True), encoding="utf-8")
    names = ("lookup", "where", "fails", "nap", "block")
    functions = [{"name": n, "type": "function", "file": "tools.py", "function": n} for n in names]
    agent = {
        "name": "support",
        "model": {"provider": "scripted", "name": "script", "script": "script.yaml"},
        "tools": functions + (tools or []),
    }
    path = directory / "agent.yaml"
    path.write_text(yaml.safe_dump(agent | changes, allow_unicode=True), encoding="utf-8")
    return path


def call(name: str, identity: str = "call_1", **arguments: Any) -> dict[str, Any]:
    """A tool call of a script."""
    return {"name": name, "arguments": arguments, "id": identity}


def usage(prompt: int, completion: int) -> dict[str, int]:
    """A usage of a script."""
    return {"prompt_tokens": prompt, "completion_tokens": completion}


@contextmanager
def _memory(path: Path, **options: Any) -> Iterator[tuple[Any, InMemorySpanExporter, InMemoryMetricReader]]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    more = {"id_generator": SequentialIds(), "span_processors": [SimpleSpanProcessor(exporter)], "metric_readers": [reader]}
    with FakeClock():
        yield load_agent(path, environ={"PATH": "/usr/bin:/bin"}, telemetry_options=more, **options), exporter, reader


@asynccontextmanager
async def conversation(path: Path, *, max_messages: int = 50, **options: Any) -> AsyncIterator[tuple[Session, MemoryTelemetry]]:
    """An open session on an agent file, with its telemetry in memory."""
    with _memory(path, **options) as (agent, exporter, reader):
        async with agent, Session(agent, max_messages=max_messages) as session:
            yield session, MemoryTelemetry(agent.telemetry, exporter, reader)


def talk(path: Path, body: Callable[[Session, MemoryTelemetry], Awaitable[Any]], **options: Any) -> Any:
    """Run ``body(session, telemetry)`` in an event loop of its own."""

    async def run() -> Any:
        async with conversation(path, **options) as (session, memory):
            return await body(session, memory)

    return asyncio.run(run())
