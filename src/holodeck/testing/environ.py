"""The environment of an agent under test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holodeck.chat import Agent

__all__ = ["is_switched_off", "make_telemetry", "quiet_environ", "sampled_environ"]

_SAMPLED: Final = {"OTEL_TRACES_SAMPLER": "always_on"}


def quiet_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without what would send telemetry anywhere, leave some of it out, or switch it off."""
    return {name: value for name, value in environ.items() if not name.startswith("OTEL_")} | {"OTEL_TRACES_EXPORTER": "none"} | _SAMPLED


def sampled_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ``, with every trace recorded: what is not there cannot be asserted on."""
    return {**environ, **_SAMPLED}


def is_switched_off(environ: Mapping[str, str]) -> bool:
    """Whether ``OTEL_SDK_DISABLED`` says that nothing may be sent."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def make_telemetry(agent: Agent) -> None:
    """Make the agent's telemetry now. The SDK looks for ``OTEL_SDK_DISABLED`` by itself: it does not see the variable."""
    switch = os.environ.pop("OTEL_SDK_DISABLED", None)
    try:
        _ = agent.telemetry
    finally:
        if switch is not None:
            os.environ["OTEL_SDK_DISABLED"] = switch
