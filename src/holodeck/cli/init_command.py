"""``holodeck init``: a small agent that runs on a bare machine."""

from __future__ import annotations

import os
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from holodeck.errors import ConfigError

__all__ = ["init"]

_FILES: Final = {"agent.yaml": "agent.yaml", "script.yaml": "script.yaml", "tools.py": "tools.py.txt"}
"""File that is written → its template."""


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def init(directory: Path) -> None:
    """Write a small agent that runs at once.

    It is written into DIR, which is made if it does not exist: an agent file, a tool in Python, and a script that stands for the model,
    so that it needs no key. Nothing is overwritten.
    """
    for name in _FILES:
        if os.path.lexists(directory / name):
            raise ConfigError(f"{directory / name} exists already: name another directory, nothing was written")
    _make(directory)
    written: list[Path] = []
    try:
        for name, template in _FILES.items():
            _write(directory / name, (files("holodeck.cli") / "templates" / template).read_text(encoding="utf-8"), written)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise ConfigError(f"{directory}: cannot be written to ({error.strerror}): name a directory you may write to") from error
    _say_what_next(directory)


def _make(directory: Path) -> None:
    """Make the directory and those above it, as far as they are missing.

    Raises:
        ConfigError: One of them is something else, or must not be made.
    """
    if os.path.exists(directory) and not os.path.isdir(directory):  # noqa: PTH110, PTH112 - Path's raise for a name that is too long
        raise ConfigError(f"{directory} is a file: name a directory, which is made if it does not exist")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        above = next((path for path in directory.absolute().parents if os.path.lexists(path)), Path("/"))
        why = f"{above} is a file" if above.is_file() else f"in {above}: {error.strerror}"
        raise ConfigError(f"{directory} cannot be made ({why}): name a directory that you may make or write to") from error


def _write(path: Path, text: str, written: list[Path]) -> None:
    with path.open("x", encoding="utf-8") as file:  # "x": whoever was quicker is not overwritten either
        written.append(path)
        file.write(text)


def _say_what_next(directory: Path) -> None:
    from holodeck.lib.validation import terminal_safe  # noqa: PLC0415 - --help has to be quick

    for name in _FILES:
        click.echo(terminal_safe(f"wrote {directory / name}"))
    click.echo("Now type:")
    click.echo(terminal_safe(f"  holodeck chat {shlex.quote(str(directory / 'agent.yaml'))}"))
