"""OTLP exporters for metrics and log records, made from settings; each protocol is imported only when it is used.

Spans do not go through the SDK's exporters: :mod:`holodeck.telemetry.spool` sends them.

Everything is passed explicitly: an exporter that is given nothing reads the environment by itself, past the precedence that HoloDeck
states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.delivery import Counters

__all__ = ["log_exporter", "metric_exporter"]


def metric_exporter(target: OtlpTarget, counters: Counters) -> MetricExporter:
    """An exporter for metrics; ``counters`` counts data points."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc  # noqa: PLC0415 - only if used

        grpc_made: MetricExporter = _counting_metrics(grpc.OTLPMetricExporter, counters)(**_grpc_options(target))
        return grpc_made
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as http  # noqa: PLC0415 - only if used

    made: MetricExporter = _counting_metrics(http.OTLPMetricExporter, counters)(**_http_options(target))
    return made


def log_exporter(target: OtlpTarget, counters: Counters) -> LogRecordExporter:
    """An exporter for log records; ``counters`` counts them."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc  # noqa: PLC0415 - only if used

        grpc_made: LogRecordExporter = _counting_logs(grpc.OTLPLogExporter, counters)(**_grpc_options(target))
        return grpc_made
    from opentelemetry.exporter.otlp.proto.http import _log_exporter as http  # noqa: PLC0415 - only if used

    made: LogRecordExporter = _counting_logs(http.OTLPLogExporter, counters)(**_http_options(target))
    return made


def _counting_metrics(exporter: Any, counters: Counters) -> Any:
    # A subclass and not a wrapper: the reader asks its exporter for more than the interface says.
    class Counting(exporter):  # type: ignore[misc]
        def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
            result: MetricExportResult = super().export(metrics_data, timeout_millis, **kwargs)
            metrics = [m for r in metrics_data.resource_metrics for s in r.scope_metrics for m in s.metrics]
            counters.exported("metrics", sum(len(m.data.data_points) for m in metrics), success=result is MetricExportResult.SUCCESS)
            return result

    return Counting


def _counting_logs(exporter: Any, counters: Counters) -> Any:
    class Counting(exporter):  # type: ignore[misc]
        def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
            result: LogRecordExportResult = super().export(batch)
            counters.exported("logs", len(batch), success=result is LogRecordExportResult.SUCCESS)
            return result

    return Counting


def _http_options(target: OtlpTarget) -> dict[str, Any]:
    from opentelemetry.exporter.otlp.proto.http import Compression  # noqa: PLC0415 - only if used

    return {
        "endpoint": target.url,
        "headers": dict(target.headers),
        "timeout": target.timeout,
        "compression": Compression(target.compression),
        **_files(target, "client_key_file", "client_certificate_file", "certificate_file"),
    }


def _files(target: OtlpTarget, key: str, certificate: str, authority: str) -> dict[str, str | None]:
    pairs = ((key, target.client_key), (certificate, target.client_certificate), (authority, target.certificate))
    return {name: str(path) for name, path in pairs if path is not None}


def _grpc_options(target: OtlpTarget) -> dict[str, Any]:
    from grpc import Compression  # noqa: PLC0415 - only if used

    options: dict[str, Any] = {
        "endpoint": target.url,
        "insecure": target.insecure,
        "headers": tuple(target.headers.items()),
        "timeout": target.timeout,
        "compression": Compression.Gzip if target.compression == "gzip" else Compression.NoCompression,
    }
    if not target.insecure:
        options["credentials"] = _credentials(target)
    return options


def _credentials(target: OtlpTarget) -> Any:
    from grpc import ssl_channel_credentials  # noqa: PLC0415 - only if used

    read = [path.read_bytes() if path else None for path in (target.certificate, target.client_key, target.client_certificate)]
    return ssl_channel_credentials(*read)
