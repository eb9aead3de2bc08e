"""What can be typed beside messages: one table, from which help and suggestions come."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holodeck.cli.commands.show import show_history, show_stats, show_tools, show_turn
from holodeck.cli.commands.talk import call_tool, reset, retry, toggle_verbose
from holodeck.cli.commands.transcript import save
from holodeck.cli.usage import show_usage

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation

__all__ = ["COMMANDS", "SlashCommand", "command_of", "is_command", "run_command", "unescaped"]

Handler = Callable[["Conversation", str], Awaitable[None]]


@dataclass(frozen=True)
class SlashCommand:
    """One row of the table.

    Attributes:
        name: What is typed after the slash.
        arguments: What may follow, as help shows it.
        help: What it does, in a few words.
        handler: Does it; gets what followed the name.
        completes: What Tab offers behind the name: ``tool``, ``file`` or nothing.
        needs_session: It waits until the agent has been loaded.
    """

    name: str
    arguments: str
    help: str
    handler: Handler
    completes: str = ""
    needs_session: bool = False

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


def command_of(text: str) -> SlashCommand | None:
    """The command that ``text`` names, if there is such a one."""
    return COMMANDS.get(_split(text)[0].lower())


def _split(text: str) -> tuple[str, str]:
    name, *rest = text.strip().removeprefix("/").split(maxsplit=1) or [""]
    return name, rest[0] if rest else ""


async def run_command(conversation: Conversation, text: str) -> None:
    """Do what the slash command ``text`` asks for, or say that there is no such command."""
    name, argument = _split(text)
    command = command_of(text)
    if command is None:
        conversation.complain(f"there is no /{conversation.notes.fit(name, 40)}{_nearest(name)} (// sends a slash to the agent)")
    elif argument and not command.arguments:
        conversation.complain(f"/{command.name} takes nothing that follows it: /help lists what there is")
    else:
        await command.handler(conversation, argument.strip())


def _nearest(name: str) -> str:
    found = difflib.get_close_matches(name.lower()[:40], COMMANDS, n=1, cutoff=0.5)
    return f": did you mean {COMMANDS[found[0]].usage}?" if found else ": /help lists what there is"


async def _help(conversation: Conversation, argument: str) -> None:
    del argument
    notes = conversation.notes
    if notes.narrow:
        for command in COMMANDS.values():
            notes.line((command.usage, "bold"))
            notes.line(textwrap.fill(command.help, notes.console.width - 1, initial_indent="  ", subsequent_indent="  "))
    else:
        width = max(len(command.usage) for command in COMMANDS.values())
        for command in COMMANDS.values():
            notes.line((f"{command.usage:<{width}}", "bold"), f"  {command.help}")
    notes.hint("A message that begins with // is sent with one slash. Ctrl-C stops an answer, Ctrl-D leaves.")


async def _exit(conversation: Conversation, argument: str) -> None:
    del argument
    conversation.left = True


COMMANDS: Final = {
    command.name: command
    for command in (
        SlashCommand("help", "", "list what can be typed", _help),
        SlashCommand("trace", "[n]", "show the spans of turn n, by default of the last one", show_turn),
        SlashCommand("usage", "", "tokens and cost so far, by turn, model and prompt tool", show_usage),
        SlashCommand("tools", "", "list the agent's tools; after /verbose with their parameters", show_tools),
        SlashCommand(
            "call", "TOOL key=value ...", "run a tool yourself, and offer its result to the model", call_tool, "tool", needs_session=True
        ),
        SlashCommand("history", "", "show what was said", show_history),
        SlashCommand("retry", "", "send the last message again, in place of its answer", retry, needs_session=True),
        SlashCommand("reset", "", "begin a new conversation", reset, needs_session=True),
        SlashCommand("verbose", "", "show tools in full and the spans after each turn, or stop doing so", toggle_verbose),
        SlashCommand("save", "FILE", "write what was said to FILE: .json as JSON, anything else as Markdown", save, "file"),
        SlashCommand("stats", "", "what became of the spans, metrics and logs", show_stats),
        SlashCommand("exit", "", "leave (as do exit, quit and Ctrl-D)", _exit),
    )
}
"""Every slash command by name, in the order in which help shows them."""
