"""How much is recorded, and in which form and batches it is sent: what OpenTelemetry's SDK would otherwise read by itself.

What the SDK is not given it reads from the environment, past the precedence, and some of what it does not understand it does not survive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holodeck.config.problems import KeyedError
from holodeck.models.observability import MAX_MILLISECONDS, ObservabilityConfig, RecordLimits

if TYPE_CHECKING:
    from holodeck.config.environment import Environment, Precedence

__all__ = ["RecordingResolver"]

_FILE: Final = "agent file"
_LENGTH: Final = "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
_COUNT: Final = "OTEL_ATTRIBUTE_COUNT_LIMIT"
_LIMITS: Final = {
    "span_attributes": ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", _COUNT),
    "events": ("OTEL_SPAN_EVENT_COUNT_LIMIT",),
    "links": ("OTEL_SPAN_LINK_COUNT_LIMIT",),
    "event_attributes": ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", _COUNT),
    "link_attributes": ("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", _COUNT),
    "attribute_length": (_LENGTH,),
}
_LOG_LIMITS: Final = {
    "log_attributes": ("OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", _COUNT),
    "log_attribute_length": ("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", _LENGTH),
}
_HISTOGRAMS: Final = ("explicit_bucket_histogram", "base2_exponential_bucket_histogram")


class RecordingResolver:
    """Resolves limits, batches and the form of metrics.

    Args:
        config: The ``observability`` section of the agent file.
        spans, metrics, logs: The environment as each signal sees it: strict where the signal is sent.
        precedence: Keeps where values came from.
    """

    def __init__(
        self, config: ObservabilityConfig, precedence: Precedence, *, spans: Environment, metrics: Environment, logs: Environment
    ) -> None:
        self._config, self._precedence = config, precedence
        self._spans, self._metrics, self._logs = spans, metrics, logs

    def settings(self) -> dict[str, Any]:
        """Values by the names that they have in :class:`~holodeck.models.observability.TelemetrySettings`.

        Raises:
            SettingError: A variable means nothing.
            KeyedError: A batch of the agent file is larger than its queue.
        """
        return {**self._span_batches(), **self._log_batches(), **self._metric_form(), **self._limits()}

    def _span_batches(self) -> dict[str, int]:
        traces, pick, integer = self._config.traces, self._precedence.pick, self._spans.integer
        queue = pick("max_queue_size", integer("OTEL_BSP_MAX_QUEUE_SIZE"), (_FILE, traces.max_queue_size), default=2048)
        written = (_FILE, traces.max_export_batch_size)
        delay = (_FILE, traces.schedule_delay_millis)
        return {
            "max_queue_size": queue,
            "max_export_batch_size": self._batch_size("max_export_batch_size", "OTEL_BSP", self._spans, queue, written),
            "schedule_delay_millis": pick(
                "schedule_delay_millis", integer("OTEL_BSP_SCHEDULE_DELAY", high=MAX_MILLISECONDS), delay, default=5000
            ),
        }

    def _log_batches(self) -> dict[str, int]:
        pick, integer = self._precedence.pick, self._logs.integer
        queue = pick("log_max_queue_size", integer("OTEL_BLRP_MAX_QUEUE_SIZE"), default=2048)
        return {
            "log_max_queue_size": queue,
            "log_max_export_batch_size": self._batch_size("log_max_export_batch_size", "OTEL_BLRP", self._logs, queue, (_FILE, None)),
            "log_schedule_delay_millis": pick(
                "log_schedule_delay_millis", integer("OTEL_BLRP_SCHEDULE_DELAY", high=MAX_MILLISECONDS), default=1000
            ),
        }

    def _batch_size(self, setting: str, prefix: str, environment: Environment, queue: int, written: tuple[str, int | None]) -> int:
        said = environment.integer(f"{prefix}_MAX_EXPORT_BATCH_SIZE")
        default = min(512, queue)
        size = self._precedence.pick(setting, said, written, default=default)
        if size <= queue:
            return size
        message = f"{size} is more than the queue holds ({queue}): a batch cannot be larger than the queue"
        if said[1] is None:
            raise KeyedError(("observability", "traces", setting), message)
        environment.refuse(said[0], message)
        return self._precedence.pick(setting, default=default)

    def _metric_form(self) -> dict[str, Any]:
        pick, metrics = self._precedence.pick, self._metrics
        interval, written = (
            metrics.integer("OTEL_METRIC_EXPORT_INTERVAL", high=MAX_MILLISECONDS),
            (_FILE, self._config.metrics.export_interval_ms),
        )
        prefix = "OTEL_EXPORTER_OTLP_METRICS"
        temporality = metrics.choice(f"{prefix}_TEMPORALITY_PREFERENCE", known=("cumulative", "delta", "lowmemory"))
        histogram = metrics.choice(f"{prefix}_DEFAULT_HISTOGRAM_AGGREGATION", known=_HISTOGRAMS)
        exemplars = metrics.choice("OTEL_METRICS_EXEMPLAR_FILTER", known=("trace_based", "always_on", "always_off"))
        return {
            "export_interval_ms": pick("export_interval_ms", interval, written, default=60_000),
            "metric_temporality": pick("metric_temporality", temporality, default="cumulative"),
            "metric_histogram": pick("metric_histogram", histogram, default="explicit_bucket_histogram"),
            "exemplar_filter": pick("exemplar_filter", exemplars, default="trace_based"),
        }

    def _limits(self) -> dict[str, Any]:
        length = self._spans.integer("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", _LENGTH, low=0)
        defaults = RecordLimits()
        limits = {
            name: self._precedence.pick(f"limits.{name}", environment.integer(*names, low=0), default=getattr(defaults, name))
            for environment, table in ((self._spans, _LIMITS), (self._logs, _LOG_LIMITS))
            for name, names in table.items()
        }
        return {
            "attribute_length_limit": self._precedence.pick("attribute_length_limit", length, default=65_536),
            "limits": RecordLimits(**limits),
        }
