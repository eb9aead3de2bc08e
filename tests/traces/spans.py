"""Spans for tests: as records, and as the JSON that writers send."""

from __future__ import annotations

from typing import Any

from holodeck.traces import Node, SpanRecord, build_trees

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
START = 1_754_229_802_125_000_000  # 2025-08-03 14:03:22.125 UTC
MS = 1_000_000


def record(number: int, parent: int | None, name: str, begin: float, end: float, **options: Any) -> SpanRecord:
    """A span from ``begin`` to ``end`` milliseconds; ``error`` is a pair of error type and status message."""
    attributes = dict(options.get("attributes", {}))
    error_type, message = options.get("error", ("", ""))
    operation = name.split(" ", 1)[0]
    if operation in {"chat", "execute_tool", "invoke_agent"}:
        attributes = {"gen_ai.operation.name": operation, **attributes}
    if error_type:
        attributes["error.type"] = error_type
    return SpanRecord(
        trace_id=options.get("trace", TRACE),
        span_id=f"{number:016x}",
        parent_id="" if parent is None else f"{parent:016x}",
        name=name,
        kind=3 if operation == "chat" else 1,
        start=START + round(begin * MS),
        end=START + round(end * MS),
        attributes=attributes,
        status_code=2 if "error" in options else 0,
        status_message=message,
        events=options.get("events", ()),
        links=(),
        resource={},
        scope="test",
    )


def chat(number: int, parent: int | None, begin: float, end: float, tokens: tuple[int, int] | None = None, **attributes: Any) -> SpanRecord:
    """A model request, with its usage if ``tokens`` are given."""
    usage = {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]} if tokens else {}
    named = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return record(number, parent, "chat gpt-4o-mini", begin, end, attributes={**usage, **named})


def turn() -> Node:
    """A turn of an agent: two model requests and two tools side by side, one of which failed."""
    spans = [
        record(1, None, "invoke_agent support", 0, 2410, attributes={"gen_ai.conversation.id": "c-1", "holodeck.turn.number": 3}),
        chat(2, 1, 2, 814, (412, 38), response__time_to_first_chunk=0.31),
        record(3, 1, "execute_tool lookup_order", 815, 901),
        record(4, 1, "execute_tool refund_policy", 815, 1000, error=("timeout", "the tool did not answer in time")),
        chat(5, 1, 1001, 2409, (1512, 58), usage__cache_read__input_tokens=300, response__time_to_first_chunk=0.4),
    ]
    return tree(*spans)


def tree(*spans: SpanRecord) -> Node:
    """The one tree that the spans make."""
    (root,) = build_trees(spans)
    return root


def request(*spans: Any, **resource: Any) -> dict[str, Any]:
    """An export request with the spans as they are given."""
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "writer"}, "spans": list(spans)}]}]}
