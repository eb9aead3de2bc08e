"""A tool call as a line: what was called with what, how it went, how long it took."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from rich.cells import cell_len

from holodeck.cli.console import Notes
from holodeck.models.tool_execution import ToolExecution, ToolStatus
from holodeck.traces import format_duration

__all__ = ["call_text", "show_execution"]

_PLAIN: Final = re.compile(r"[\w.:/@+-]{1,80}", re.ASCII)
_LONGEST: Final = 200  # characters of one argument that are looked at for a line
_LEAST_RESULT: Final = 16  # cells below which a result says nothing
_LEAST: Final = 8  # cells that are left for arguments, however long the rest is


def call_text(execution: ToolExecution) -> str:
    """The call, e.g. ``lookup_order(order_id=1042)``."""
    return f"{execution.tool_name}({arguments_text(execution.parameters)})"


def arguments_text(parameters: Mapping[str, Any]) -> str:
    """Arguments as ``name=value``; values are JSON where they are not plain words."""
    return ", ".join(f"{name}={_value(value)}" for name, value in parameters.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value[:_LONGEST], ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, default=str)


def show_execution(notes: Notes, execution: ToolExecution, *, verbose: bool) -> None:
    """Show a call that has ended: in one line, or with everything that went in and out."""
    if verbose:
        _show_all(notes, execution)
    else:
        _show_line(notes, execution)


def _outcome(notes: Notes, execution: ToolExecution) -> tuple[str, str]:
    """The end of the line and its style."""
    glyphs = notes.glyphs
    failed = execution.status is ToolStatus.FAILED
    time = "" if execution.execution_time is None else " " + format_duration(execution.execution_time, ascii_only=glyphs.ascii)
    return f" {glyphs.failed if failed else glyphs.done}{time}", "red" if failed else "green"


def _show_line(notes: Notes, execution: ToolExecution) -> None:
    width = notes.console.width if notes.console.is_terminal else 120
    lead, (mark, style) = f"{notes.glyphs.tool} ", _outcome(notes, execution)
    name = notes.fit(execution.tool_name, max(width // 2, _LEAST))
    room = width - cell_len(lead + name + "()" + mark)
    arguments = notes.fit(arguments_text(execution.parameters), max(room, _LEAST))
    reason = " ".join((execution.error_message or "").split())
    beside = bool(reason) and cell_len(arguments) + 1 + cell_len(notes.fit(reason, width)) <= room
    end = [(f" {reason}", "red")] if beside else _result(notes, execution, room - cell_len(arguments))
    notes.line((lead, "dim"), (name, "bold"), (f"({arguments})", "dim"), (mark, style), *end)
    if reason and not beside:
        notes.line((f"  {notes.fit(reason, max(width - 2, _LEAST))}", "red"))


def _result(notes: Notes, execution: ToolExecution, room: int) -> list[tuple[str, str]]:
    """The beginning of the result, where there is room for some of it."""
    result = (execution.result or "")[: room * 4]  # white space is left out
    if not result.strip() or room < _LEAST_RESULT:
        return []
    arrow = " -> " if notes.glyphs.ascii else " → "
    return [(arrow + notes.fit(result, room - len(arrow)), "dim")]


def _show_all(notes: Notes, execution: ToolExecution) -> None:
    notes.line((f"{notes.glyphs.tool} ", "dim"), (execution.tool_name, "bold"), _outcome(notes, execution))
    for name, value in execution.parameters.items():
        _show_part(notes, name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    if execution.status is ToolStatus.FAILED:
        _show_part(notes, "error", execution.error_message or "", "red")
    else:
        _show_part(notes, "result", execution.result or "")


def _show_part(notes: Notes, label: str, text: str, style: str = "") -> None:
    indented = text.replace("\n", "\n" + " " * 4)
    notes.line((f"  {label}: ", "dim"), (indented, style))
