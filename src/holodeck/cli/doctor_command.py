"""``holodeck doctor``: its arguments, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import click

__all__ = ["doctor"]


@click.command()
@click.argument("agent", type=click.Path(path_type=Path), required=False)
@click.option(
    "--observability/--no-observability", default=None, help="Try the way to the collector.  [default: as environment and agent file say]"
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1, max=300),
    metavar="SECONDS",
    default=10,
    show_default=True,
    help="Wait this long for each thing that may not answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object on stdout.")
def doctor(agent: Path | None, observability: bool | None, timeout: float, as_json: bool) -> int:
    """Check an agent, its model, and the way to the collector.

    Looks at the agent file AGENT, its keys (never shown), its tools (they are loaded, MCP servers are started and stopped), and whether
    the model's server answers; no token is spent. Shows every telemetry setting with where it came from. If telemetry goes out over OTLP,
    one span and one measurement are sent there: were they accepted, by whom, and if not, what has to be changed?

    Without AGENT only telemetry is checked. Exit codes: 0, 1 (a check failed), 2 (the command line is not usable).
    """
    from holodeck.cli.doctor.run import examine  # noqa: PLC0415 - --help has to be quick

    return examine(agent, os.environ, observability=observability, seconds=timeout, json=as_json)
