"""The SDK's finished spans as the records that :mod:`holodeck.traces` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from holodeck.traces import EventRecord, LinkRecord, SpanRecord

__all__ = ["record_of", "trace_id_of"]


def trace_id_of(span: ReadableSpan) -> str:
    """32 hex digits."""
    return format_trace_id(_context(span).trace_id)


def record_of(span: ReadableSpan) -> SpanRecord:
    """``span`` as a plain value; lists in place of tuples, as OTLP has them."""
    context, parent = _context(span), span.parent
    return SpanRecord(
        trace_id=format_trace_id(context.trace_id),
        span_id=format_span_id(context.span_id),
        parent_id=format_span_id(parent.span_id) if parent else "",
        name=span.name,
        kind=span.kind.value + 1,  # OTLP counts from 1, with 0 for unspecified
        start=span.start_time or 0,
        end=span.end_time or 0,
        attributes=_plain(span.attributes),
        status_code=span.status.status_code.value,
        status_message=span.status.description or "",
        events=tuple(EventRecord(event.name, event.timestamp, _plain(event.attributes)) for event in span.events),
        links=tuple(
            LinkRecord(format_trace_id(link.context.trace_id), format_span_id(link.context.span_id), _plain(link.attributes))
            for link in span.links
        ),
        resource=_plain(span.resource.attributes),
        scope=span.instrumentation_scope.name if span.instrumentation_scope else "",
    )


def _context(span: ReadableSpan) -> SpanContext:
    context: SpanContext | None = span.context
    assert context is not None
    return context


def _plain(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in (attributes or {}).items()}
