"""From settings to providers: what is recorded, where it goes, and how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext
from opentelemetry.util.genai.handler import TelemetryHandler

from holodeck.errors import SessionError
from holodeck.models.chat import ChatSession, Message
from holodeck.models.observability import OtlpTarget, TelemetrySettings, TelemetryStatistics
from holodeck.telemetry.delivery import Counters, DeliveryReport, drop_reasons, in_background, wait_for
from holodeck.telemetry.evaluation import Evaluation, record_evaluation
from holodeck.telemetry.gate import Gate
from holodeck.telemetry.logs import OtlpLogHandler, attach, detach, keep_off_stderr
from holodeck.telemetry.providers import Sinks, logger_provider, make_resource, meter_provider, span_queue, tracer_provider
from holodeck.telemetry.recent import RecentTraces
from holodeck.telemetry.recorder import TurnRecorder
from holodeck.telemetry.semconv import SCOPE
from holodeck.version import __version__

if TYPE_CHECKING:
    from holodeck.telemetry.exporters import Delivery
    from holodeck.telemetry.spool.queue import SpanQueue

__all__ = ["Telemetry", "create_telemetry"]

HOPELESS_SECONDS: Final = 0.25
"""How long metrics and logs are still waited for when the spans could not be delivered, in seconds."""
SHUTDOWN_SECONDS: Final = 1.5
"""How long leaving waits for exporters, in seconds; the rest of the promised 2 s is for everything else."""
_HANGING_UP: Final = 0.25
"""How long it waits for threads whose requests have been ended, in seconds."""


class Telemetry:
    """Everything that records and exports for one agent; made by :func:`create_telemetry`.

    Attributes:
        settings: What it was made from.
        gate: What may enter telemetry.
        recent: The last turns; None where none are kept.
        counters: What became of spans, metrics and log records.
        notices: What the user should know about the delivery of telemetry, one line each; new ones come at the end, from any thread.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        tracer_provider: trace.TracerProvider,
        meter_provider: metrics.MeterProvider,
        logger_provider: _logs.LoggerProvider,
        *,
        recent: RecentTraces | None = None,
        counters: Counters | None = None,
        notices: list[str] | None = None,
        queue: SpanQueue | None = None,
        deliveries: Sequence[Delivery] = (),
    ) -> None:
        self.settings, self.recent, self.counters = settings, recent, counters or Counters()
        self.notices = notices if notices is not None else []
        self._queue, self._deliveries = queue, tuple(deliveries)
        self._ending, self._has_ended = threading.Lock(), False
        self.gate = _gate(settings)
        self._providers = (tracer_provider, meter_provider, logger_provider)
        self._handler = TelemetryHandler(*self._providers, instrumentation_scope_name=SCOPE, instrumentation_scope_version=__version__)
        self._log_handler = self._attach_logs(logger_provider)

    def _attach_logs(self, provider: _logs.LoggerProvider) -> OtlpLogHandler | None:
        if self.settings.disabled or isinstance(provider, _logs.NoOpLoggerProvider):
            return None
        resource = getattr(provider, "resource", None)
        handler = OtlpLogHandler(provider.get_logger(SCOPE, __version__), self.gate, self.settings.log_level, resource)
        attach(handler)
        return handler

    def turn(self, session: ChatSession, number: int, message: Message, previous: SpanContext | None = None) -> TurnRecorder:
        """A turn begins: open the root span of its trace; ``previous`` is the root of the turn before."""
        opened = self._queue.opened if self._queue is not None else None
        return TurnRecorder(self._handler, self.gate, session, number, message, previous, opened)

    def evaluated(self, evaluation: Evaluation, turn: SpanContext) -> None:
        """A turn has been judged: ``gen_ai.evaluation.result``, in the trace of the turn whose root is ``turn``."""
        tracers, _, loggers = self._providers
        tracer, logger = tracers.get_tracer(SCOPE, __version__), loggers.get_logger(SCOPE, __version__)
        record_evaluation(evaluation, turn, tracer, logger, self.gate)

    def trace(self, trace_id: str) -> dict[str, Any]:
        """A finished turn's spans as one OTLP/JSON export request; ``{}`` if it is not kept."""
        spans = self.recent.spans(trace_id) if self.recent else []
        if not spans:
            return {}
        from holodeck.telemetry.otlp_json import to_json  # noqa: PLC0415 - protobuf's JSON is needed only when a turn is looked at

        return to_json(spans)

    def install_globals(self) -> None:
        """Make the providers OpenTelemetry's globals, so that spans of the user's own tool code join the turn's trace.

        Raises:
            SessionError: Telemetry has been shut down.
        """
        if self._has_ended:
            raise SessionError("this telemetry has been shut down: make another one before its providers become OpenTelemetry's globals")
        trace.set_tracer_provider(self._providers[0])
        metrics.set_meter_provider(self._providers[1])
        _logs.set_logger_provider(self._providers[2])

    def statistics(self) -> TelemetryStatistics:
        """What became of spans, metrics and log records until now."""
        return self.counters.statistics(self._queue.queued if self._queue is not None else 0)

    def flush(self, seconds: float = SHUTDOWN_SECONDS) -> bool:
        """Send the spans that wait, now and for at most ``seconds``; True if none is left."""
        return self._queue.flush(seconds) if self._queue is not None else True

    def shutdown(self, seconds: float = SHUTDOWN_SECONDS) -> DeliveryReport:
        """Export what is left within ``seconds`` and say what became of the spans. Idempotent."""
        with self._ending:
            if not self._has_ended:
                self._has_ended = True
                self._shut_down(*self._providers, seconds)
        return self._report()

    def _shut_down(self, tracers: object, meters: object, loggers: object, seconds: float) -> None:
        if self._log_handler is not None:
            detach(self._log_handler)
        sent = threading.Event()

        def spans() -> None:
            if self._queue is not None:
                self._queue.shutdown(seconds)
            sent.set()
            _end(tracers)

        def measurements() -> None:
            sent.wait(seconds / 2)  # the last metrics say what became of the last spans
            _end(meters)

        # The SDK's own shutdown would wait 7 to 30 s for a collector that does not answer.
        end = monotonic() + seconds
        threads = in_background([spans, measurements, lambda: _end(loggers)])
        sent.wait(seconds)
        if self._queue is not None and self._queue.queued:
            end = min(end, monotonic() + HOPELESS_SECONDS)  # who does not take spans now will not take metrics and logs either
        if not wait_for(threads, end - monotonic()):
            for delivery in self._deliveries:
                delivery.close()
            wait_for(threads, _HANGING_UP)

    def _report(self) -> DeliveryReport:
        queue, target = self._queue, self.settings.traces
        if queue is None or target is None:
            return DeliveryReport()
        now, kept = self.statistics(), queue.kept
        undelivered = kept or now.rejected or now.dropped.get("not_kept")
        return DeliveryReport(
            made=now.made,
            delivered=now.delivered,
            kept=kept,
            unfinished=queue.unfinished,
            rejected=now.rejected,
            dropped=sum(now.dropped.values()),
            url=target.url,
            reason=(now.reason or "no answer in time") if undelivered else "",
            drop_reason=drop_reasons(now.dropped),
            path=str(queue.path),
        )


