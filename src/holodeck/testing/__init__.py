"""Traces as tests: assert on what an agent did.

With pytest there is nothing to import: the plugin brings the fixtures ``chat`` and ``telemetry`` (``docs/testing.md``). What they are
made of is here, for other test runners: :class:`Chat`, :class:`Trace`, :class:`MemoryTelemetry`, :class:`SequentialIds`,
:class:`FakeClock`. :mod:`holodeck.testing.cases` runs test cases that are YAML files; ``holodeck test`` is built on it. Everything is
loaded when it is first used: a test suite that has the plugin installed and does not use it pays nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holodeck.testing.chat import Chat
    from holodeck.testing.deterministic import FakeClock, SequentialIds
    from holodeck.testing.memory import MemoryTelemetry
    from holodeck.testing.trace import Trace

__all__ = ["Chat", "FakeClock", "MemoryTelemetry", "SequentialIds", "Trace"]

_HOMES = {
    "Chat": "chat",
    "FakeClock": "deterministic",
    "MemoryTelemetry": "memory",
    "SequentialIds": "deterministic",
    "Trace": "trace",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"holodeck.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'holodeck.testing' has no attribute {name!r}")
