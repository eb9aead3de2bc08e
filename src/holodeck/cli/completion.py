"""What Tab offers: slash commands, tools and their arguments, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from holodeck.cli.slash import COMMANDS, is_command
from holodeck.lib.validation import terminal_safe
from holodeck.models.tool_execution import ToolSpec

__all__ = ["ShellCompleter"]


class ShellCompleter(Completer):
    """Completes what stands before the cursor.

    Args:
        tools: The tools that there are now.
        narrow: Whether there is no room for explanations beside what is offered.
    """

    def __init__(self, tools: Callable[[], Iterable[ToolSpec]], narrow: Callable[[], bool]) -> None:
        self._tools, self._narrow = tools, narrow
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Suggestions for ``document``."""
        text = document.text_before_cursor
        if not is_command(text):
            if complete_event.completion_requested:
                yield from self._files(text.split()[-1] if text[-1:].strip() else "", complete_event)
            return
        name, space, argument = text.lstrip().removeprefix("/").partition(" ")
        if not space:
            yield from self._commands(name)
            return
        command = COMMANDS.get(name.lower())
        match command.completes if command else "":
            case "tool":
                yield from self._calls(argument)
            case "file":
                yield from self._files(argument, complete_event)

    def _commands(self, begun: str) -> Iterator[Completion]:
        for command in COMMANDS.values():
            if command.name.startswith(begun.lower()):
                text = f"/{command.name} " if command.arguments else f"/{command.name}"
                yield Completion(text, -len(begun) - 1, display=command.usage, display_meta=self._beside(command.help))

    def _calls(self, argument: str) -> Iterator[Completion]:
        name, space, rest = argument.partition(" ")
        for spec in self._tools():
            if not space and spec.name.startswith(name):
                yield Completion(f"{spec.name} ", -len(name), display=spec.name, display_meta=self._beside(spec.description))
            elif space and spec.name == name:
                yield from self._arguments(spec, rest)

    def _arguments(self, spec: ToolSpec, rest: str) -> Iterator[Completion]:
        begun = rest.rpartition(" ")[2]
        properties: dict[str, Any] = spec.parameters.get("properties") or {}
        for name, schema in properties.items():
            safe = terminal_safe(name)
            if safe.startswith(begun) and f"{safe}=" not in rest:
                meta = schema.get("description") or schema.get("type") or "" if isinstance(schema, dict) else ""
                yield Completion(f"{safe}=", -len(begun), display_meta=self._beside(str(meta)))

    def _beside(self, text: str) -> str:
        """An explanation in one line, or nothing."""
        return "" if self._narrow() else " ".join(terminal_safe(text).split())

    def _files(self, begun: str, event: CompleteEvent) -> Iterator[Completion]:
        """Names in the directory that ``begun`` is in: hidden ones where they are asked for, and none that would act on the terminal."""
        for found in self._paths.get_completions(Document(begun), event):
            name = found.display_text
            if name.isprintable() and (begun.rpartition("/")[2] or not name.startswith(".")):
                yield Completion(found.text + "/" * name.endswith("/"), found.start_position, display=name)
