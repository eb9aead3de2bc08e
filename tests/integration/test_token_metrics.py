"""Tokens at the collector's Prometheus endpoint are the tokens that were billed, however short the runs."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from holodeck import Session, load_agent
from integration.stack import Stack, wait
from support.command import Process
from support.model_server import ModelServer, Reply, Request, Usage

PROMPT, COMPLETION = 100, 10


class Meter:
    """A model that answers with different usage each time and keeps the bill."""

    def __init__(self) -> None:
        self.billed = {"input": 0, "output": 0}

    def answer(self, request: Request) -> Reply:
        """An answer, put on the bill."""
        usage = Usage(PROMPT + request.number, COMPLETION + request.number)
        self.billed = {"input": self.billed["input"] + usage.prompt, "output": self.billed["output"] + usage.completion}
        return Reply("Done.", usage=usage)


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[tuple[Meter, Path, str, dict[str, str]]]:
    """A meter, an agent that asks it for a model of its own name, that name, and the agent's environment."""
    meter, model = Meter(), f"metered-{uuid4().hex[:8]}"
    with ModelServer() as server:
        server.respond = meter.answer
        agent = tmp_path / "agent.yaml"
        agent.write_text(f"name: metered\nmodel: {{provider: openai, name: {model}, endpoint: '{server.url}', api_key: '${{KEY}}'}}\n")
        yield meter, agent, model, {"KEY": "k"}


def one_shot(agent: Path, environ: dict[str, str]) -> None:
    """A run with one turn, from loading the agent to the end of its telemetry: a resource and counters of its own."""

    async def talk() -> None:
        loaded = load_agent(agent, observability=True, environ=environ)
        async with loaded, Session(loaded) as session:
            assert (await session.send("Hello")).message is not None

    asyncio.run(talk())


def test_twenty_runs_in_a_row(stack: Stack, metered: tuple[Meter, Path, str, dict[str, str]]) -> None:
    """After each of twenty runs the sums are the bill so far, in the same two series: they only grow, and a rate sees every later run."""
    meter, agent, model, keys = metered
    seen = []
    for _ in range(20):
        one_shot(agent, {"PATH": "/usr/bin:/bin", **keys, **stack.environment()})
        wait(lambda: stack.tokens(gen_ai_request_model=model) == meter.billed, f"{meter.billed}")
        seen.append(series(stack, model))
    assert len(seen[-1]) == 2, "one series for input and one for output, however many processes there were"
    assert all(set(sample) == set(seen[0]) for sample in seen)
    first = {"input": PROMPT + 1, "output": COMPLETION + 1}
    assert increase(seen) == {kind: meter.billed[kind] - first[kind] for kind in first}


def test_runs_at_once(stack: Stack, metered: tuple[Meter, Path, str, dict[str, str]]) -> None:
    """Two commands at the same time, each over another protocol, do not overwrite each other's counters."""
    meter, agent, model, keys = metered
    words = ["chat", agent, "--observability", "--json", "-m", "Hello", "-m", "Once more"]
    commands = [Process(words, env={**keys, **stack.environment(protocol)}) for protocol in ("http/protobuf", "grpc")]
    ended = [command.wait("") for command in commands]
    for command in commands:
        command.close()
    assert [result.code for result in ended] == [0, 0], ended
    turns = [json.loads(line)["message"]["tokens_used"] for result in ended for line in result.out.splitlines()]
    assert meter.billed == {"input": sum(t["prompt_tokens"] for t in turns), "output": sum(t["completion_tokens"] for t in turns)}
    wait(
        lambda: stack.tokens(gen_ai_request_model=model) == meter.billed, f"{meter.billed}, not {stack.tokens(gen_ai_request_model=model)}"
    )


def test_a_long_session_counts_its_growth(stack: Stack, metered: tuple[Meter, Path, str, dict[str, str]]) -> None:
    """A session that reports its counters many times over is counted once."""
    meter, agent, model, keys = metered
    environ = {"PATH": "/usr/bin:/bin", **keys, **stack.environment(), "OTEL_METRIC_EXPORT_INTERVAL": "100"}

    async def talk() -> None:
        loaded = load_agent(agent, observability=True, environ=environ)
        async with loaded, Session(loaded) as session:
            for _ in range(4):
                await session.send("Hello")
                bill = dict(meter.billed)
                await asyncio.to_thread(wait, lambda bill=bill: stack.tokens(gen_ai_request_model=model) == bill, f"{bill}")

    asyncio.run(talk())
    assert min(meter.billed.values()) > 0
    wait(lambda: stack.tokens(gen_ai_request_model=model) == meter.billed, f"{meter.billed}")


def test_spans_are_counted_without_the_process(stack: Stack, metered: tuple[Meter, Path, str, dict[str, str]]) -> None:
    """Calls by span name, model and status, one series for all processes."""
    _, agent, model, keys = metered
    for _ in range(3):
        one_shot(agent, {"PATH": "/usr/bin:/bin", **keys, **stack.environment()})
    name = "traces_span_metrics_calls_total"
    wanted = {("span_name", f"chat {model}"), ("gen_ai_request_model", model), ("span_kind", "SPAN_KIND_CLIENT")}

    def calls() -> list[float]:
        return [value for (found, labels), value in stack.samples().items() if found == name and wanted <= labels]

    wait(lambda: calls() == [3.0], f"one series with 3 calls, not {calls()}")
    assert calls() == [3.0]  # and it stays one


def series(stack: Stack, model: str) -> dict[frozenset[tuple[str, str]], float]:
    """The token counters of a model, by their labels."""
    wanted = ("gen_ai_request_model", model)
    return {
        labels: value for (name, labels), value in stack.samples().items() if name == "gen_ai_client_token_usage_sum" and wanted in labels
    }


def increase(scrapes: list[dict[frozenset[tuple[str, str]], float]]) -> dict[str, float]:
    """Prometheus' ``increase()`` before extrapolation, by token type: differences between samples, a drop being a restart from zero."""
    grown: dict[str, float] = {}
    for before, after in itertools.pairwise(scrapes):
        for labels, value in after.items():
            if labels in before:
                step = value - before[labels] if value >= before[labels] else value
                kind = dict(labels)["gen_ai_token_type"]
                grown[kind] = grown.get(kind, 0) + step
    return grown
