"""Commands that take part in the conversation."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holodeck.cli.toollines import call_text
from holodeck.errors import HoloDeckError
from holodeck.lib.validation import MAX_MESSAGE_CHARS, shorten
from holodeck.models.tool_execution import ToolExecution, ToolSpec, ToolStatus

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["call_tool", "parse_call", "reset", "retry", "toggle_verbose"]


async def retry(conversation: Conversation, argument: str) -> None:
    """``/retry``: the last message again."""
    del argument
    await conversation.retry()


async def reset(conversation: Conversation, argument: str) -> None:
    """``/reset``: a new conversation."""
    del argument
    try:
        conversation.session.reset()
    except HoloDeckError as error:
        conversation.refuse(error)
    else:
        conversation.notes.hint("A new conversation begins: the agent remembers nothing of what was said. /trace and /usage still do.")


async def toggle_verbose(conversation: Conversation, argument: str) -> None:
    """``/verbose``: more, or less."""
    del argument
    conversation.verbose = not conversation.verbose
    conversation.notes.hint(
        "Tools are shown in full, and the spans after each turn."
        if conversation.verbose
        else "Tools are shown in one line, spans by /trace."
    )


async def call_tool(conversation: Conversation, argument: str) -> None:
    """``/call TOOL key=value …``: a tool by hand; its result is put at the prompt, to be sent or not."""
    name, *rest = argument.split(maxsplit=1) or [""]
    spec = conversation.agent.toolbox.spec(name)
    if spec is None:
        known = [spec.name for spec in conversation.agent.toolbox.specs]
        conversation.complain(_no_such_tool(conversation.notes.fit(name, 40), known))
        return
    try:
        arguments = parse_call(spec, rest[0] if rest else "")
    except ValueError as error:
        conversation.complain(str(error))
        return
    execution = await conversation.call(name, arguments)
    if execution is not None and execution.status is ToolStatus.SUCCESS:
        _offer(conversation, execution)


def _no_such_tool(name: str, known: Sequence[str]) -> str:
    tools = f"(tools: {', '.join(known) or 'none'})"
    if not name:
        return f"/call takes a tool and its arguments {tools}"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"there is no tool {name}: " + (f"did you mean {near[0]}? " if near else "") + tools


def _offer(conversation: Conversation, execution: ToolExecution) -> None:
    result = execution.result or ""
    offer = f"{shorten(call_text(execution), 500)} returned:\n{shorten(result, MAX_MESSAGE_CHARS - 1000)}\n"
    if conversation.draft(offer):
        conversation.notes.hint("Enter sends the result to the agent, Ctrl-C does not.")
    elif not conversation.verbose:
        conversation.notes.line(shorten(result, MAX_MESSAGE_CHARS))


def parse_call(spec: ToolSpec, text: str) -> dict[str, Any]:
    """The arguments that ``key=value …`` or a JSON object says; a value is JSON where the tool does not ask for text.

    Raises:
        ValueError: It says nothing of the kind; the message is for the user.
    """
    text = text.strip()
    if text.startswith("{"):
        return _json_object(text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"the arguments cannot be read ({error}): write key=value, in quotes where there are spaces") from error
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ValueError(f"{word!r} is no argument: write key=value, in quotes where there are spaces")
        arguments[key] = _value(value, spec.parameters.get("properties", {}).get(key))
    return arguments


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("the arguments are no JSON object")  # noqa: TRY004 - what is wrong is the text
    return value


def _value(text: str, schema: object) -> Any:
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("a value is nested too deeply") from error
    except ValueError:
        return text
