"""OTLP exporters for metrics and log records, made from settings.

They send through the same transport as spans (:mod:`holodeck.telemetry.spool`) and not with the SDK's exporters: those read the
environment past the precedence that HoloDeck states, log their complaints onto the host's stderr, and cannot be ended while they wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from random import uniform
from time import monotonic
from typing import Any, Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics import Counter, Histogram, ObservableCounter, ObservableGauge, ObservableUpDownCounter, UpDownCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.metrics.view import Aggregation, ExplicitBucketHistogramAggregation, ExponentialBucketHistogramAggregation

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.spool.outcome import Fate
from holodeck.telemetry.spool.transport import make_transport

__all__ = ["Delivery", "OtlpLogExporter", "OtlpMetricExporter"]

_SHORTEST: Final = 0.05  # seconds; less is not worth a request
_DELTA: Final = {
    "cumulative": (),
    "delta": (Counter, ObservableCounter, Histogram),
    "lowmemory": (Counter, Histogram),
}
"""What is sent as the change since the last time, by ``OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE``."""
_INSTRUMENTS: Final = (Counter, UpDownCounter, Histogram, ObservableCounter, ObservableUpDownCounter, ObservableGauge)


class Delivery:
    """Sends requests of one signal, each again while nobody is there or too busy, until the target's timeout is over.

    Args:
        target: Where they go.
        signal: ``metrics`` or ``logs``.
        counters: Counts what becomes of the records.
    """

    def __init__(self, target: OtlpTarget, signal: str, counters: Counters) -> None:
        self._target, self._signal, self._counters = target, signal, counters
        self._ended = threading.Event()
        self._connect()

    def _connect(self) -> None:
        self._pid, self._transport = os.getpid(), make_transport(self._target, self._signal)

    def send(self, records: int, encode: Callable[[], bytes]) -> bool:
        """Send what ``encode`` makes of so many records; True if the collector took the request. Never raises, never logs."""
        if self._pid != os.getpid():
            self._connect()  # a child of fork must not write into its parent's connection
        try:
            rejected = self._send(encode())
        except Exception:  # noqa: BLE001 - one value that cannot be encoded must not end in the host's stderr
            rejected = None
        if rejected is None:
            self._counters.exported(self._signal, records, success=False)
            return False
        self._counters.exported(self._signal, records - min(rejected, records), success=True)
        self._counters.exported(self._signal, min(rejected, records), success=False)
        return True

    def _send(self, body: bytes) -> int | None:
        """How many records were rejected of the request that was taken; None if none was."""
        end, pause = monotonic() + self._target.timeout, 0.0
        for attempt in range(64):
            if self._ended.wait(pause) or end - monotonic() < _SHORTEST:
                break
            outcome = self._transport.send(body, end - monotonic())
            if outcome.fate is Fate.DELIVERED:
                return outcome.rejected
            backoff = 2.0**attempt * uniform(0.8, 1.2)  # noqa: S311 - spreads requests
            pause = max(outcome.retry_after or backoff, backoff / 10)  # who asks for no pause at all, again and again, gets one
            if outcome.fate is not Fate.LATER or pause > end - monotonic():
                break
        return None

    def close(self) -> None:
        """End what waits, at once and for good. Idempotent."""
        self._ended.set()
        self._transport.close()


class OtlpMetricExporter(MetricExporter):
    """Metrics over OTLP.

    Args:
        delivery: The way to the collector.
        temporality: ``cumulative``, ``delta`` or ``lowmemory``.
        histogram: ``explicit_bucket_histogram`` or ``base2_exponential_bucket_histogram``.
    """

    def __init__(self, delivery: Delivery, temporality: str, histogram: str) -> None:
        delta, cumulative = AggregationTemporality.DELTA, AggregationTemporality.CUMULATIVE
        exponential = histogram == "base2_exponential_bucket_histogram"
        aggregation: Aggregation = ExponentialBucketHistogramAggregation() if exponential else ExplicitBucketHistogramAggregation()
        super().__init__(
            preferred_temporality={kind: delta if kind in _DELTA[temporality] else cumulative for kind in _INSTRUMENTS},
            preferred_aggregation={Histogram: aggregation},
        )
        self._delivery = delivery

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        """Send; the target's timeout counts."""
        del timeout_millis, kwargs
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics  # noqa: PLC0415 - only where they are sent

        metrics = [m for r in metrics_data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        points = sum(len(m.data.data_points) for m in metrics)
        taken = self._delivery.send(points, lambda: encode_metrics(metrics_data).SerializeToString())
        return MetricExportResult.SUCCESS if taken else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is held back here."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """End what waits."""
        del timeout_millis, kwargs
        self._delivery.close()


class OtlpLogExporter(LogRecordExporter):
    """Log records over OTLP, by way of ``delivery``."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send; the target's timeout counts."""
        from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs  # noqa: PLC0415 - only where they are sent

        taken = self._delivery.send(len(batch), lambda: encode_logs(batch).SerializeToString())
        return LogRecordExportResult.SUCCESS if taken else LogRecordExportResult.FAILURE

    def shutdown(self) -> None:
        """End what waits."""
        self._delivery.close()

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        """Nothing is held back here."""
        del timeout_millis
        return True
