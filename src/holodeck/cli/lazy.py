"""A group of commands whose modules are imported when one of them is used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyCommand", "LazyGroup", "ReaderGone"]


class ReaderGone(Exception):
    """Nobody reads standard output any more; click would make exit code 1 of the ``BrokenPipeError``."""


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is.

    Attributes:
        target: ``module:name`` of the click command.
        help: What it does, in a few words; also the first line of its own help.
    """

    target: str
    help: str


class LazyGroup(click.Group):
    """Lists its commands from a table, so that ``--help`` imports none of them.

    Args:
        table: Name → command, in the order in which help shows them.
    """

    def __init__(self, *args: Any, table: dict[str, LazyCommand], **options: Any) -> None:
        super().__init__(*args, **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the table's order."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is none of this name."""
        del ctx
        if (entry := self.table.get(cmd_name)) is None:
            return None
        module, _, name = entry.target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            ReaderGone: Its reader has gone away.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error
