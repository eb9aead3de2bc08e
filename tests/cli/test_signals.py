"""Stopping from outside."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from holodeck.cli.signals import Signals, Stop, Stopped


async def _value(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def _forever(cleaned: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        cleaned.append("cleaned up")


def test_without_a_stop_the_result_comes_back():
    """Work that ends first is not touched; what it raises is raised."""

    async def talk() -> None:
        stop = Stop()
        assert await stop.or_result(_value(3)) == 3
        with pytest.raises(TimeoutError):
            await stop.or_result(asyncio.wait_for(asyncio.sleep(9), 0.001))

    asyncio.run(talk())


def test_a_stop_cancels_what_is_waited_for():
    """The work has cleaned up by the time that the stop is told, and nothing is begun afterwards."""

    async def talk() -> list[str]:
        stop, cleaned = Stop(), []
        asyncio.get_running_loop().call_later(0.01, stop.set, 143)
        with pytest.raises(Stopped):
            await stop.or_result(_forever(cleaned))
        with pytest.raises(Stopped):
            await stop.or_result(_forever(cleaned))
        stop.set(130)
        assert stop.code == 143
        return cleaned

    assert asyncio.run(talk()) == ["cleaned up"]


def test_signals_reach_whoever_listens():
    """SIGINT goes where it is turned to, the others to the end."""

    async def talk() -> list[object]:
        heard: list[object] = []
        signals = Signals(heard.append, lambda: heard.append("interrupt"))
        signals.install()
        with signals.interrupting(lambda: heard.append("turn")):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.02)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.02)
        return heard

    assert asyncio.run(talk()) == ["turn", "interrupt", signal.SIGTERM, signal.SIGHUP]


def test_what_was_ignored_stays_ignored():
    """A chat under nohup does not end when the terminal does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def talk() -> None:
            Signals(lambda number: pytest.fail("heard"), lambda: None).install()
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.02)

        asyncio.run(talk())
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
