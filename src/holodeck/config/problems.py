"""Errors of an agent file's section that are found where the file is out of sight."""

from __future__ import annotations

from holodeck.errors import ConfigError
from holodeck.lib.problems import KeyPath, dotted

__all__ = ["KeyedError"]


class KeyedError(ConfigError):
    """A value of an agent file is wrong, found where the file itself is out of sight.

    Attributes:
        path: Where the value stands in the agent file.
        reason: What is wrong and what to do.
    """

    def __init__(self, path: KeyPath, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"agent file: {dotted(path)}: {reason}")
