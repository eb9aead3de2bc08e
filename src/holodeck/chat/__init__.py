"""Session state and the turn loop: yields events, never prints."""

from __future__ import annotations

from holodeck.chat.agent import Agent
from holodeck.chat.session import Session

__all__ = ["Agent", "Session"]
