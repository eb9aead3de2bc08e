"""The files that an agent file names: paths made absolute, and looked at before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holodeck.lib.document import Document, check_file, read_text
from holodeck.lib.problems import KeyPath, one_line
from holodeck.models.agent import AgentConfig, FunctionTool, PromptTool

if TYPE_CHECKING:
    from pathlib import Path

    from holodeck.models.llm import LLMConfig

__all__ = ["read_instructions", "resolve_files"]


def resolve_files(document: Document, config: AgentConfig, directory: Path) -> None:
    """Make the paths in ``config`` absolute; relative ones start at ``directory``.

    Raises:
        AgentFileError: A file is missing, or is no file; an instruction file or a template is not text, or has none.
    """
    find = _Finder(document, directory)
    find.model(("model",), config.model)
    if config.instructions and config.instructions.file:
        config.instructions.file = find.file(("instructions", "file"), config.instructions.file)
    for index, tool in enumerate(config.tools):
        if isinstance(tool, FunctionTool | PromptTool) and tool.file:
            tool.file = find.file(("tools", index, "file"), tool.file)
        if isinstance(tool, PromptTool) and tool.file:
            _text(document, ("tools", index, "file"), tool.file)
        if isinstance(tool, PromptTool) and tool.model:
            find.model(("tools", index, "model"), tool.model)


def read_instructions(document: Document, config: AgentConfig) -> str | None:
    """The system prompt of ``config``, whose paths are absolute, without white space around it.

    Raises:
        AgentFileError: It is empty, or its file is not text.
    """
    if config.instructions is None:
        return None
    if config.instructions.file:
        return _text(document, ("instructions", "file"), config.instructions.file)
    text = (config.instructions.inline or "").strip()
    if not text:
        raise document.at(("instructions", "inline"), "is empty: write what the agent is told, or remove 'instructions'")
    return text


def _text(document: Document, path: KeyPath, file: Path) -> str:
    try:
        text = read_text(file).strip()
    except ValueError as error:
        raise document.at(path, f"{one_line(str(file), 300)}: {error}") from error
    if not text:
        raise document.at(path, f"{one_line(str(file), 300)}: the file is empty")
    return text


class _Finder:
    """Finds files from the directory of the agent file."""

    def __init__(self, document: Document, directory: Path) -> None:
        self._document, self._directory = document, directory

    def model(self, path: KeyPath, model: LLMConfig) -> None:
        if model.path:
            model.path = self.file((*path, "path"), model.path)
        if model.script:
            model.script = self.file((*path, "script"), model.script)

    def file(self, path: KeyPath, file: Path) -> Path:
        try:
            absolute = self._directory / file.expanduser()
            check_file(absolute)
        except (RuntimeError, ValueError) as error:  # RuntimeError: ~ of someone who has no home
            raise self._document.at(path, f"{one_line(str(self._directory / file), 300)}: {error}") from error
        return absolute
