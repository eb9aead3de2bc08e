"""``/save FILE``: what was said, in a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holodeck.models.tool_execution import ToolExecution, ToolStatus

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["as_json", "as_markdown", "save"]

_LEAST_FENCE: Final = 3


async def save(conversation: Conversation, argument: str) -> None:
    """Write the transcript into a new file that only its owner can read."""
    if not argument or not conversation.turns:
        needs = "/save takes the name of a file: .json, or anything else for Markdown"
        conversation.complain("nothing has been said yet" if argument else needs)
        return
    try:
        path = _write(argument, conversation)
    except FileExistsError:
        conversation.complain(f"{argument} is there already: name another file")
    except (OSError, RuntimeError, ValueError) as error:
        conversation.complain(f"{argument} cannot be written ({getattr(error, 'strerror', None) or error})")
    else:
        conversation.notes.hint(f"saved: {path}")


def _write(argument: str, conversation: Conversation) -> Path:
    path = Path(argument).expanduser()
    text = as_json(conversation) if path.suffix.lower() == ".json" else as_markdown(conversation)
    data = text.encode("utf-8", "backslashreplace")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError:  # a full disk: half a transcript would only be in the way of the next attempt
        with suppress(OSError):
            path.unlink()
        raise
    return path


def as_json(conversation: Conversation) -> str:
    """The turns as a JSON document: what was asked, and everything that ``--json`` writes of a turn."""
    turns = [
        {"turn": number, "asked": asked, **result.model_dump(mode="json", exclude={"number"})}
        for number, (asked, result) in enumerate(zip(conversation.asked, conversation.turns, strict=True), 1)
    ]
    document: dict[str, Any] = {"agent": conversation.agent.config.name, "model": conversation.agent.config.model.label, "turns": turns}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_markdown(conversation: Conversation) -> str:
    """The turns as Markdown: a heading for each side, and each tool with its arguments and what it returned."""
    agent = conversation.agent.config
    parts = [f"# {agent.name}", f"Model: {agent.model.label}"]
    for asked, result in zip(conversation.asked, conversation.turns, strict=True):
        parts += ["## You", asked]
        parts.append(f"## {agent.name}")
        for call in result.tool_calls:
            parts += _tool(call)
        if result.message is not None:
            parts.append(result.message.content)
        if result.error is not None:
            parts += ["Error:", _fenced(result.error.message)] if "\n" in result.error.message else [f"*{result.error.message}*"]
    return "\n\n".join(parts) + "\n"


def _tool(call: ToolExecution) -> Iterator[str]:
    failed = call.status is ToolStatus.FAILED
    yield f"### Tool {_code(call.tool_name)}{' (failed)' if failed else ''}"
    if call.parameters:
        yield _fenced(json.dumps(call.parameters, indent=2, ensure_ascii=False, default=str), "json")
    outcome = call.error_message if failed else call.result
    yield "Error:" if failed else "Result:"
    yield _fenced(outcome or "")


def _fenced(text: str, language: str = "") -> str:
    """A block of code with a fence that is longer than any row of backticks in ``text``, so that nothing in it ends the block."""
    fence = "`" * max(_LEAST_FENCE, _longest_row(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """The same within a line."""
    ticks = "`" * (_longest_row(text) + 1)
    blank = " " if len(ticks) > 1 else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def _longest_row(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