def _end(provider: object) -> None:
    with suppress(Exception):  # of a reader or processor of the host's own: it must not end as a traceback on stderr
        if hasattr(provider, "shutdown"):
            provider.shutdown()


def _gate(settings: TelemetrySettings) -> Gate:
    return Gate(
        capture_content=settings.capture_content,
        redaction_patterns=settings.redaction_patterns,
        limit=settings.attribute_length_limit,
    )


def create_telemetry(
    settings: TelemetrySettings,
    *,
    keep_turns: int = 0,
    id_generator: IdGenerator | None = None,
    trace_file: BinaryIO | None = None,
    span_processors: Sequence[SpanProcessor] = (),
    metric_readers: Sequence[MetricReader] = (),
    log_processors: Sequence[LogRecordProcessor] = (),
    environ: Mapping[str, str] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Telemetry:
    """Providers and exporters as ``settings`` say.

    Args:
        settings: After precedence.
        keep_turns: How many turns stay in memory for :meth:`Telemetry.trace`.
        id_generator: Makes trace and span ids; random by default.
        trace_file: Open file that gets OTLP/JSON lines; closed at shutdown.
        span_processors: Additional ones, e.g. with an in-memory exporter.
        metric_readers: Additional ones.
        log_processors: Additional ones.
        environ: Says where and how much the queue of spans keeps (``HOLODECK_STATE_DIR``, ``HOLODECK_SPOOL_*``); ``os.environ`` by default.
        on_notice: Called with each line of :attr:`Telemetry.notices` as it comes, from any thread.

    Raises:
        SettingError: A limit of the queue is not a number.
    """
    if settings.disabled:
        return Telemetry(settings, trace.NoOpTracerProvider(), metrics.NoOpMeterProvider(), _logs.NoOpLoggerProvider())
    keep_off_stderr()
    counters, recent = Counters(), RecentTraces(keep_turns) if keep_turns else None
    notices = _Notices(on_notice)
    queue = span_queue(settings, counters, notices.add, os.environ if environ is None else environ)
    ways = _deliveries(settings, counters)
    resource = make_resource(settings)
    meters = meter_provider(settings, resource, metric_readers, ways.get("metrics"))
    tracers = tracer_provider(settings, resource, Sinks(queue, recent, trace_file, span_processors, notices.add), meters, id_generator)
    loggers = logger_provider(settings, resource, log_processors, meters, ways.get("logs"))
    providers, deliveries = (tracers, meters, loggers), tuple(ways.values())
    made = Telemetry(settings, *providers, recent=recent, counters=counters, notices=notices.lines, queue=queue, deliveries=deliveries)
    _observe(made, meters, settings.traces)
    return made


def _deliveries(settings: TelemetrySettings, counters: Counters) -> dict[str, Delivery]:
    """The ways of metrics and log records to the collector, by signal; of those that go there."""
    targets = {signal: target for signal, target in (("metrics", settings.metrics), ("logs", settings.logs)) if target is not None}
    if not targets:
        return {}
    from holodeck.telemetry.exporters import Delivery  # noqa: PLC0415 - only where something is sent

    return {signal: Delivery(target, signal, counters) for signal, target in targets.items()}


def _observe(telemetry: Telemetry, meters: MeterProvider, target: OtlpTarget | None) -> None:
    if target is not None:
        from holodeck.telemetry.spool.metrics import register  # noqa: PLC0415 - only where spans go out

        register(meters.get_meter(SCOPE, __version__), target, telemetry.statistics)


class _Notices:
    def __init__(self, on_notice: Callable[[str], None] | None) -> None:
        self.lines: list[str] = []
        self._on_notice = on_notice

    def add(self, line: str) -> None:
        """Keep ``line``, unless it is the same as the last one."""
        if self.lines[-1:] == [line]:
            return
        self.lines.append(line)
        if self._on_notice is not None:
            self._on_notice(line)
