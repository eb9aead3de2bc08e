"""``holodeck schema``: JSON Schemas of agent files, case files and scripts, for editors."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["schema"]


@click.command()
@click.argument("kind", type=click.Choice(["agent", "cases", "script"]), default="agent")
def schema(kind: str) -> None:
    """Print the JSON Schema of agent files, of files of test cases, or of scripts.

    An editor that knows it completes keys and marks mistakes: save it with 'holodeck schema > agent.schema.json' and begin an agent file
    with the line '# yaml-language-server: $schema=agent.schema.json'.
    """
    click.echo(json.dumps(_schema(kind), indent=2))


def _schema(kind: str) -> dict[str, Any]:
    if kind == "agent":
        from holodeck.config import agent_schema  # noqa: PLC0415 - --help has to be quick

        return agent_schema()
    from holodeck.testing.cases.schema import case_schema, script_schema  # noqa: PLC0415 - as above

    return case_schema() if kind == "cases" else script_schema()
