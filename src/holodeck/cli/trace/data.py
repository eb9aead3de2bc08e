"""Traces as JSON for programs: a line for each trace, or one for a comparison."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from holodeck.cli.trace.reading import by_trace, say_no_traces
from holodeck.traces import Difference, Node, SpanRecord, cost_of, differs, summarise, tally, walk
from holodeck.traces.names import holds_content
from holodeck.traces.tree import KINDS, STATUSES
from holodeck.traces.waterfall import error_of

__all__ = ["diff_data", "list_as_json", "trace_data", "write_json"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def write_json(data: Any) -> None:
    """Write one line, in ASCII: harmless in a terminal, and the same whatever the locale is.

    Raises:
        BrokenPipeError: Nobody reads any more.
    """
    if sys.stdout is not None:
        sys.stdout.write(json.dumps(data) + "\n")


def list_as_json(path: Path) -> None:
    """Write what each trace comes to. On stderr it is said if there is none.

    Raises:
        SettingError: The file cannot be read; what could be read has been written by then.
    """
    found = False
    for root in (root for roots in by_trace(path) for root in roots):
        found = True
        write_json(_summary(root))
    if not found:
        say_no_traces(path)


def trace_data(root: Node, *, content: bool) -> dict[str, Any]:
    """What the trace comes to, and its spans, parents first.

    Args:
        root: The tree.
        content: Attributes that may hold prompts, answers, arguments or results are kept.
    """
    spans = [_span(node.span) | {"depth": depth, "attributes": dict(_attributes(node.span, content=content))} for node, depth in walk(root)]
    return _summary(root) | {"spans": spans}


def diff_data(differences: Sequence[Difference]) -> dict[str, Any]:
    """What is different: whether anything is that counts, how often each kind occurs, and the spans of both sides."""
    found = [
        {"kinds": list(d.kinds), "depth": d.depth, "before": d.before and _span(d.before.span), "after": d.after and _span(d.after.span)}
        for d in differences
        if d.kinds
    ]
    return {"different": differs(differences), "counts": dict(tally(differences)), "compared": len(differences), "differences": found}


def _summary(root: Node) -> dict[str, Any]:
    summary = asdict(summarise(root))
    summary["span_count"] = summary.pop("spans")
    summary["conversation_id"] = summary["conversation_id"] or None
    return summary | {"start": _time(root.span.start), "duration": _duration(root.span), "cost_usd": cost_of(root.span)}


def _span(span: SpanRecord) -> dict[str, Any]:
    return {
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_id": span.parent_id or None,
        "name": span.name,
        "operation": span.operation or None,
        "kind": KINDS[span.kind],
        "start": _time(span.start),
        "duration": _duration(span),
        "status": STATUSES[span.status_code],
        "error": error_of(span) if span.failed else None,
        "input_tokens": span.input_tokens,
        "output_tokens": span.output_tokens,
        "cached_tokens": span.cached_tokens,
        "cost_usd": cost_of(span),
    }


def _time(nanos: int) -> str | None:
    """In UTC (ISO 8601), to the microsecond."""
    return (_EPOCH + timedelta(microseconds=nanos // 1000)).isoformat() if nanos else None


def _duration(span: SpanRecord) -> float | None:
    """Seconds, None where start or end is not known."""
    return span.duration if span.start and span.end else None


def _attributes(span: SpanRecord, *, content: bool) -> Iterator[tuple[str, Any]]:
    for key, value in span.attributes.items():
        if content or not holds_content(key):
            yield key, _plain(value)


def _plain(value: Any) -> Any:
    """The value as JSON has it; as OTLP/JSON does, bytes are base64 and what is no finite number is text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        case list():
            return list(map(_plain, value))
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case _:
            return value
