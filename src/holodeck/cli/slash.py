"""What can be typed beside messages: one table, from which help and suggestions come."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holodeck.cli.usage import show_usage

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["COMMANDS", "SlashCommand", "is_command", "run_command", "unescaped"]

Handler = Callable[["Conversation", str], Awaitable[None]]


@dataclass(frozen=True)
class SlashCommand:
    """One row of the table.

    Attributes:
        name: What is typed after the slash.
        arguments: What may follow, as help shows it.
        help: What it does, in a few words.
        handler: Does it; gets what followed the name.
    """

    name: str
    arguments: str
    help: str
    handler: Handler

    @property
    def usage(self) -> str:
        """As it is typed."""
        return f"/{self.name} {self.arguments}".rstrip()


def is_command(text: str) -> bool:
    """Whether ``text`` is a slash command and no message."""
    return text.lstrip().startswith("/") and not text.lstrip().startswith("//")


def unescaped(text: str) -> str:
    """The message that ``text`` is: a leading ``//`` stands for a slash."""
    stripped = text.lstrip()
    return stripped[1:] if stripped.startswith("//") else text


async def run_command(conversation: Conversation, text: str) -> None:
    """Do what the slash command ``text`` asks for, or say that there is no such command."""
    name, _, argument = text.strip().removeprefix("/").partition(" ")
    command = COMMANDS.get(name.strip().lower())
    if command is None:
        conversation.notes.error(f"there is no /{conversation.notes.fit(name, 40)}{_nearest(name)} (// sends a slash to the agent)")
        return
    await command.handler(conversation, argument.strip())


def _nearest(name: str) -> str:
    found = difflib.get_close_matches(name.lower()[:40], COMMANDS, n=1, cutoff=0.5)
    return f": did you mean {COMMANDS[found[0]].usage}?" if found else ": /help lists what there is"


async def _help(conversation: Conversation, argument: str) -> None:
    del argument
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        conversation.notes.line((f"{command.usage:<{width}}", "bold"), f"  {command.help}")
    conversation.notes.hint("A message that begins with // is sent with one slash. Ctrl-C stops an answer, Ctrl-D leaves.")


async def _trace(conversation: Conversation, argument: str) -> None:
    notes, turns = conversation.notes, conversation.turns
    if not turns:
        notes.error("there is no turn yet: send a message first")
    elif argument and not (argument.isascii() and argument.isdigit() and 1 <= int(argument[:9]) <= len(turns)):
        notes.error(f"/trace takes the number of a turn, 1 to {len(turns)}")
    else:
        result = turns[int(argument) - 1 if argument else -1]
        if not conversation.show_trace(result):
            notes.error("the spans of this turn are not kept" if result.trace_id else "telemetry is switched off: there are no spans")


async def _exit(conversation: Conversation, argument: str) -> None:
    del argument
    conversation.left = True


COMMANDS: Final = {
    command.name: command
    for command in (
        SlashCommand("help", "", "list what can be typed", _help),
        SlashCommand("trace", "[n]", "show the spans of turn n, by default of the last one", _trace),
        SlashCommand("usage", "", "tokens and cost so far, by turn, model and prompt tool", show_usage),
        SlashCommand("exit", "", "leave (as do exit, quit and Ctrl-D)", _exit),
    )
}
"""Every slash command by name, in the order in which help shows them."""
