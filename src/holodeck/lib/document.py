"""Document: what a YAML file holds, and where each key of it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import AgentFileError
from holodeck.lib.problems import KeyPath, Model, dotted, explain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import ValidationError

__all__ = ["MAX_FILE_BYTES", "Document", "check_file", "read_text"]

MAX_FILE_BYTES: Final = 1_000_000
"""Largest agent file, instruction file or template, in bytes."""

_NOT_YAML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ufffd\U00010000-\U0010ffff]")
_PARTS: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        file: The path as the user gave it.
        data: The top-level mapping.
        lines: 1-based line of every key and list entry.
        written: Plain scalars that are not text (``1.10``, ``true``), as they are written.
        renumbered: For lists that lost entries, the original index of each entry that is left.
    """

    file: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    written: Mapping[KeyPath, str]
    renumbered: Mapping[KeyPath, tuple[int, ...]] = field(default_factory=dict)

    def original(self, path: KeyPath) -> KeyPath:
        """``path`` as it is in the file, before entries of a list were left out."""
        for parent, indexes in self.renumbered.items():
            at = len(parent)
            if path[:at] == parent and len(path) > at and isinstance(index := path[at], int):
                return (*parent, indexes[index], *path[at + 1 :])
        return path

    def line(self, path: KeyPath) -> int:
        """Line of ``path``, or of the nearest key above it that stands in the file."""
        path = self.original(path)
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def line_of(self, key: str) -> int:
        """Line of a dotted key such as ``tools[0].name``, or of the nearest key above it that stands in the file."""
        return self.line(tuple(int(index) if index else name for index, name in _PARTS.findall(key)))

    def at(self, path: KeyPath, message: str) -> AgentFileError:
        """The error that ``message`` is at ``path``."""
        return AgentFileError(message, file=self.file, line=self.line(path), key=dotted(self.original(path)))

    def error(self, error: ValidationError, model: Model | None = None) -> AgentFileError:
        """The first thing that pydantic found wrong in ``data``, in plain words.

        Args:
            error: What pydantic says.
            model: The model ``data`` was validated as; with it, keys that are known are suggested for one that is not.
        """
        return self.at(*explain(error, self.data, model, lambda path: self.written.get(self.original(path))))


def check_file(path: Path) -> None:
    """Make sure that ``path`` is a file.

    Raises:
        ValueError: It is not; the message, which leaves the path out, says what it is.
    """
    try:
        if not path.is_file():
            kind = "this is a directory" if path.is_dir() else "this is not a regular file"
            raise ValueError(f"{kind}: name a file" if path.exists() else "there is no such file")
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error


def read_text(path: Path, *, limit: int = MAX_FILE_BYTES) -> str:
    """The text of a file of at most ``limit`` bytes in UTF-8; a byte order mark is left out.

    Raises:
        ValueError: It is missing, not a file, cannot be read, is too large, or is not text; the message, which leaves the path out,
            says which.
    """
    check_file(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise ValueError(f"larger than {limit:,} bytes: nothing that an agent reads is so long")
    try:
        return _printable(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8 text: save the file as UTF-8") from error


def _printable(text: str) -> str:
    if found := _NOT_YAML.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"line {line} has the control character U+{ord(found.group()):04X}: remove it")
    return text
