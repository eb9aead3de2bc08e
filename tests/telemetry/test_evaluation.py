"""The verdict on a turn: the conventions' event, and the span that makes it visible in a trace viewer."""

from __future__ import annotations

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holodeck.telemetry import Evaluation, Gate
from holodeck.telemetry.evaluation import record_evaluation
from holodeck.telemetry.semconv import names


def judged(evaluation: Evaluation, gate: Gate) -> tuple[object, object, object]:
    """The evaluated span, the span of the verdict and the event."""
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    with tracers.get_tracer("t").start_as_current_span("turn") as turn:
        pass
    record_evaluation(evaluation, turn.get_span_context(), tracers.get_tracer("t"), loggers.get_logger("t"), gate)
    (event,) = logs.get_finished_logs()
    _, verdict = spans.get_finished_spans()
    return turn, verdict, event.log_record


def test_a_verdict_is_an_event_of_the_evaluated_span_and_a_span_below_it() -> None:
    """Name, label and score stand on the event; both belong to the turn's trace."""
    turn, verdict, event = judged(Evaluation("finds the order", passed=True, score=1.0), Gate())
    context = turn.get_span_context()
    assert (event.event_name, event.trace_id, event.span_id) == ("gen_ai.evaluation.result", context.trace_id, context.span_id)
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "finds the order",
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.score.value": 1.0,
    }
    assert (verdict.name, verdict.parent.span_id, verdict.context.trace_id) == (
        "evaluate finds the order",
        context.span_id,
        context.trace_id,
    )
    assert dict(verdict.attributes) == {"holodeck.test.case": "finds the order", "holodeck.test.verdict": "pass"}
    assert set(verdict.attributes) <= set(names())


def test_a_failure_is_an_error_whose_reason_has_no_content_while_the_gate_is_shut() -> None:
    """What did not hold is said in fixed words; what the model said comes with content capture only."""
    failed = Evaluation("x", passed=False, score=0.5, summary="answer.contains did not hold", explanation="the canary sings")
    _, verdict, event = judged(failed, Gate())
    assert (verdict.status.status_code.name, verdict.status.description) == ("ERROR", "answer.contains did not hold")
    assert verdict.attributes["error.type"] == "evaluation_failed"
    assert event.attributes["gen_ai.evaluation.explanation"] == "answer.contains did not hold"
    _, verdict, event = judged(failed, Gate(capture_content=True))
    assert event.attributes["gen_ai.evaluation.explanation"] == verdict.status.description == "the canary sings"
