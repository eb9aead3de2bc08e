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
    """

    def __init__(self, logger: Logger, gate: Gate, level: str) -> None:
        super().__init__(level)
        self._logger, self._gate = logger, gate

    def emit(self, record: logging.LogRecord) -> None:
        """Send ``record`` in the current trace context."""
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
