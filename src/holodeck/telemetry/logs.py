"""HoloDeck's own log records as OTLP logs, with the trace they belong to.

Only loggers below ``holodeck`` are exported: records of OpenTelemetry and its exporters never are, since exporting the complaint about a
failed export makes the next one. While content capture is off a record's text arguments are left out, whatever they are, and its message
where it does not stand in the code like this: who writes ``f"failed with {text}"`` has filled it in already. Exception text and stack
frames are always left out.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from time import time_ns
from types import FrameType
from typing import Any, Final

from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from holodeck.telemetry.gate import Gate
from holodeck.telemetry.semconv import SCOPE

__all__ = ["OtlpLogHandler", "attach", "detach", "keep_off_stderr"]

_HIDDEN: Final = "…"
_MAX_DEPTH: Final = 8
_MOST: Final = 2**63
"""What an integer in OTLP has to be smaller than."""
_SEVERITIES: Final = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class OtlpLogHandler(logging.Handler):
    """Sends records to ``logger``.

    A record's ``attributes`` (``extra={"attributes": {…}}``) become attributes; their text values are labels, never content, and what is
    neither text nor a number is hidden.

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
        """Send ``record`` in the current trace context. Never raises into the code that logs."""
        try:
            recording = getattr(get_current_span(), "resource", self._resource)
            if recording is self._resource:
                self._logger.emit(self._made_of(record))
        except RecursionError:
            raise  # as logging's own handlers do: it is not about the record
        except Exception:  # noqa: BLE001 - whatever a record holds, who logs must not suffer
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Say which line of code logged what cannot be sent, where ``logging`` would; never what it logged, which may be content."""
        if logging.raiseExceptions and sys.stderr is not None:
            error = type(sys.exception()).__name__
            sys.stderr.write(f"holodeck: the log record of {record.pathname}:{record.lineno} could not be exported ({error})\n")

    def _made_of(self, record: logging.LogRecord) -> LogRecord:
        return LogRecord(
            timestamp=int(record.created * 1e9),
            observed_timestamp=time_ns(),
            context=get_current(),
            severity_text=self._gate.label(str(record.levelname)),
            severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.UNSPECIFIED),
            body=self._body(record),
            attributes=self._attributes(record),
        )

    def _body(self, record: logging.LogRecord) -> str:
        if not self._gate.open and not (isinstance(record.msg, str) and _is_written(record)):
            return _HIDDEN  # an exception, for example: its text is content
        message = str(record.msg)
        arguments = record.args if self._gate.open else _without_text(record.args)
        try:
            message = message % arguments if arguments else message
        except Exception:  # noqa: BLE001 - text and arguments do not fit, or one cannot be written: the text still says what happened
            message = str(record.msg)
        return self._gate.text(message) or "" if self._gate.open else self._gate.label(message)

    def _attributes(self, record: logging.LogRecord) -> dict[str, Any]:
        given = getattr(record, "attributes", None)
        if not isinstance(given, Mapping):
            return {}
        return {self._gate.label(str(key)): self._plain(value) for key, value in given.items() if value is not None}

    def _plain(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._gate.label(value)
        if isinstance(value, list | tuple) and depth < _MAX_DEPTH:
            return [self._plain(each, depth + 1) for each in value]
        if _is_number(value):
            return value if not isinstance(value, int) or abs(value) < _MOST else str(value)
        return _HIDDEN


def _is_number(value: object) -> bool:
    # Not isinstance: a class derived from a number may be written as any text.
    return type(value) in (bool, int, float)


def _is_written(record: logging.LogRecord) -> bool:
    """Whether the message stands in the code that logs, word for word: then it cannot hold what a user or a model said."""
    caller: FrameType | None = sys._getframe()  # noqa: SLF001 - as logging itself finds the caller
    while caller is not None and not (caller.f_lineno == record.lineno and caller.f_code.co_filename == record.pathname):
        caller = caller.f_back
    return caller is not None and record.msg in caller.f_code.co_consts


def _without_text(arguments: object) -> Any:
    if isinstance(arguments, Mapping):
        return {key: value if _is_number(value) else _HIDDEN for key, value in arguments.items()}
    if isinstance(arguments, tuple):
        return tuple(value if _is_number(value) else _HIDDEN for value in arguments)
    return ()


class _Level:
    """The level of the ``holodeck`` logger while handlers of ours are on it: the lowest that one of them sends.

    A level that the host has set, before or meanwhile, is left alone; one of ours goes with the last handler.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.handlers: list[logging.Handler] = []
        self._ours: int | None = None

    def adjust(self, logger: logging.Logger) -> None:
        if logger.level not in (logging.NOTSET, self._ours):
            self._ours = None  # the host has decided
            return
        wanted = min((handler.level for handler in self.handlers), default=logging.NOTSET)
        if wanted and logger.parent is not None:
            wanted = min(wanted, logger.parent.getEffectiveLevel())  # the host must not see less than before
        self._ours = wanted or None
        logger.setLevel(wanted)


_LEVEL: Final = _Level()


def attach(handler: logging.Handler) -> None:
    """From now on ``handler`` gets HoloDeck's log records."""
    logger = logging.getLogger(SCOPE)
    with _LEVEL.lock:
        logger.addHandler(handler)
        _LEVEL.handlers.append(handler)
        _LEVEL.adjust(logger)


def detach(handler: logging.Handler) -> None:
    """``handler`` gets nothing any more, and the logger is left as it was found. Idempotent."""
    logger = logging.getLogger(SCOPE)
    with _LEVEL.lock:
        logger.removeHandler(handler)
        if handler in _LEVEL.handlers:
            _LEVEL.handlers.remove(handler)
            _LEVEL.adjust(logger)


def keep_off_stderr() -> None:
    """Let OpenTelemetry's own records not end on stderr in a process that has no logging; one that has configured it sees them as ever."""
    logger = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())
