"""Session state and the turn loop: yields events, never prints."""

from __future__ import annotations

import logging

from holodeck.chat.agent import Agent
from holodeck.chat.session import Session

# A library says nothing on its own: without a handler, logging's last resort would write to the terminal.
logging.getLogger("holodeck").addHandler(logging.NullHandler())

__all__ = ["Agent", "Session"]
