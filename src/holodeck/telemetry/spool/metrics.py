"""The queue's counters as metrics, by the names of OpenTelemetry's SDK conventions.

The SDK's own batch processor and exporters, which would emit them (and only when asked to by the environment), are not in use for spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from holodeck.models.observability import OtlpTarget, TelemetryStatistics
from holodeck.telemetry import semconv as names

__all__ = ["register"]

_COMPONENT: Final = "holodeck_spool_processor"
_numbers = count()


def register(meter: Meter, target: OtlpTarget, statistics: Callable[[], TelemetryStatistics]) -> None:
    """Let ``meter`` observe what ``statistics`` returns."""
    number = next(_numbers)
    exporter = "otlp_grpc_span_exporter" if target.protocol == "grpc" else "otlp_http_span_exporter"
    processor = {names.COMPONENT_TYPE: _COMPONENT, names.COMPONENT_NAME: f"{_COMPONENT}/{number}"}
    sent = {names.COMPONENT_TYPE: exporter, names.COMPONENT_NAME: f"{exporter}/{number}"}

    def processed(_: CallbackOptions) -> Iterable[Observation]:
        now = statistics()
        yield Observation(now.delivered + now.rejected, processor)
        for reason, spans in now.dropped.items():
            yield Observation(spans, {**processor, names.ERROR_TYPE: reason})

    def waiting(_: CallbackOptions) -> Iterable[Observation]:
        yield Observation(statistics().queued, processor)

    def exported(_: CallbackOptions) -> Iterable[Observation]:
        now = statistics()
        yield Observation(now.delivered, sent)
        if now.rejected:
            yield Observation(now.rejected, {**sent, names.ERROR_TYPE: "rejected"})

    meter.create_observable_counter(names.PROCESSED, [processed], "{span}", "Spans that were sent or dropped, by error.type.")
    meter.create_observable_up_down_counter(names.QUEUE_SIZE, [waiting], "{span}", "Spans that wait in the queue.")
    meter.create_observable_counter(names.EXPORTED, [exported], "{span}", "Spans that the endpoint took or rejected.")
