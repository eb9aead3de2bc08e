"""HoloDeck's own log records as OTLP logs, with the trace they belong to.

Only loggers below ``holodeck`` are exported: records of OpenTelemetry and its exporters never are, since exporting the complaint about a
failed export makes the next one. While content capture is off a record's text arguments are left out, whatever they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import time_ns
from typing import Any, Final

from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from holodeck.telemetry.gate import Gate

__all__ = ["OtlpLogHandler"]

_HIDDEN: Final = "…"
_SEVERITIES: Final = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class OtlpLogHandler(logging.Handler):
    """Sends records to ``logger``.

    A record's ``attributes`` (``extra={"attributes": {…}}``) become attributes; their text values are labels, never content.

    Args:
        logger: Where the records go.
        gate: What may enter them.
        level: The lowest level that is sent.
        resource: Of this telemetry. Several agents in a process share one Python logger: a record that is written inside a turn belongs
            to the telemetry that records the turn, and to no other.
    """

    def __init__(self, logger: Logger, gate: Gate, level: str, resource: object) -> None:
        super().__init__(level)
        self._logger, self._gate, self._resource = logger, gate, resource

    def emit(self, record: logging.LogRecord) -> None:
        """Send ``record`` in the current trace context."""
        recording = getattr(get_current_span(), "resource", self._resource)
        if recording is not self._resource:
            return
        self._logger.emit(
            LogRecord(
                timestamp=int(record.created * 1e9),
                observed_timestamp=time_ns(),
                context=get_current(),
                severity_text=record.levelname,
                severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.UNSPECIFIED),
                body=self._body(record),
                attributes=self._attributes(record),
            )
        )

    def _body(self, record: logging.LogRecord) -> str:
        if self._gate.open:
            return self._gate.text(record.getMessage()) or ""
        arguments = record.args
        if isinstance(arguments, tuple):
            arguments = tuple(a if isinstance(a, int | float) else _HIDDEN for a in arguments)
        return self._gate.label(str(record.msg) % arguments if arguments else str(record.msg))

    def _attributes(self, record: logging.LogRecord) -> dict[str, Any]:
        given: Mapping[str, Any] = getattr(record, "attributes", {})
        return {k: self._gate.label(v) if isinstance(v, str) else v for k, v in given.items()}
