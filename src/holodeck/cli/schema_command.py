"""``holodeck schema``: the JSON Schema of agent files, for editors."""

from __future__ import annotations

import json

import click

__all__ = ["schema"]


@click.command()
def schema() -> None:
    """Print the JSON Schema of agent files.

    An editor that knows it completes keys and marks mistakes: save it with 'holodeck schema > agent.schema.json' and begin an agent file
    with the line '# yaml-language-server: $schema=agent.schema.json'.
    """
    from holodeck.config import agent_schema  # noqa: PLC0415 - --help has to be quick

    click.echo(json.dumps(agent_schema(), indent=2))
