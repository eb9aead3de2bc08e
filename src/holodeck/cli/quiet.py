"""Libraries kept from talking into the conversation."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Final

from holodeck.cli.console import Notes

__all__ = ["mute_libraries"]

_LOGGERS: Final = (
    *("opentelemetry", "semantic_kernel", "openai", "anthropic", "ollama", "mcp", "asyncio", "grpc"),
    *("httpx", "httpx_sse", "httpcore", "urllib3"),
)


def mute_libraries(notes: Notes, *, verbose: bool) -> None:
    """Keep log records of libraries, complaints of their threads and of their clean-up off the terminal.

    Their failures are said once, in our words, by whoever called them. With ``verbose`` warnings of HoloDeck itself are shown.
    """
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    # Some libraries log on the root logger, and the first record there would set up a handler that writes to the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    own = logging.getLogger("holodeck")
    own.addHandler(_NotesHandler(notes) if verbose else logging.NullHandler())
    own.propagate = False
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's core writes to stderr past all logging
    if not verbose:
        threading.excepthook = lambda _: None
        sys.unraisablehook = lambda _: None


class _NotesHandler(logging.Handler):
    """Shows warnings; that a turn failed is shown with the turn."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(logging.WARNING)
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("holodeck.chat"):
            self._notes.hint(f"{record.name}: {record.getMessage()}")
