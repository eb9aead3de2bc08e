"""Agent file, command line and environment → models.

The precedence of telemetry settings is stated in :func:`resolve_telemetry`, that of keys and endpoints in :func:`load_agent_config`.
"""

from __future__ import annotations

from holodeck.config.agent_file import LoadedAgent, load_agent_config
from holodeck.config.schema import agent_schema
from holodeck.config.telemetry import resolve_telemetry

__all__ = ["LoadedAgent", "agent_schema", "load_agent_config", "resolve_telemetry"]
