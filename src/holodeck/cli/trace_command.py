"""``holodeck trace``: its commands and their arguments; what they do is in :mod:`holodeck.cli.trace`."""

from __future__ import annotations

import gc
import os
import re
from pathlib import Path
from typing import Any

import click

__all__ = ["trace"]

_FILE = click.Path(path_type=Path, allow_dash=True)
_width = click.option("--width", type=click.IntRange(min=20), metavar="N", help="Cells of a line.  [default: the terminal's, or 120]")
_json = click.option("--json", "as_json", is_flag=True, help="Write JSON for programs: a line for each trace, or one for a comparison.")
_ascii = click.option("--ascii", "ascii_only", is_flag=True, help="Write nothing but ASCII.")


def _trace_ids(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Trace ids as they stand in files; what cannot be the beginning of one is refused: it would find nothing, or everything."""
    if isinstance(value, tuple):
        return tuple(map(_trace_id, value))
    return None if value is None else _trace_id(value)


def _trace_id(text: str) -> str:
    found = text.strip().lower()
    if not re.fullmatch("[0-9a-f]{1,32}", found):
        raise click.BadParameter(f"{text!r} is no trace id: write 32 hex digits, or the first of them ('holodeck trace list' shows ids)")
    return found


@click.group()
def trace() -> None:
    """Show, list and compare traces; send what waits.

    A FILE holds lines of OTLP/JSON, whoever wrote them: 'holodeck chat --trace-file', the collector's file exporter, or Jaeger's API.
    '-' is standard input.
    """


@trace.command()
@click.argument("file", type=_FILE, required=False)
@click.option("--trace-id", metavar="ID", callback=_trace_ids, help="Show this trace only; the beginning of its id is enough.")
@click.option("--content/--no-content", default=True, help="Show captured prompts, answers, arguments and results.  [default: show]")
@click.option(
    "--html", metavar="PAGE", type=_FILE, is_flag=False, flag_value="-", help="Write one self-contained HTML page to PAGE instead."
)
@_json
@_width
@_ascii
def show(file: Path | None, html: Path | None, trace_id: str | None, content: bool, as_json: bool, **form: Any) -> None:
    """Show traces as trees with bars on a common time axis.

    Traces of a long FILE are shown one after the other while it is read. With '--html PAGE' the same goes into one page without scripts
    and without anything that is loaded from elsewhere; if only PAGE is named, that is the FILE, and the page goes to standard output.

    Exit codes: 0, 1 (there is no trace in FILE), 2 (FILE cannot be read, or has no trace ID).
    """
    from holodeck.cli.trace.page import Page  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.show import show_json, show_page, show_traces  # noqa: PLC0415 - as above

    _read_once()
    if html is not None and as_json:
        raise click.UsageError("--html and --json: use one of them")
    if html is not None:
        show_page(file or html, html if file else Path("-"), trace_id=trace_id, content=content)
    elif file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    elif as_json:
        show_json(file, trace_id=trace_id, content=content)
    else:
        show_traces(file, Page(form["width"], ascii_only=form["ascii_only"]), trace_id=trace_id, content=content)


@trace.command("list")
@click.argument("file", type=_FILE)
@_json
@_width
@_ascii
def list_(file: Path, as_json: bool, width: int | None, ascii_only: bool) -> None:
    """List the traces of FILE: id, start, duration, spans, tokens, cost, failures.

    A FILE without traces is said to be one on stderr. Exit codes: 0, 2 (FILE cannot be read).
    """
    from holodeck.cli.trace.data import list_as_json  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.listing import list_traces  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.page import Page  # noqa: PLC0415 - as above

    _read_once()
    if as_json:
        list_as_json(file)
    else:
        list_traces(file, Page(width, ascii_only=ascii_only))


@trace.command()
@click.argument("before", metavar="A", type=_FILE)
@click.argument("after", metavar="[B]", type=_FILE, required=False)
@click.option(
    "--trace-id",
    "trace_ids",
    metavar="ID",
    multiple=True,
    callback=_trace_ids,
    help="Compare this trace; given twice: the one of A, the one of B.",
)
@click.option(
    "--turn", "turns", type=click.IntRange(min=1), metavar="N", multiple=True, help="Compare the Nth trace; given twice: of A, and of B."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if anything is different that is not merely better.")
@click.option(
    "--slower",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    default=25,
    show_default=True,
    help="A span that takes this much longer (and 10 ms) is slower.",
)
@_json
@_width
@_ascii
@click.pass_context
def diff(ctx: click.Context, /, before: Path, after: Path | None, **options: Any) -> int:
    """Compare the traces of A with those of B, span by span.

    Spans are aligned by operation and name, traces by their order. What is shown: spans that were added or removed, that fail now, that
    are slower, that take more tokens or cost more, or whose model is another. Without B, two traces of A are compared.

    Exit codes: 0, 1 (different, with --exit-code), 2 (a file cannot be read).
    """
    from holodeck.cli.trace.compare import Selection, compared, show_differences  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.data import diff_data, write_json  # noqa: PLC0415 - as above
    from holodeck.cli.trace.page import Page  # noqa: PLC0415 - as above
    from holodeck.traces import DiffOptions, differs  # noqa: PLC0415 - as above

    del ctx
    _read_once()
    selection = Selection(options["trace_ids"], options["turns"])
    differences = compared(before, after, selection, DiffOptions(share=options["slower"] / 100))
    if options["as_json"]:
        write_json(diff_data(differences))
    else:
        show_differences(differences, Page(options["width"], ascii_only=options["ascii_only"]))
    return int(differs(differences) and options["exit_code"])


@trace.group(invoke_without_command=True)
@click.pass_context
def spool(ctx: click.Context) -> None:
    """Show the spans that wait for a collector: by destination, with those of running and of crashed processes."""
    if ctx.invoked_subcommand is not None:
        return
    from holodeck.cli.trace.page import Page  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.spool import list_spool  # noqa: PLC0415 - as above

    list_spool(os.environ, Page(None, ascii_only=False))


@spool.command()
@click.argument("agent", type=click.Path(path_type=Path), required=False)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1, max=3600), metavar="SECONDS", default=30, show_default=True, help="Try for this long."
)
def flush(agent: Path | None, timeout: float) -> int:
    """Send the spans that wait, now.

    They go where the agent file AGENT and the environment say; without AGENT, where the environment says. Spans with another destination,
    or that went with other headers, stay where they are.

    Exit codes: 0, 1 (some were not taken), 2 (configuration).
    """
    from holodeck.cli.trace.page import Page  # noqa: PLC0415 - --help has to be quick
    from holodeck.cli.trace.spool import flush as send  # noqa: PLC0415 - as above

    return int(not send(agent, os.environ, timeout, Page(None, ascii_only=False)))


def _read_once() -> None:
    """This process reads spans, writes lines and ends: looking for cycles would take longer than all of that."""
    gc.disable()
