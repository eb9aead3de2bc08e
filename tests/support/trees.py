"""Span trees of trace files, without what differs between two runs of the same turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holodeck.traces import as_data, build_trees, read_spans

__all__ = ["trees_in"]

_DIFFERS = {"gen_ai.response.time_to_first_chunk", "holodeck.tool.execution_time", "gen_ai.conversation.id"}


def trees_in(trace_file: Path) -> list[dict[str, Any]]:
    """The turns of a file of OTLP/JSON lines as plain data; durations and the conversation's id are left out."""
    with trace_file.open(encoding="utf-8") as lines:
        return [_lasting(as_data(root)) for root in build_trees(read_spans(lines))]


def _lasting(node: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in node["attributes"].items() if name not in _DIFFERS}
    return {**node, "attributes": kept, "children": [_lasting(child) for child in node["children"]]}
