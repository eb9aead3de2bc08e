"""Where the command keeps what outlives it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from holodeck.errors import SettingError

__all__ = ["state_directory"]


def state_directory(environ: Mapping[str, str]) -> Path:
    """``HOLODECK_STATE_DIR``, or else the user's state directory; need not exist. The span queue is in ``spool`` below it.

    Raises:
        SettingError: It is in the home directory of somebody who is not known.
    """
    path = Path(environ.get("HOLODECK_STATE_DIR") or platformdirs.user_state_dir("holodeck"))
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise SettingError(f"HOLODECK_STATE_DIR: {path.parts[0]} is no home directory: name a directory") from error
