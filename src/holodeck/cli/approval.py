"""Asking before a tool runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from holodeck.cli.console import Notes
from holodeck.models.tool_execution import ToolExecution

__all__ = ["Approver"]

_QUESTION: Final = "Run {tool}? y / n / always: "
"""Names the tool, since others may have written lines of their own below the call that is asked about."""
_NAME: Final = 40
"""Cells of the name in the question; it stands above in full."""
_AGAIN: Final = "Please answer y, n or a (always): "
_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_ALWAYS: Final = frozenset({"a", "always"})


class Approver:
    """Asks the user about each call of a tool with ``approval: ask``, one call after the other.

    The answer is a line of its own, ended with Enter: what somebody is typing when the question comes cannot answer it by accident.

    Args:
        notes: Where the call is shown: in full, since nobody can allow what cannot be seen.
        ask: Asks a question at the prompt and returns one of the answers that it is given; anything else is met with the third text.
    """

    def __init__(self, notes: Notes, ask: Callable[[str, Collection[str], str], Awaitable[str]]) -> None:
        self._notes, self._ask = notes, ask
        self._always: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, execution: ToolExecution) -> bool:
        """Whether the call may run; ``always`` holds for this tool until the chat ends."""
        async with self._one_at_a_time:
            if execution.tool_name in self._always:
                return True
            self._show(execution)
            question = _QUESTION.format(tool=self._notes.fit(execution.tool_name, _NAME))
            answer = await self._ask(question, _YES | _NO | _ALWAYS, _AGAIN)
            if answer in _ALWAYS:
                self._always.add(execution.tool_name)
            return answer in _YES | _ALWAYS

    def _show(self, execution: ToolExecution) -> None:
        self._notes.line((f"{self._notes.glyphs.tool} ", "yellow"), (execution.tool_name, "bold"), (" needs your approval", "yellow"))
        for name, value in execution.parameters.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            self._notes.line((f"  {name}: ", "dim"), text.replace("\n", "\n" + " " * 4))
