"""Libraries that would talk into a conversation."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import logging, sys, threading
from holodeck.cli.console import Notes
from holodeck.cli.quiet import mute_libraries
mute_libraries(Notes(sys.stderr), verbose={verbose})
for name in ("opentelemetry.sdk", "semantic_kernel.x", "openai", "httpx", "httpx_sse", "mcp.client", "asyncio", "holodeck.chat.turn"):
    logging.getLogger(name).error("noise of %s", name)
logging.getLogger("holodeck.tools").warning("bad \\x1b[2Jthing")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start(); thread.join()
"""


def _said(verbose: bool) -> str:
    return subprocess.run([sys.executable, "-c", _CODE.format(verbose=verbose)], capture_output=True, text=True, check=True).stderr


def test_libraries_are_silent():
    """No log record and no traceback of a thread gets to the terminal."""
    assert _said(verbose=False) == ""


def test_verbose_shows_our_own_warnings():
    """Libraries stay silent; a warning of ours passes the gate."""
    said = _said(verbose=True)
    assert "holodeck.tools: bad thing\n" in said
    assert "noise" not in said
    assert "ZeroDivisionError" in said
