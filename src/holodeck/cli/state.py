"""Where the command keeps what outlives it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

__all__ = ["state_directory"]


def state_directory(environ: Mapping[str, str]) -> Path:
    """``HOLODECK_STATE_DIR``, or else the user's state directory; need not exist. The span queue is in ``spool`` below it."""
    path = Path(environ.get("HOLODECK_STATE_DIR") or platformdirs.user_state_dir("holodeck"))
    return path.expanduser().absolute()
