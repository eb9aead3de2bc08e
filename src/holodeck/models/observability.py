"""How turns are observed: the ``observability`` section of an agent file, and the settings that come of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from holodeck.lib.problems import one_line
from holodeck.models.base import MAX_INT, Bool, Float, Int, Strict, Value

__all__ = [
    "MAX_MILLISECONDS",
    "ConsoleConfig",
    "ExportersConfig",
    "LogsConfig",
    "MetricsConfig",
    "ObservabilityConfig",
    "OtlpConfig",
    "OtlpTarget",
    "RecordLimits",
    "TelemetrySettings",
    "TelemetryStatistics",
    "TracesConfig",
]

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Protocol = Literal["http/protobuf", "grpc"]
MAX_MILLISECONDS: Final = 2**31 - 1
"""The longest time that a socket can be told to wait: 24 days."""


class TracesConfig(Strict):
    """Spans: whether, how many, and whether with content.

    Attributes:
        enabled: Spans are sent, and shown in the terminal.
        sample_rate: Share of the turns that is sent, 0 to 1.
        capture_content: Prompts, replies, tool arguments and tool results are put on spans.
        redaction_patterns: RE2 patterns; what they match in content is hidden.
        max_queue_size: Most spans that wait in memory where the queue on disk cannot be written.
        max_export_batch_size: Most spans in one request; at most ``max_queue_size``.
        schedule_delay_millis: Milliseconds between two requests.
    """

    enabled: Bool = True
    sample_rate: Float | None = Field(default=None, ge=0, le=1)
    capture_content: Bool | None = None
    redaction_patterns: list[str] = Field(default_factory=list)
    max_queue_size: Int | None = Field(default=None, gt=0)
    max_export_batch_size: Int | None = Field(default=None, gt=0)
    schedule_delay_millis: Int | None = Field(default=None, gt=0, le=MAX_MILLISECONDS)


class MetricsConfig(Strict):
    """Metrics: whether, and how often they are sent.

    Attributes:
        enabled: Metrics are sent.
        export_interval_ms: Milliseconds between two requests.
    """

    enabled: Bool = True
    export_interval_ms: Int | None = Field(default=None, gt=0, le=MAX_MILLISECONDS)


class LogsConfig(Strict):
    """Log records of HoloDeck itself: whether, and from which level on.

    Attributes:
        enabled: Log records are sent.
        level: Lowest level that is sent.
    """

    enabled: Bool = True
    level: LogLevel = "INFO"

    @field_validator("level", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value


class ConsoleConfig(Strict):
    """The reader for people.

    Attributes:
        enabled: Turns are shown in the terminal.
        pretty_print: Shown for people; ``false``: one OTLP/JSON line a span on stderr.
        include_timestamps: The tree shows wall-clock times.
    """

    enabled: Bool = True
    pretty_print: Bool = True
    include_timestamps: Bool = False


class OtlpConfig(Strict):
    """Where OTLP goes.

    Attributes:
        enabled: Telemetry goes out over OTLP while observability is on.
        endpoint: Base URL of the collector; ``/v1/traces`` and so on are added for HTTP.
        protocol: ``http`` (protobuf over HTTP) or ``grpc``.
        headers: Sent with each request; secret.
        timeout_ms: Milliseconds for one request.
        compression: ``gzip``, ``deflate`` (not with ``grpc``) or ``none``.
        insecure: Without TLS; the scheme of the endpoint decides, and what contradicts it is an error.
    """

    enabled: Bool = True
    endpoint: str | None = None
    protocol: Literal["grpc", "http"] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout_ms: Int | None = Field(default=None, gt=0, le=MAX_MILLISECONDS)
    compression: Literal["gzip", "deflate", "none"] | None = None
    insecure: Bool | None = None


class ExportersConfig(Strict):
    """The two exporters: the terminal, and OTLP.

    Attributes:
        console: The reader in the terminal.
        otlp: Export over OTLP.
    """

    console: ConsoleConfig = Field(default_factory=ConsoleConfig)
    otlp: OtlpConfig = Field(default_factory=OtlpConfig)


class ObservabilityConfig(Strict):
    """The ``observability`` section of an agent file, as written; None means not said there.

    Attributes:
        enabled: Send telemetry over OTLP: the same switch as ``--observability``.
        service_name: ``service.name`` of the resource.
        resource_attributes: Further attributes of the resource; integers of at most 64 bits.
        traces: Spans.
        metrics: Metrics.
        logs: Log records.
        exporters: Where telemetry goes.
        jaeger_url: Where Jaeger's web pages are, for the link to a turn; ``none``: no link.
    """

    enabled: Bool | None = None
    service_name: str | None = Field(default=None, min_length=1)
    resource_attributes: dict[str, str | bool | int | float] = Field(default_factory=dict)
    traces: TracesConfig = Field(default_factory=TracesConfig)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    logs: LogsConfig = Field(default_factory=LogsConfig)
    exporters: ExportersConfig = Field(default_factory=ExportersConfig)
    jaeger_url: str | None = None

    @field_validator("resource_attributes")
    @classmethod
    def _otlp_can_carry(cls, value: dict[str, str | bool | int | float]) -> dict[str, str | bool | int | float]:
        # The resource goes with every span: one number that cannot be encoded, and nothing is sent at all.
        for key, each in value.items():
            if isinstance(each, int) and abs(each) > MAX_INT:
                raise ValueError(f"the number of '{one_line(key, 60)}' does not fit in 64 bits: quote it, and it is text")
        return value


class OtlpTarget(Value):
    """Where one signal goes over OTLP.

    Attributes:
        url: The final URL: with the signal's path for HTTP, scheme and authority for gRPC.
        protocol: ``http/protobuf`` or ``grpc``.
        headers: Sent with each export; secret.
        timeout: Seconds for one export.
        compression: ``gzip``, ``deflate`` or ``none``.
        insecure: gRPC without TLS; follows the scheme.
        certificate: CA file, or None for the system's.
        client_key: Key file for mutual TLS.
        client_certificate: Certificate file for mutual TLS.
    """

    url: str
    protocol: Protocol
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    timeout: float = 10.0
    compression: str = "none"
    insecure: bool = True
    certificate: Path | None = None
    client_key: Path | None = None
    client_certificate: Path | None = None


class RecordLimits(Value):
    """How much one span or log record holds; what is over it is left out, and counted.

    Attributes:
        span_attributes: Attributes of a span; twice what the specification says, for spans of user code that have many.
        events: Events of a span.
        links: Links of a span.
        event_attributes: Attributes of an event.
        link_attributes: Attributes of a link.
        attribute_length: Characters in an attribute of an event or a link.
        log_attributes: Attributes of a log record.
        log_attribute_length: Characters in an attribute of a log record.
    """

    span_attributes: int = 256
    events: int = 128
    links: int = 128
    event_attributes: int = 128
    link_attributes: int = 128
    attribute_length: int = 65_536
    log_attributes: int = 128
    log_attribute_length: int = 65_536


class TelemetrySettings(Value):
    """Every telemetry setting after precedence (command line > environment > agent file > default).

    Attributes:
        disabled: ``OTEL_SDK_DISABLED``: no telemetry at all.
        otlp: OTLP export is on (``--observability``).
        console: The reader in the terminal is on.
        pretty_print: False: the console writes OTLP/JSON lines on stderr.
        include_timestamps: The tree shows wall-clock times.
        resource: Attributes of the resource, ``service.name`` among them.
        traces, metrics, logs: OTLP target of each signal; None where it is not sent.
        sampler: ``OTEL_TRACES_SAMPLER`` name; ``sampler_arg`` its argument.
        capture_content: The content gate is open.
        redaction_patterns: The user's own patterns (RE2 syntax).
        max_queue_size, max_export_batch_size: Spans.
        schedule_delay_millis, export_interval_ms: Milliseconds.
        log_level: Lowest level that is exported.
        log_max_queue_size, log_max_export_batch_size: Log records.
        log_schedule_delay_millis: Milliseconds.
        metric_temporality: ``cumulative``, ``delta`` or ``lowmemory``.
        metric_histogram: ``explicit_bucket_histogram`` or ``base2_exponential_bucket_histogram``.
        exemplar_filter: Which measurements become exemplars: ``trace_based``, ``always_on`` or ``always_off``.
        attribute_length_limit: Longest attribute value of a span in characters.
        limits: How much else a span or a log record holds.
        trace_file: OTLP/JSON lines are appended there.
        jaeger_url: Where Jaeger shows the turns, without a slash at its end; None where that is not known.
        sources: Where each setting came from: ``flag --NAME``, ``env NAME``, ``agent file`` or ``default``; keys are the names here,
            dotted for what is inside (``traces.url``, ``resource.service.name``).
        warnings: What the user should know about the settings; one line each.
    """

    disabled: bool = False
    otlp: bool = False
    console: bool = True
    pretty_print: bool = True
    include_timestamps: bool = False
    resource: dict[str, Any] = Field(default_factory=dict)
    traces: OtlpTarget | None = None
    metrics: OtlpTarget | None = None
    logs: OtlpTarget | None = None
    sampler: str = "parentbased_always_on"
    sampler_arg: float | None = None
    capture_content: bool = False
    redaction_patterns: tuple[str, ...] = ()
    max_queue_size: int = 2048
    max_export_batch_size: int = 512
    schedule_delay_millis: int = 5000
    export_interval_ms: int = 60_000
    log_level: LogLevel = "INFO"
    log_max_queue_size: int = 2048
    log_max_export_batch_size: int = 512
    log_schedule_delay_millis: int = 1000
    metric_temporality: Literal["cumulative", "delta", "lowmemory"] = "cumulative"
    metric_histogram: Literal["explicit_bucket_histogram", "base2_exponential_bucket_histogram"] = "explicit_bucket_histogram"
    exemplar_filter: Literal["trace_based", "always_on", "always_off"] = "trace_based"
    attribute_length_limit: int = 65_536
    limits: RecordLimits = Field(default_factory=RecordLimits)
    trace_file: Path | None = None
    jaeger_url: str | None = None
    sources: dict[str, str] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class TelemetryStatistics(Value):
    """What became of the telemetry of one process until now: ``made + recovered = delivered + queued + rejected + dropped``.

    Attributes:
        made: Sampled spans that have ended.
        recovered: Spans that earlier runs had left.
        delivered: Spans that the OTLP endpoint took.
        queued: Spans that wait.
        rejected: Spans that the endpoint refused for good.
        dropped: Spans that were given up, by reason: ``queue_full``, ``expired``, ``queue_damaged``, ``not_kept``, ``not_encodable``,
            ``already_shutdown``.
        left_out: Attributes, events and links that were over a span's limits.
        metrics_exported, metrics_failed: Data points of metrics.
        logs_exported, logs_failed: Log records.
        reason: Why the last request that failed did; "" if none has.
    """

    made: int = 0
    recovered: int = 0
    delivered: int = 0
    queued: int = 0
    rejected: int = 0
    dropped: dict[str, int] = Field(default_factory=dict)
    left_out: int = 0
    metrics_exported: int = 0
    metrics_failed: int = 0
    logs_exported: int = 0
    logs_failed: int = 0
    reason: str = ""
