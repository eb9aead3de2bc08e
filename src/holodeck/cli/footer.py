"""The line under an answer: what the turn took."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from holodeck.cli.console import Notes
from holodeck.lib.money import format_usd
from holodeck.lib.validation import terminal_safe
from holodeck.models.events import TurnResult
from holodeck.models.observability import TelemetrySettings
from holodeck.models.tool_execution import ToolStatus
from holodeck.traces import format_count, format_duration

__all__ = ["facts_of", "show_footer", "show_link", "trace_link"]


def show_footer(notes: Notes, result: TurnResult, settings: TelemetrySettings) -> None:
    """Show duration, time to first token, tokens, tools and trace id of a turn."""
    dot = f" {notes.glyphs.dot} "
    facts = Text(dot.join(facts_of(result, ascii_only=notes.glyphs.ascii)), style="dim", end="")
    if not result.trace_id:
        notes.print(facts)
        return
    trace_id, link = terminal_safe(result.trace_id), trace_link(result.trace_id, settings)
    trace = Text("trace ", style="dim", end="").append(trace_id, style=Style(link=link) if link else None)
    if notes.console.is_terminal and facts.cell_len + len(dot) + trace.cell_len > notes.console.width:
        notes.print(facts)  # an id that is broken in two cannot be copied
        notes.print(trace)
    else:
        notes.print(facts.append(dot).append_text(trace))


def facts_of(result: TurnResult, *, ascii_only: bool) -> Iterator[str]:
    """The facts that the footer shows before the trace id."""
    yield format_duration(result.duration, ascii_only=ascii_only)
    if result.time_to_first_token is not None:
        yield f"first token {format_duration(result.time_to_first_token, ascii_only=ascii_only)}"
    usage = result.usage
    if result.model_requests:
        yield f"{format_count(usage.prompt_tokens)} + {format_count(usage.completion_tokens)} tokens" if usage else "tokens unknown"
    if result.finish_reason == "length":
        yield "cut off at max_tokens"
    if result.cost_usd is not None:
        yield format_usd(result.cost_usd)
    if calls := result.tool_calls:
        failed = sum(call.status is ToolStatus.FAILED for call in calls)
        yield f"{len(calls)} tool{'s' * (len(calls) > 1)}" + (f" ({failed} failed)" if failed else "")


def trace_link(trace_id: str, settings: TelemetrySettings) -> str | None:
    """Where Jaeger shows the trace; None where that is not known, or where spans are not sent."""
    return f"{settings.jaeger_url}/trace/{trace_id}" if settings.jaeger_url and settings.traces else None


def show_link(notes: Notes, result: TurnResult, settings: TelemetrySettings) -> None:
    """Show the address of the turn in Jaeger in full, where there is one: not every terminal opens links."""
    if result.trace_id and (link := trace_link(result.trace_id, settings)):
        notes.line(("in Jaeger: ", "dim"), link, wrap=False)
