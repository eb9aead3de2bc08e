"""What the collector accepted reaches Jaeger, whatever dies in between.

HOLODECK_SOAK=1 keeps Jaeger away for a minute in place of some seconds.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from holodeck import Session, load_agent
from integration.otlp_requests import post, span, spans_request
from integration.stack import ROOT, Stack, wait

AWAY_SECONDS = 60.0 if os.environ.get("HOLODECK_SOAK") == "1" else 4.0
BACK_SECONDS = 60.0


class Sender(threading.Thread):
    """Sends turns of four spans until it is told to stop, and remembers which were accepted."""

    def __init__(self, stack: Stack, every: float) -> None:
        super().__init__(daemon=True)
        self._url, self._every = stack.collector.url("HTTP"), every
        self._stopped = threading.Event()
        self.accepted: list[int] = []
        self.refused = 0

    def run(self) -> None:
        """Send."""
        while not self._stopped.wait(self._every):
            trace = uuid4().int
            spans = [span(trace, 1), *(span(trace, number, parent=1) for number in (2, 3, 4))]
            if post(self._url, spans_request("survivor", spans)):
                self.accepted.append(trace)
            else:
                self.refused += 1

    def accepts(self, more: int) -> None:
        """Wait until ``more`` turns have been accepted."""
        target = len(self.accepted) + more
        wait(lambda: len(self.accepted) >= target, f"{more} more accepted turns")

    def stop(self) -> None:
        """Stop, and wait for the last answer."""
        self._stopped.set()
        self.join()


def missing(stack: Stack, traces: list[int]) -> list[int]:
    """The turns that Jaeger does not have, or not whole."""
    return [trace for trace in traces if {s.span_id for s in stack.trace(f"{trace:032x}")} != {f"{n:016x}" for n in (1, 2, 3, 4)}]


def wait_for_all(stack: Stack, traces: list[int]) -> None:
    """Wait until Jaeger has every turn, whole."""
    assert traces
    left = list(traces)

    def look() -> bool:
        left[:] = missing(stack, left)
        return not left

    wait(look, f"{len(traces)} turns", BACK_SECONDS)


def test_the_collector_is_killed_while_turns_arrive(own_stack: Stack) -> None:
    """Every turn that was accepted before, between and after two kills is in Jaeger, whole."""
    sender = Sender(own_stack, every=0.005)
    sender.start()
    for _ in range(2):
        sender.accepts(60)
        own_stack.collector.kill()
        refused = sender.refused
        wait(lambda refused=refused: sender.refused > refused, "a turn that is refused")
        own_stack.collector.start()
    sender.accepts(60)
    sender.stop()
    wait_for_all(own_stack, sender.accepted)
    assert sender.refused >= 2
    assert len(sender.accepted) >= 180


@pytest.mark.timeout(2 * (AWAY_SECONDS + BACK_SECONDS))
def test_jaeger_is_away_and_the_collector_dies_meanwhile(own_stack: Stack) -> None:
    """While Jaeger is away the collector goes on accepting, keeps what it has over a kill of its own, and delivers when Jaeger is back."""
    sender = Sender(own_stack, every=0.02)
    sender.start()
    sender.accepts(20)
    own_stack.jaeger.kill()
    away = time.monotonic()
    sender.accepts(20)
    own_stack.collector.kill()
    own_stack.collector.start()
    sender.accepts(20)
    time.sleep(max(0.0, away + AWAY_SECONDS - time.monotonic()))  # the outage itself is the point
    sender.stop()
    own_stack.jaeger.start()
    wait_for_all(own_stack, sender.accepted)
    wait(lambda: own_stack.own_metric("otelcol_exporter_queue_size") == 0, "an empty queue")
    assert len(sender.accepted) >= 60


def test_a_session_goes_on_through_the_collectors_death(own_stack: Stack) -> None:
    """The chat does not notice that the collector was killed and came back; turns before and after are whole in Jaeger."""
    environ = {"PATH": "/usr/bin:/bin", "OTEL_BSP_SCHEDULE_DELAY": "50", **own_stack.environment()}

    async def talk() -> list[Any]:
        agent = load_agent(ROOT / "examples" / "support" / "agent.yaml", observability=True, environ=environ)
        async with agent, Session(agent) as session:
            before = await session.send("Where is order 1042?")
            await asyncio.to_thread(own_stack.wait_for_trace, before.trace_id, 4)
            await asyncio.to_thread(own_stack.collector.kill)
            between = await session.send("Where is order 1042?")
            await asyncio.to_thread(own_stack.collector.start)
            return [before, between, await session.send("Where is order 1042?")]

    results = asyncio.run(talk())
    assert [result.failed for result in results] == [False, False, False]
    for result in (results[0], results[2]):
        own_stack.wait_for_trace(result.trace_id, 4)


def test_a_collector_that_cannot_keep_more_says_so(started: Callable[..., Stack]) -> None:
    """With Jaeger away and its queue full the collector refuses, so that the sender knows; what it accepted before is delivered."""
    small = started(COLLECTOR_QUEUE_SPANS="2048")
    small.jaeger.kill()
    sender = Sender(small, every=0)
    sender.start()
    wait(lambda: sender.refused, "a turn that is refused")
    sender.stop()
    small.jaeger.start()
    assert sender.accepted  # or nothing would have to be delivered
    wait_for_all(small, sender.accepted)
