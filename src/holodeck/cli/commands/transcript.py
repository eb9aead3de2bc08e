"""``/save FILE``: what was said, in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holodeck.cli.toollines import call_text
from holodeck.models.tool_execution import ToolStatus

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["as_json", "as_markdown", "save"]


async def save(conversation: Conversation, argument: str) -> None:
    """Write the transcript into a new file that only its owner can read."""
    notes = conversation.notes
    if not argument or not conversation.turns:
        notes.error("nothing has been said yet" if argument else "/save takes the name of a file: .json, or anything else for Markdown")
        return
    try:
        path = _write(argument, conversation)
    except FileExistsError:
        notes.error(f"{argument} is there already: name another file")
    except (OSError, RuntimeError, ValueError) as error:
        notes.error(f"{argument} cannot be written ({getattr(error, 'strerror', None) or error})")
    else:
        notes.hint(f"saved: {path}")


def _write(argument: str, conversation: Conversation) -> Path:
    path = Path(argument).expanduser()
    text = as_json(conversation) if path.suffix.lower() == ".json" else as_markdown(conversation)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
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
    """The turns as Markdown: a heading for each side, tools as a list."""
    agent = conversation.agent.config
    parts = [f"# {agent.name}", f"Model: {agent.model.label}"]
    for asked, result in zip(conversation.asked, conversation.turns, strict=True):
        parts += ["## You", asked]
        parts.append(f"## {agent.name}")
        if result.tool_calls:
            failed = {ToolStatus.FAILED: " (failed)"}
            parts.append("\n".join(f"- `{call_text(call)}`{failed.get(call.status, '')}" for call in result.tool_calls))
        if result.message is not None:
            parts.append(result.message.content)
        if result.error is not None:
            parts.append(f"*{result.error.message}*")
    return "\n\n".join(parts) + "\n"
