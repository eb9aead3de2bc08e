"""Commands that show something and change nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holodeck.cli.footer import show_link
from holodeck.models.agent import McpTool
from holodeck.models.chat import SessionState
from holodeck.models.observability import TelemetryStatistics

if TYPE_CHECKING:
    from holodeck.cli.conversation import Conversation
    from holodeck.models.events import TurnResult

__all__ = ["show_history", "show_stats", "show_tools", "show_turn"]


async def show_turn(conversation: Conversation, argument: str) -> None:
    """``/trace [n]``: the spans of a turn."""
    notes, turns = conversation.notes, conversation.turns
    if not turns:
        conversation.complain("there is no turn yet: send a message first")
    elif argument and not (argument.isascii() and argument.isdigit() and 1 <= int(argument[:9]) <= len(turns)):
        conversation.complain(f"/trace takes the number of a turn, 1 to {len(turns)}")
    else:
        result = turns[int(argument) - 1 if argument else -1]
        if not conversation.show_trace(result):
            conversation.complain(_why_no_spans(conversation, result))
        show_link(notes, result, conversation.agent.settings)


def _why_no_spans(conversation: Conversation, result: TurnResult) -> str:
    if result.trace_id:
        return "the spans of this turn are not kept"
    off = conversation.agent.settings.disabled
    return "telemetry is switched off: there are no spans" if off else "this turn was stopped before it began: it has no spans"


async def show_tools(conversation: Conversation, argument: str) -> None:
    """``/tools``: what the model is offered."""
    del argument
    agent, notes = conversation.agent, conversation.notes
    for spec in agent.toolbox.specs:
        asks = [(f" {notes.glyphs.dot} asks first", "yellow")] if agent.needs_approval(spec.name) else []
        notes.line((spec.name, "bold"), *asks, *([f"  {' '.join(spec.description.split())}"] if spec.description else []))
        if conversation.verbose:
            schema = json.dumps(spec.parameters, indent=2, ensure_ascii=False)
            notes.line(("  " + schema.replace("\n", "\n  "), "dim"))
    starting = conversation.session.state is SessionState.INITIALIZING and any(isinstance(t, McpTool) for t in agent.config.tools)
    if starting:
        notes.hint("MCP servers are still starting: their tools are not known yet.")
    elif not agent.toolbox.specs:
        notes.hint("This agent has no tools.")


async def show_history(conversation: Conversation, argument: str) -> None:
    """``/history``: what was said, without tools and measures."""
    del argument
    notes = conversation.notes
    if not conversation.turns:
        notes.hint("Nothing has been said yet.")
    for number, (text, result) in enumerate(zip(conversation.asked, conversation.turns, strict=True), 1):
        notes.line((f"{number} ", "dim"), ("> ", "bold"), text)
        if result.message is not None:
            notes.line(result.message.content)
        if result.error is not None:
            notes.hint(f"({result.error.message})")


async def show_stats(conversation: Conversation, argument: str) -> None:
    """``/stats``: what became of the telemetry."""
    del argument
    if conversation.session.state is SessionState.INITIALIZING:
        conversation.notes.hint("Nothing has been measured yet: the agent is still loading.")
        return
    settings = conversation.agent.settings
    if not (settings.traces or settings.metrics or settings.logs):
        conversation.notes.hint("Telemetry stays in this process (--observability sends it): there is nothing to deliver.")
        return
    for label, value in _facts(conversation.agent.telemetry.statistics()):
        conversation.notes.line((f"{label:<16}", "dim"), value)


def _facts(stats: TelemetryStatistics) -> list[tuple[str, str]]:
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in stats.dropped.items() if count) or "0"
    facts = [
        ("spans ended", f"{stats.made:,}"),
        ("left by others", f"{stats.recovered:,}"),
        ("delivered", f"{stats.delivered:,}"),
        ("waiting", f"{stats.queued:,}"),
        ("refused", f"{stats.rejected:,}"),
        ("given up", dropped),
        ("metric points", f"{stats.metrics_exported:,} sent, {stats.metrics_failed:,} failed"),
        ("log records", f"{stats.logs_exported:,} sent, {stats.logs_failed:,} failed"),
    ]
    return facts + ([("last failure", stats.reason)] if stats.reason else [])
