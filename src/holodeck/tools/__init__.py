"""The ``tools`` of an agent file as things that can be called: Python functions, MCP servers, prompts.

:class:`Toolbox` is the only door. It knows nothing of model providers and writes no telemetry: a turn loop offers its ``specs`` to a model
and hands each call back in, with a :class:`CallContext`.
"""

from __future__ import annotations

from holodeck.tools.tool import CallContext
from holodeck.tools.toolbox import Toolbox

__all__ = ["CallContext", "Toolbox"]
