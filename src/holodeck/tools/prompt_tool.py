"""Prompt tools: a template that asks a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import HoloDeckError, ToolError
from holodeck.lib.validation import exportable, shorten
from holodeck.models.tool_execution import ToolSpec
from holodeck.tools.parameters import Parameters, names_of
from holodeck.tools.results import as_text
from holodeck.tools.running import bounded
from holodeck.tools.tool import CallContext, Place, read_text

if TYPE_CHECKING:
    from pathlib import Path

    from holodeck.models.agent import PromptTool

__all__ = ["TemplateTool"]

_BRACES: Final = re.compile(r"\{\{([^{}]*)\}\}")
_NAME: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*)\s*")


class TemplateTool:
    """A template that asks a model; its answer is the tool's result.

    ``{{name}}`` stands for the argument ``name``; there is no other syntax. A value is inserted once and never read as a template itself.
    Text stands as it is, everything else as JSON, an argument that is not given as nothing.

    Args:
        config: The tool as the agent file describes it.
        directory: The agent's directory; ``file`` is relative to it.
        place: Where the tool stands.

    Raises:
        AgentFileError: The template cannot be read or is empty, or placeholders and ``parameters`` do not match.
    """

    def __init__(self, config: PromptTool, directory: Path, place: Place) -> None:
        self._config = config
        place_of_text = place.at("file" if config.file else "template")
        self._template = read_text(config.file, directory, place_of_text) if config.file else config.template or ""
        names = _placeholders(self._template, place_of_text)
        written = config.parameters if config.parameters is not None else {name: {"type": "string"} for name in names}
        self._parameters = Parameters(written, place.at("parameters"))
        self._check_names(names)
        self.spec = ToolSpec(name=config.name, description=exportable(config.description), parameters=self._parameters.schema)

    def _check_names(self, names: list[str]) -> None:
        known = names_of(self._parameters.schema)
        if stray := next((name for name in names if name not in known), None):
            raise self._parameters.place.error(f"the template's {{{{{stray}}}}} is not among them: {', '.join(known) or 'there are none'}")
        if unused := next((name for name in known if name not in names), None):
            raise self._parameters.place_of(unused).error(f"the template has no {{{{{unused}}}}}: it would do nothing")

    async def call(self, arguments: dict[str, Any], context: CallContext) -> str:
        """See :class:`holodeck.tools.tool.Tool`."""
        prompt = self._render(self._parameters.complete(self.spec.name, arguments))
        return await bounded(self._ask(prompt, context), self._config.timeout, self.spec.name)

    def _render(self, arguments: dict[str, Any]) -> str:
        return _BRACES.sub(lambda found: as_text(arguments.get(found.group(1).strip())), self._template)

    async def _ask(self, prompt: str, context: CallContext) -> str:
        try:
            return exportable(await context.ask(prompt, self._config.model))
        except ToolError:
            raise
        except HoloDeckError as exc:
            raise ToolError(exportable(exc.message), error_type=exc.error_type) from exc


def _placeholders(template: str, place: Place) -> list[str]:
    """The names in a template, each once, in order."""
    if not template.strip():
        raise place.error("is empty: write what the model is asked")
    names: dict[str, None] = {}
    for inside in _BRACES.findall(template):
        found = _NAME.fullmatch(inside)
        if found is None:
            raise place.error(f"{{{{{shorten(inside, 60)}}}}} is not a placeholder: write {{{{name}}}}, with letters, digits, '_' and '-'")
        names[found.group(1)] = None
    return list(names)
