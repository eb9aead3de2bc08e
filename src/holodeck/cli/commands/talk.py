"""Commands that take part in the conversation."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from holodeck.cli.toollines import call_text
from holodeck.errors import HoloDeckError
from holodeck.lib.validation import MAX_MESSAGE_CHARS, shorten
from holodeck.models.tool_execution import ToolExecution, ToolSpec, ToolStatus

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["call_tool", "parse_call", "reset", "retry", "toggle_verbose"]

_KEY: Final = re.compile(r"(?P<key>[^\s=]+)=")
_SINGLE, _DOUBLE = r"'([^']*)'", r'"((?:[^"\\]|\\.)*)"'
_QUOTED: Final = re.compile(f"{_SINGLE}|{_DOUBLE}", re.DOTALL)
_WORD: Final = re.compile(rf"""(?:{_SINGLE}|{_DOUBLE}|[^\s'"])*(?=\s|\Z)""", re.DOTALL)
_ESCAPED: Final = re.compile(r"""\\(["\\])""")
"""What a backslash stands before within double quotes; anywhere else it is a character like any other."""


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
    lower = {tool.lower(): tool for tool in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f"there is no tool {name}" + (f": did you mean {lower[near[0]]}? " if near else " ") + tools


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
    arguments: dict[str, Any] = {}
    while text:
        if not (found := _KEY.match(text)):
            raise ValueError(f"{text.split(maxsplit=1)[0]!r} is no argument: write key=value, in quotes where there are spaces")
        key = found["key"]
        if key in arguments:
            raise ValueError(f"{key} is given twice")
        word, text = _word(text[found.end() :])
        arguments[key] = _value(word, spec.parameters.get("properties", {}).get(key))
    return arguments


def _word(text: str) -> tuple[str, str]:
    """The value with which ``text`` begins, without its quotes, and what follows it: JSON may hold spaces and quotes of its own."""
    if text.startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            end = json.JSONDecoder().raw_decode(text)[1]
            if not text[end:].split(maxsplit=1) or text[end].isspace():
                return text[:end], text[end:].lstrip()
    if not (found := _WORD.match(text)):
        raise ValueError("the arguments cannot be read (a quote is not closed): write key=value, in quotes where there are spaces")
    word = _QUOTED.sub(lambda part: part[1] or _ESCAPED.sub(r"\1", part[2] or ""), found[0])
    return word, text[found.end() :].lstrip()


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
