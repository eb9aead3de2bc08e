"""``holodeck test``: its arguments, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["test"]


@click.command()
@click.argument("agent", type=click.Path(path_type=Path))
@click.argument("cases", type=click.Path(path_type=Path), nargs=-1)
@click.option("-k", "pattern", metavar="TEXT", help="Run the cases whose name holds TEXT, or matches it where it has a '*'.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", default=1, show_default=True, help="Run N cases side by side.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", default=1, show_default=True, help="Run each case N times.")
@click.option(
    "--pass-rate",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="PART",
    help="Part of the repetitions that has to pass, for all cases.",
)
@click.option("--model", metavar="PROVIDER/NAME", help="Ask this model, whatever agent file and cases say.")
@click.option("--replay-tools", is_flag=True, help="Take results of tools from the script or recording that answers; run no tool.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="FILE", help="Compare with what was accepted last.")
@click.option("--update", is_flag=True, help="Accept this run: write it to the baseline.")
@click.option("--tolerance", multiple=True, metavar="NAME=PART", help="Accept PART more than the baseline; NAME: tokens, cost or duration.")
@click.option("--junit-xml", type=click.Path(path_type=Path), metavar="FILE", help="Write a report for CI systems.")
@click.option("--observability/--no-observability", default=None, help="Send the traces over OTLP.  [default: as the agent file says]")
@click.option("--trace-file", type=click.Path(path_type=Path), metavar="FILE", help="Append the spans to FILE, as lines of OTLP/JSON.")
@click.option("--capture-content", is_flag=True, default=None, help="Put prompts, answers, tool arguments and results on spans.")
@click.option("-v", "--verbose", is_flag=True, help="Show warnings of libraries, and tracebacks.")
@click.pass_context
def test(ctx: click.Context, /, agent: Path, **arguments: Any) -> int:
    """Run an agent's test cases.

    AGENT is its YAML file. CASES are case files, or directories of them; without any, cases.yaml, *.cases.yaml and cases/*.yaml beside the
    agent are run, and the test_cases in the agent file.

    Exit codes: 0, 1 (a case failed), 2 (configuration, a script that has run out), 5 (no case ran), 130, 143, 129 (ended by a signal).
    """
    from holodeck.cli.testing import TestOptions, run_test  # noqa: PLC0415 - --help has to be quick

    ctx.obj["verbose"] = arguments["verbose"]
    return run_test(TestOptions(agent, **arguments))
