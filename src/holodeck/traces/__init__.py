"""Reads OTLP/JSON, makes trees of spans, and lays them out as a waterfall of plain styled segments.

The way through: :func:`read_spans` (or :func:`spans_of`) → :func:`build_trees` → :func:`waterfall`, :func:`summarise` or :func:`as_data`.
Any writer's spans will do; nothing here imports OpenTelemetry or draws on a terminal.
"""

from __future__ import annotations

from holodeck.errors import TraceReadError
from holodeck.traces.cells import clean, fit, width
from holodeck.traces.complete import complete_traces, lines_of
from holodeck.traces.diff import Difference, DiffOptions, cost_of, diff_trees, differs, tally
from holodeck.traces.difflines import diff_lines
from holodeck.traces.html import html_page
from holodeck.traces.numbers import format_count, format_duration, format_tokens, format_when
from holodeck.traces.otlp import read_spans, spans_of
from holodeck.traces.records import EventRecord, LinkRecord, SpanRecord
from holodeck.traces.segments import Line, Segment, WaterfallOptions, plain
from holodeck.traces.summary import TraceSummary, Usage, summarise, usage_of
from holodeck.traces.tree import Node, as_data, build_trees, walk
from holodeck.traces.waterfall import iter_waterfall, waterfall

__all__ = [
    "DiffOptions",
    "Difference",
    "EventRecord",
    "Line",
    "LinkRecord",
    "Node",
    "Segment",
    "SpanRecord",
    "TraceReadError",
    "TraceSummary",
    "Usage",
    "WaterfallOptions",
    "as_data",
    "build_trees",
    "clean",
    "complete_traces",
    "cost_of",
    "diff_lines",
    "diff_trees",
    "differs",
    "fit",
    "format_count",
    "format_duration",
    "format_tokens",
    "format_when",
    "html_page",
    "iter_waterfall",
    "lines_of",
    "plain",
    "read_spans",
    "spans_of",
    "summarise",
    "tally",
    "usage_of",
    "walk",
    "waterfall",
    "width",
]
