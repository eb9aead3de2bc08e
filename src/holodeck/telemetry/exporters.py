"""OTLP exporters, made from settings; each protocol is imported only when it is used.

Everything is passed explicitly: an exporter that is given nothing reads the environment by itself, past the precedence that HoloDeck
states.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.trace.export import SpanExporter

from holodeck.models.observability import OtlpTarget

__all__ = ["log_exporter", "metric_exporter", "span_exporter"]


def span_exporter(target: OtlpTarget) -> SpanExporter:
    """An exporter for spans."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc  # noqa: PLC0415 - 19 MB, only if used

        return grpc.OTLPSpanExporter(**_grpc_options(target))
    from opentelemetry.exporter.otlp.proto.http import trace_exporter as http  # noqa: PLC0415 - only if used

    return http.OTLPSpanExporter(**_http_options(target))


def metric_exporter(target: OtlpTarget) -> MetricExporter:
    """An exporter for metrics."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc  # noqa: PLC0415 - only if used

        return grpc.OTLPMetricExporter(**_grpc_options(target))
    from opentelemetry.exporter.otlp.proto.http import metric_exporter as http  # noqa: PLC0415 - only if used

    return http.OTLPMetricExporter(**_http_options(target))


def log_exporter(target: OtlpTarget) -> LogRecordExporter:
    """An exporter for log records."""
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc  # noqa: PLC0415 - only if used

        return grpc.OTLPLogExporter(**_grpc_options(target))
    from opentelemetry.exporter.otlp.proto.http import _log_exporter as http  # noqa: PLC0415 - only if used

    return http.OTLPLogExporter(**_http_options(target))


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
