"""``holodeck chat``: its arguments, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["chat"]


@click.command()
@click.argument("agent", type=click.Path(path_type=Path))
@click.option(
    "--observability/--no-observability", default=None, help="Send spans, metrics and logs over OTLP.  [default: as the agent file says]"
)
@click.option("-v", "--verbose", is_flag=True, help="Show arguments and results of tools in full, and the span tree after each turn.")
@click.option(
    "--max-messages", type=click.IntRange(min=1), metavar="N", default=50, show_default=True, help="End the session after N messages."
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="End the session after the turn with which it has cost this many US dollars.",
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), metavar="N", help="End the session after the turn with which it has taken N tokens."
)
@click.option("--model", metavar="PROVIDER/NAME", help="Ask this model instead of the agent file's.")
@click.option(
    "-m", "--message", "messages", metavar="TEXT", multiple=True, help="Send TEXT and leave after the answer; may be given several times."
)
@click.option("--trace-file", type=click.Path(path_type=Path), metavar="FILE", help="Append the spans to FILE, as lines of OTLP/JSON.")
@click.option("--capture-content", is_flag=True, default=None, help="Put prompts, answers, tool arguments and results on spans.")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Write what the model answers to FILE, as a script.")
@click.option("--redact", is_flag=True, help="Hide secrets in the recording.")
@click.option("--replay-tools", is_flag=True, help="Take results of tools from the script or recording that answers; run no tool.")
@click.option("--yes", is_flag=True, help="Run tools with 'approval: ask' without asking; without a terminal they are denied otherwise.")
@click.option("--no-history", is_flag=True, help="Do not keep what is typed for the next session.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a turn on stdout.")
@click.pass_context
def chat(ctx: click.Context, /, agent: Path, **arguments: Any) -> int:
    """Talk to an agent.

    AGENT is its YAML file. In a terminal this is a conversation: /help lists what can be typed, Ctrl-C stops an answer, Ctrl-D leaves.
    With -m, or when input or output is piped, there is one turn a line, answers alone go to stdout and everything else to stderr.

    Exit codes: 0, 1 (a turn or a slash command failed, with -m or piped input), 2 (configuration), 130, 143, 129 (ended by SIGINT,
    SIGTERM, SIGHUP).
    """
    from holodeck.cli.run import ChatOptions, run_chat  # noqa: PLC0415 - --help has to be quick

    ctx.obj["verbose"] = arguments["verbose"]
    return run_chat(ChatOptions.of(agent, **arguments))
