"""Semantic Kernel's ``ChatHistory``, written and read in one place.

What is added here can be sent to every provider again: each tool call has its result right behind it, in call order, and arguments are
valid JSON even where the model's were not, and so are names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holodeck.backends import kernel
from holodeck.lib.json_text import unwrapped
from holodeck.models.exchange import ModelReply, ToolCall
from holodeck.models.tool_name import MAX_TOOL_NAME, with_plain_characters

if TYPE_CHECKING:
    from semantic_kernel.contents import ChatHistory

__all__ = ["add_reply", "add_results", "as_messages", "new_history", "rewind"]


def new_history(instructions: str | None) -> ChatHistory:
    """A history that holds the system prompt only."""
    contents = kernel.load("semantic_kernel.contents")
    history: ChatHistory = contents.ChatHistory()
    if instructions:
        history.add_system_message(instructions)
    return history


def rewind(history: ChatHistory, length: int) -> None:
    """Forget everything after the first ``length`` entries: a failed turn leaves no orphan behind."""
    del history.messages[length:]


def add_reply(history: ChatHistory, reply: ModelReply) -> None:
    """Add what the model said, text and tool calls alike; an entry or a text of white space alone would be refused, and is left out."""
    contents = kernel.load("semantic_kernel.contents")
    items: list[Any] = [contents.TextContent(text=reply.text)] if reply.text.strip() else []
    # `function_name` and not `name`: a name with a dash would be split into plug-in and function.
    items += [
        contents.FunctionCallContent(id=c.id, name=(n := _name(c.name)), function_name=n, arguments=_valid(c.arguments))
        for c in reply.tool_calls
    ]
    if items:
        history.add_message(contents.ChatMessageContent(role=contents.AuthorRole.ASSISTANT, items=items))


def add_results(history: ChatHistory, results: Iterable[tuple[ToolCall, str]]) -> None:
    """Add the results of tool calls, in the order given."""
    contents = kernel.load("semantic_kernel.contents")
    for call, result in results:
        name = _name(call.name)
        item = contents.FunctionResultContent(id=call.id, name=name, function_name=name, result=result)
        history.add_message(contents.ChatMessageContent(role=contents.AuthorRole.TOOL, items=[item]))


def _name(name: str) -> str:
    """``name`` as every provider takes it back: what a model calls need not be a tool that there is."""
    return with_plain_characters(name)[:MAX_TOOL_NAME] or "unnamed"


def _valid(arguments: str) -> str:
    arguments = unwrapped(arguments)  # as tools read it: the model is told what it was taken to mean
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def as_messages(history: ChatHistory) -> list[dict[str, Any]]:
    """The history in the shape of ``gen_ai.input.messages`` (GenAI conventions, input messages schema)."""
    return [{"role": str(m.role.value), "parts": [part for item in m.items if (part := _part(item))]} for m in history.messages]


def _part(item: Any) -> dict[str, Any] | None:
    if item.content_type == "function_call":
        return {"type": "tool_call", "id": item.id, "name": item.name, "arguments": item.arguments}
    if item.content_type == "function_result":
        return {"type": "tool_call_response", "id": item.id, "response": str(item.result)}
    if item.content_type == "text":
        return {"type": "text", "content": item.text}
    return None
