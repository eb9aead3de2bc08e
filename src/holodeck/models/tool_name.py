"""What a tool may be called: what every model provider takes as the name of a function."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_TOOL_NAME", "TOOL_NAME", "with_plain_characters"]

MAX_TOOL_NAME: Final = 64
"""Characters that a tool's name may have."""
TOOL_NAME: Final = f"[A-Za-z0-9_-]{{1,{MAX_TOOL_NAME}}}"
"""A tool's name as a regular expression."""
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_-]")


def with_plain_characters(name: str) -> str:
    """``name`` with ``_`` for each character that no tool's name may have; its length stays."""
    return _OTHERS.sub("_", name)
