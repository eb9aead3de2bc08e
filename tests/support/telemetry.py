"""In-memory telemetry for tests: real providers, sequential ids, a fake clock."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holodeck.models.agent import AgentConfig
from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelEndpoint, ModelReply, ToolCall
from holodeck.models.observability import TelemetrySettings
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution, ToolSpec
from holodeck.telemetry import Telemetry, create_telemetry
from holodeck.testing import FakeClock, SequentialIds

SESSION_ID = UUID("00000000-0000-4000-8000-000000000001")
RESOURCE = {"service.name": "holodeck", "service.version": "0", "service.instance.id": "test"}


@dataclass
class MemoryTelemetry:
    """Telemetry whose spans and metrics stay here."""

    telemetry: Telemetry
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    seen: list[ReadableSpan] = field(default_factory=list)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The finished spans, in the order of their ends."""
        return self.exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        """The one span of that name."""
        (found,) = [s for s in self.spans if s.name == name]
        return found

    def tree(self) -> list[Any]:
        """All traces as ``[name, status, {attributes}, [children]]`` with children in the order of their starts."""
        return [_node(span, self.spans) for span in sorted(self.spans, key=lambda s: s.start_time) if span.parent is None]

    def metrics(self) -> dict[str, list[Any]]:
        """Data points by metric name."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {m.name: list(m.data.data_points) for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}


def _node(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> list[Any]:
    children = sorted((s for s in spans if s.parent and s.parent.span_id == span.context.span_id), key=lambda s: s.start_time)
    return [span.name, span.status.status_code.name, dict(span.attributes), [_node(child, spans) for child in children]]


@contextmanager
def memory_telemetry(**settings: Any) -> Iterator[MemoryTelemetry]:
    """Telemetry in memory with sequential ids and a fake clock."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    telemetry = create_telemetry(
        TelemetrySettings(resource=RESOURCE, **settings),
        keep_turns=10,
        id_generator=SequentialIds(),
        span_processors=[SimpleSpanProcessor(exporter)],
        metric_readers=[reader],
    )
    with FakeClock():
        yield MemoryTelemetry(telemetry, exporter, reader)
    telemetry.shutdown()


def agent_config(**changes: Any) -> AgentConfig:
    """A small agent."""
    model = {"provider": "openai", "name": "gpt-4o-mini", "temperature": 0.3, "endpoint": "http://127.0.0.1:9/v1"}
    return AgentConfig(**({"name": "support", "description": "Answers questions", "model": model} | changes))


def chat_session(**changes: Any) -> ChatSession:
    """An active session without Semantic Kernel's history, for what never looks at the history."""
    values: dict[str, Any] = {"agent_config": agent_config(), "state": SessionState.ACTIVE, "message_count": 0, "session_id": SESSION_ID}
    return ChatSession.model_construct(**(values | changes))


CALL = ToolCall(id="call_1", name="lookup_order", arguments='{"order_id": "1042"}')
SPEC = ToolSpec(name="lookup_order", description="Looks an order up")
ENDPOINT = ModelEndpoint(provider="openai", model="gpt-4o-mini", address="127.0.0.1", port=9, config=agent_config().model)
USAGE = TokenUsage.of(200, 20, cached_tokens=0, reasoning_tokens=5)
EXECUTION = ToolExecution(tool_name="lookup_order", parameters={"order_id": "1042"}).running().succeeded("shipped", 0.25)
HISTORY = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Where is order 1042?"}]},
]


def record_turn(
    telemetry: Telemetry, number: int = 1, *, previous: Any = None, reply: ModelReply | None = None, tool_name: str = "lookup_order"
) -> Any:
    """A turn with one request and one tool."""
    message = Message(role=MessageRole.USER, content="Where is order 1042?")
    with telemetry.turn(chat_session(), number, message, previous) as turn:
        with turn.request(ENDPOINT, lambda: HISTORY, [SPEC]) as request:
            request.answered(
                reply or ModelReply(text="Shipped.", finish_reason="stop", response_id="r-1", response_model="gpt-x", usage=USAGE)
            )
        with turn.tool(CALL.model_copy(update={"name": tool_name}), SPEC) as tool:
            tool.finished(EXECUTION)
        answer = Message(role=MessageRole.ASSISTANT, content="Shipped.", tool_calls=[EXECUTION], tokens_used=USAGE)
        logging.getLogger("holodeck.test").info("turn %d", number)
        turn.finished(TurnResult(number=number, message=answer, tool_calls=[EXECUTION], usage=USAGE, model_requests=1))
    return turn.context
