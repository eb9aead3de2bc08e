"""HoloDeck: an OpenTelemetry-first harness for people who build LLM agents.

``from holodeck import load_agent, Session`` is the way in for programs; both are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holodeck.version import __version__

if TYPE_CHECKING:
    from holodeck.api import Agent, Session, load_agent

__all__ = ["Agent", "Session", "__version__", "load_agent"]


def __getattr__(name: str) -> Any:
    if name in ("Agent", "Session", "load_agent"):
        from holodeck import api  # noqa: PLC0415 - importing holodeck has no side effects and costs nothing

        return getattr(api, name)
    raise AttributeError(f"module 'holodeck' has no attribute {name!r}")
