"""What it costs to record a turn, and what the bare SDK takes for the very same spans, attributes and metric records. Prints JSON.

A turn is two requests, one tool and the root; exporters drop everything, so that only recording is measured. The floor is a replay: a turn
is recorded in memory, and what came out is made again with ``start_span``, ``set_attributes`` and ``record``.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelReply
from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry import Telemetry, create_telemetry
from support.telemetry import CALL, ENDPOINT, EXECUTION, HISTORY, RESOURCE, SPEC, USAGE, agent_config

TURNS, BLOCKS = 200, 15
REPLY = ModelReply(text="Shipped.", finish_reason="stop", response_id="r-1", response_model="gpt-x", usage=USAGE)
QUESTION = Message(role=MessageRole.USER, content="Where is order 1042?")
ANSWER = Message(role=MessageRole.ASSISTANT, content="Shipped.", tool_calls=[EXECUTION], tokens_used=USAGE)
RESULT = TurnResult(number=1, message=ANSWER, tool_calls=[EXECUTION], usage=USAGE, model_requests=2)


class Null(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Accept."""
        del spans
        return SpanExportResult.SUCCESS


def new_session() -> ChatSession:
    """A session without Semantic Kernel: only its data is recorded."""
    return ChatSession.model_construct(agent_config=agent_config(), state=SessionState.ACTIVE, message_count=0, session_id=uuid4())


def record(telemetry: Telemetry, session: ChatSession) -> None:
    """Record a turn as the turn loop does."""
    with telemetry.turn(session, 1, QUESTION) as turn:
        for part in (1, 2):
            with turn.request(ENDPOINT, lambda: HISTORY, [SPEC]) as request:
                request.first_chunk()
                request.answered(REPLY)
            if part == 1:
                with turn.tool(CALL, SPEC) as tool:
                    tool.finished(EXECUTION)
        turn.finished(RESULT)


def telemetry_with(exporter: Any, reader: Any, *, capture: bool) -> Telemetry:
    """HoloDeck's telemetry with these at its end."""
    settings = TelemetrySettings(resource=RESOURCE, console=False, capture_content=capture)
    return create_telemetry(settings, span_processors=[exporter], metric_readers=[reader])


def replay(*, capture: bool) -> Callable[[], None]:
    """A function that makes one turn's spans and metric records again, with nothing but the SDK."""
    spans, points = captured(capture=capture)
    tracers = TracerProvider(resource=Resource(RESOURCE), shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=256))
    tracers.add_span_processor(BatchSpanProcessor(Null()))
    tracer = tracers.get_tracer("floor")
    meter = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False).get_meter("floor")
    histograms = {name: meter.create_histogram(name, explicit_bucket_boundaries_advisory=bounds) for name, bounds, _, _ in points}
    records = [(histograms[name], attributes, count) for name, _, attributes, count in points]
    root = next(span for span in spans if span.parent is None)
    inner = [span for span in spans if span.parent is not None]

    def one(span: ReadableSpan) -> None:
        made = tracer.start_span(span.name, kind=span.kind)
        made.set_attributes(span.attributes)
        made.end()

    def turn() -> None:
        with tracer.start_as_current_span(root.name, kind=root.kind) as made:
            for span in inner:
                one(span)
            made.set_attributes(root.attributes)
        for histogram, attributes, count in records:
            for _ in range(count):
                histogram.record(1.0, attributes)

    return turn


def captured(*, capture: bool) -> tuple[Sequence[ReadableSpan], list[tuple[str, Any, Any, int]]]:
    """One recorded turn: its spans, and (name, bounds, attributes, count) of its metric records."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    record(telemetry_with(SimpleSpanProcessor(exporter), reader, capture=capture), new_session())
    data = reader.get_metrics_data()
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
    points = [(m.name, list(p.explicit_bounds), dict(p.attributes), p.count) for m in metrics for p in m.data.data_points]
    return exporter.get_finished_spans(), points


def cost(turns: dict[str, Callable[[], None]]) -> dict[str, float]:
    """CPU microseconds a turn of each, in interleaved blocks."""
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(BLOCKS):
        for name, turn in turns.items():
            gc.collect()
            before = process_time()
            for _ in range(TURNS):
                turn()
            figures[name].append((process_time() - before) / TURNS * 1e6)
    return {name: median(values) for name, values in figures.items()}


def main() -> None:
    """Measure and print."""
    assert not isinstance(trace.get_tracer_provider(), TracerProvider), "globals must not be set"
    turns: dict[str, Callable[[], None]] = {}
    for capture, suffix in ((False, ""), (True, ", content captured")):
        telemetry, session = telemetry_with(BatchSpanProcessor(Null()), InMemoryMetricReader(), capture=capture), new_session()
        turns[f"holodeck{suffix}"] = lambda t=telemetry, s=session: record(t, s)  # type: ignore[misc]
        turns[f"floor{suffix}"] = replay(capture=capture)
    spans, points = captured(capture=False)
    figures = cost(turns)
    print(json.dumps({"cpu": figures, "spans": len(spans), "records": sum(p[3] for p in points)}))


if __name__ == "__main__":
    main()
