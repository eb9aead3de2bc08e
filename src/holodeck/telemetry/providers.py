"""The providers of one agent, made from settings.

Everything is passed explicitly: what the SDK is not given it reads from the environment by itself, past the precedence that HoloDeck
states, and a value that it does not understand ends the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from opentelemetry import _logs
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk._logs import LoggerProvider, LogRecordLimits, LogRecordProcessor
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import (
    AlwaysOffExemplarFilter,
    AlwaysOnExemplarFilter,
    ExemplarFilter,
    MeterProvider,
    TraceBasedExemplarFilter,
)
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.version import __version__ as sdk_version

from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.recent import RecentTraces
from holodeck.telemetry.resource import resource_attributes
from holodeck.telemetry.sampling import make_sampler

if TYPE_CHECKING:
    from holodeck.telemetry.exporters import Delivery
    from holodeck.telemetry.spool.queue import SpanQueue

__all__ = ["Sinks", "logger_provider", "make_resource", "meter_provider", "span_queue", "tracer_provider"]

P = TypeVar("P", TracerProvider, MeterProvider, LoggerProvider)
_SDK: Final = {"telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": sdk_version}
_EXEMPLARS: Final[Mapping[str, Callable[[], ExemplarFilter]]] = {
    "trace_based": TraceBasedExemplarFilter,
    "always_on": AlwaysOnExemplarFilter,
    "always_off": AlwaysOffExemplarFilter,
}


@dataclass(frozen=True)
class Sinks:
    """Where spans go.

    Attributes:
        queue: To the OTLP endpoint.
        recent: Kept for the terminal.
        trace_file: Written there as OTLP/JSON lines.
        processors: Additional ones.
        on_failure: Called with one line about lines that could not be written.
    """

    queue: SpanQueue | None
    recent: RecentTraces | None
    trace_file: BinaryIO | None
    processors: Sequence[SpanProcessor]
    on_failure: Callable[[str], None]


def span_queue(
    settings: TelemetrySettings, counters: Counters, on_notice: Callable[[str], None], environ: Mapping[str, str]
) -> SpanQueue | None:
    """The queue of spans for the OTLP endpoint; None where they do not go out.

    Raises:
        SettingError: A limit of the queue is not a number.
    """
    if settings.traces is None:
        return None
    from holodeck.telemetry.spool.directories import spool_settings  # noqa: PLC0415 - only where spans go out
    from holodeck.telemetry.spool.queue import SpanQueue  # noqa: PLC0415 - as above

    return SpanQueue(
        settings.traces,
        spool_settings(environ),
        counters,
        on_notice,
        delay=settings.schedule_delay_millis / 1000,
        most_spans=settings.max_export_batch_size,
        memory_spans=settings.max_queue_size,
    )


def make_resource(settings: TelemetrySettings) -> Resource:
    """Of all providers of one agent."""
    # Not Resource.create(): that reads OTEL_* again, past the precedence that has been applied.
    return Resource(resource_attributes(settings) | _SDK)


def meter_provider(
    settings: TelemetrySettings, resource: Resource, more: Sequence[MetricReader], delivery: Delivery | None
) -> MeterProvider:
    """Metrics, sent by ``delivery`` where there is one, and read by ``more``."""
    readers = [*([_metric_reader(settings, delivery)] if delivery is not None else []), *more]
    exemplars = _EXEMPLARS[settings.exemplar_filter]()
    return _switched_on(MeterProvider(readers, resource, exemplar_filter=exemplars, shutdown_on_exit=False))


def _metric_reader(settings: TelemetrySettings, delivery: Delivery) -> MetricReader:
    from holodeck.telemetry.exporters import OtlpMetricExporter  # noqa: PLC0415 - only where something is sent

    exporter = OtlpMetricExporter(delivery, settings.metric_temporality, settings.metric_histogram)
    timeout = settings.metrics.timeout if settings.metrics is not None else 30.0
    return PeriodicExportingMetricReader(exporter, settings.export_interval_ms, export_timeout_millis=timeout * 1000)


def tracer_provider(
    settings: TelemetrySettings, resource: Resource, sinks: Sinks, meters: MeterProvider, id_generator: IdGenerator | None
) -> TracerProvider:
    """Spans, into ``sinks``."""
    provider = TracerProvider(
        sampler=make_sampler(settings.sampler, settings.sampler_arg),
        resource=resource,
        shutdown_on_exit=False,
        id_generator=id_generator,
        span_limits=_span_limits(settings),
        meter_provider=meters,
    )
    for processor in _span_processors(settings, sinks):
        provider.add_span_processor(processor)
    return _switched_on(provider)


def _span_limits(settings: TelemetrySettings) -> SpanLimits:
    limits = settings.limits
    return SpanLimits(
        max_attributes=limits.span_attributes,
        max_span_attributes=limits.span_attributes,
        max_events=limits.events,
        max_links=limits.links,
        max_event_attributes=limits.event_attributes,
        max_link_attributes=limits.link_attributes,
        max_attribute_length=limits.attribute_length,
        max_span_attribute_length=settings.attribute_length_limit,
    )


def _span_processors(settings: TelemetrySettings, sinks: Sinks) -> list[SpanProcessor]:
    processors: list[SpanProcessor] = [sinks.recent] if sinks.recent else []
    processors += _line_writers(settings, sinks)
    if sinks.queue is not None:
        from holodeck.telemetry.spool.processor import SpoolProcessor  # noqa: PLC0415 - only where spans go out

        processors.append(SpoolProcessor(sinks.queue))
    return [*processors, *sinks.processors]


def _line_writers(settings: TelemetrySettings, sinks: Sinks) -> list[SpanProcessor]:
    file, lines_on_stderr = sinks.trace_file, settings.console and not settings.pretty_print
    if file is None and not lines_on_stderr:
        return []
    from holodeck.telemetry.otlp_json import LinesExporter  # noqa: PLC0415 - protobuf's JSON, only if asked for

    exporters = [LinesExporter(file, name=str(settings.trace_file), on_failure=sinks.on_failure)] if file is not None else []
    exporters += [LinesExporter(sys.stderr.buffer, close=False)] if lines_on_stderr else []
    return [SimpleSpanProcessor(exporter, meter_provider=NoOpMeterProvider()) for exporter in exporters]


def logger_provider(
    settings: TelemetrySettings, resource: Resource, more: Sequence[LogRecordProcessor], meters: MeterProvider, delivery: Delivery | None
) -> _logs.LoggerProvider:
    """Log records, sent by ``delivery`` where there is one, and given to ``more``."""
    if delivery is None and not more:
        return _logs.NoOpLoggerProvider()
    limits = settings.limits
    provider = LoggerProvider(
        resource,
        shutdown_on_exit=False,
        meter_provider=meters,
        log_record_limits=LogRecordLimits(
            max_attributes=limits.log_attributes,
            max_attribute_length=limits.log_attribute_length,
            max_log_record_attributes=limits.log_attributes,
            max_log_record_attribute_length=limits.log_attribute_length,
        ),
    )
    for processor in [*([_log_batches(settings, delivery, meters)] if delivery is not None else []), *more]:
        provider.add_log_record_processor(processor)
    return _switched_on(provider)


def _log_batches(settings: TelemetrySettings, delivery: Delivery, meters: MeterProvider) -> LogRecordProcessor:
    from holodeck.telemetry.exporters import OtlpLogExporter  # noqa: PLC0415 - only where something is sent

    return BatchLogRecordProcessor(
        OtlpLogExporter(delivery),
        schedule_delay_millis=settings.log_schedule_delay_millis,
        max_export_batch_size=settings.log_max_export_batch_size,
        export_timeout_millis=(settings.logs.timeout if settings.logs is not None else 30.0) * 1000,
        max_queue_size=settings.log_max_queue_size,
        meter_provider=meters,
    )


def _switched_on(provider: P) -> P:
    provider._disabled = False  # noqa: SLF001 - OTEL_SDK_DISABLED of this process counts only where it is part of the settings
    return provider
