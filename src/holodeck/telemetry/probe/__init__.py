"""Tries out where telemetry would go: sends a canary, says who answered what, and how the usual mistakes are put right.

``listener`` looks at what stands behind a port, ``canary`` makes and sends the requests, ``advice`` finds the fix. Nothing else than what
is configured is ever connected to.
"""

from __future__ import annotations

from holodeck.telemetry.probe.advice import fix_for
from holodeck.telemetry.probe.canary import Answer, Canary, make_canary, send_canary
from holodeck.telemetry.probe.listener import Listener, look_at

__all__ = ["Answer", "Canary", "Listener", "fix_for", "look_at", "make_canary", "send_canary"]
