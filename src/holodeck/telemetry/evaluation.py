"""The verdict on a turn, as the GenAI conventions have it: the event ``gen_ai.evaluation.result``, parented to the evaluated span.

Trace viewers show spans, not log records, so the verdict is a short span in the same trace as well: a failed one is an error there, and can
be searched for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, set_span_in_context

from holodeck.telemetry import semconv as names

if TYPE_CHECKING:
    from opentelemetry._logs import Logger
    from opentelemetry.trace import Tracer

    from holodeck.telemetry.gate import Gate

__all__ = ["Evaluation", "record_evaluation"]

_FAILED: Final = "evaluation_failed"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A verdict.

    Attributes:
        name: What was evaluated against, e.g. the name of a test case.
        passed: Whether everything that was expected held.
        score: Part of the expectations that held, from 0 to 1.
        summary: What did not hold, in words that hold no content.
        explanation: The same with what the model or a tool said; recorded only while the content gate is open.
    """

    name: str
    passed: bool
    score: float
    summary: str = ""
    explanation: str = ""

    @property
    def label(self) -> str:
        """``pass`` or ``fail``."""
        return "pass" if self.passed else "fail"


def record_evaluation(evaluation: Evaluation, evaluated: SpanContext, tracer: Tracer, logger: Logger, gate: Gate) -> None:
    """Write the event and the span of ``evaluation`` into the trace of ``evaluated``."""
    context = set_span_in_context(NonRecordingSpan(evaluated))
    name, why = gate.label(evaluation.name), gate.text(evaluation.explanation) or gate.label(evaluation.summary)
    attributes: dict[str, Any] = {
        names.EVALUATION_NAME: name,
        names.EVALUATION_LABEL: evaluation.label,
        names.EVALUATION_SCORE: float(evaluation.score),
        **({names.EVALUATION_EXPLANATION: why} if why else {}),
    }
    logger.emit(
        LogRecord(context=context, severity_number=SeverityNumber.INFO, event_name=names.EVALUATION_EVENT, body=None, attributes=attributes)
    )
    with tracer.start_as_current_span(f"evaluate {name}", context=context) as span:
        span.set_attributes({names.TEST_CASE: name, names.TEST_VERDICT: evaluation.label})
        if not evaluation.passed:
            span.set_attribute("error.type", _FAILED)
            span.set_status(Status(StatusCode.ERROR, why))
