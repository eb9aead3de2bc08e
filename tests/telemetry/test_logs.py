"""HoloDeck's log records on their way out: what may leave with them, and what they do to the logging of their host."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import pytest

from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import create_telemetry
from support.otlp_receiver import Log, OtlpReceiver
from support.telemetry import RESOURCE

CANARY = "canary-4711"
LOG = logging.getLogger("holodeck.test")


@contextmanager
def exported(**settings: Any) -> Iterator[tuple[list[Log], list[bytes]]]:
    """The records that arrive and the bytes that were sent; filled at the end."""
    logs: list[Log] = []
    sent: list[bytes] = []
    with OtlpReceiver() as receiver:
        target = OtlpTarget(url=f"{receiver.http_url}/v1/logs", protocol="http/protobuf")
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, logs=target, **settings))
        try:
            yield logs, sent
        finally:
            made.shutdown()
            logs += receiver.logs
            sent += [arrival.body for arrival in receiver.raw]


class Named(IntEnum):
    """A number that is written as text."""

    CANARY_4711 = 1

    def __str__(self) -> str:
        return CANARY


class Loud:
    """An object whose text is content."""

    def __str__(self) -> str:
        return CANARY

    __repr__ = __str__


class Broken:
    """An object that has no text."""

    def __str__(self) -> str:
        raise ValueError(CANARY)

    __repr__ = __str__


@pytest.mark.parametrize(
    ("log", "body"),
    [
        (lambda: LOG.warning("%(who)s did %(n)d", {"who": CANARY, "n": 3}), "… did 3"),
        (lambda: LOG.warning("%s and %s", CANARY, 2.5), "… and 2.5"),
        (lambda: LOG.warning("%s", Named.CANARY_4711), "…"),
        (lambda: LOG.warning("%s", Loud()), "…"),
        (lambda: LOG.warning("%s", Broken()), "…"),
        (lambda: LOG.warning("%r", [CANARY]), "'…'"),
        (lambda: LOG.warning("%d", CANARY), "%d"),
        (lambda: LOG.warning("%s %s", CANARY), "%s %s"),  # noqa: PLE1206 - a mistake of its author
        (lambda: LOG.warning("nothing to fill", CANARY), "nothing to fill"),  # noqa: PLE1205 - as above
        (lambda: LOG.warning("%(missing)s", {"who": CANARY}), "%(missing)s"),
        (lambda: LOG.warning("%", CANARY), "%"),
        (lambda: LOG.warning(ValueError(CANARY)), "…"),
        (lambda: LOG.warning(Broken()), "…"),
        (lambda: LOG.warning("true is %s", True), "true is True"),  # noqa: FBT003 - it is what is logged
        (lambda: LOG.warning("a number: %d", 2**70), f"a number: {2**70}"),
    ],
)
def test_no_text_of_arguments_leaves_while_the_gate_is_shut(log: Callable[[], None], body: str) -> None:
    """Numbers are filled in, everything else is left out, and a text that does not fit its arguments is sent as it stands."""
    with exported() as (logs, sent), no_other_handlers():
        log()
    assert [log.body for log in logs] == [body]
    assert CANARY.encode() not in b"".join(sent)


def _logs_for_another(message: str) -> None:
    LOG.warning(message, stacklevel=2)


@pytest.mark.parametrize(
    "log",
    [
        lambda: LOG.warning(f"failed with {CANARY}"),
        lambda: LOG.warning("failed with %s" % CANARY),  # noqa: UP031 - what people write
        lambda: LOG.warning("failed with {}".format(CANARY)),  # noqa: UP032 - as above
        lambda: LOG.warning("failed with " + CANARY),
        lambda: LOG.warning(CANARY + " %d", 3),
        lambda: LOG.log(logging.ERROR, str(ValueError(CANARY))),
        lambda: _logs_for_another(CANARY + "!"),
        lambda: LOG.handle(logging.makeLogRecord({"msg": CANARY, "name": "holodeck.test", "levelno": logging.ERROR})),
    ],
)
def test_a_message_that_was_filled_in_by_its_author_does_not_leave_while_the_gate_is_shut(log: Callable[[], None]) -> None:
    """Only what stands in the code word for word is sent: an f-string may hold anything."""
    with exported() as (logs, sent), no_other_handlers():
        log()
    assert [log.body for log in logs] == ["…"]
    assert CANARY.encode() not in b"".join(sent)


@pytest.mark.parametrize(
    ("message", "arguments", "body"),
    [
        ("%(who)s did %(n)d", ({"who": "a@b.example", "n": 3},), "[redacted] did 3"),
        ("%d", ("text",), "%d"),
        ("%s", (Broken(),), "%s"),
        (ValueError("what happened"), (), "what happened"),
    ],
)
def test_arguments_leave_redacted_while_the_gate_is_open(message: Any, arguments: tuple[Any, ...], body: str) -> None:
    """With content capture the whole text is sent; what cannot be put together is sent as it stands."""
    with exported(capture_content=True) as (logs, _), no_other_handlers():
        LOG.warning(message, *arguments)
    assert [log.body for log in logs] == [body]


@contextmanager
def no_other_handlers() -> Iterator[None]:
    """The handlers of the test runner complain by themselves about records that cannot be written."""
    root = logging.getLogger()
    before, root.handlers = root.handlers, []
    try:
        yield
    finally:
        root.handlers = before


@pytest.mark.parametrize("capture", [False, True])
def test_exceptions_and_stacks_stay_inside(capture: bool) -> None:
    """Neither the text of an exception nor the lines of a stack leave with a record."""
    with exported(capture_content=capture) as (logs, sent):
        try:
            raise ValueError(CANARY)
        except ValueError:
            LOG.exception("it failed", stack_info=True)
    assert [log.body for log in logs] == ["it failed"]
    assert CANARY.encode() not in b"".join(sent)
    assert b"Traceback" not in b"".join(sent)


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def test_attributes_are_labels_and_numbers() -> None:
    """Text is redacted, numbers stay, nothing is left out, and what is neither is hidden."""
    attributes = {
        "text": "a@b.example",
        "count": 2,
        "ratio": 0.5,
        "flag": True,
        "none": None,
        "list": ["a", 1, Loud()],
        "mapping": {"password": CANARY},
        "error": ValueError(CANARY),
        "bytes": CANARY.encode(),
        "broken": Broken(),
        "large": 2**63,
        "circle": _circle(),
        "c@d.example": 1,
        7: "seven",
    }
    with exported() as (logs, sent):
        LOG.warning("x", extra={"attributes": attributes})
        LOG.warning("y", extra={"attributes": [CANARY]})
    found = [log.attributes for log in logs]
    assert "…" in str(found[0]["circle"])
    assert found == [
        {
            "text": "[redacted]",
            "count": 2,
            "ratio": 0.5,
            "flag": True,
            "list": ["a", 1, "…"],
            "mapping": "…",
            "error": "…",
            "bytes": "…",
            "broken": "…",
            "large": str(2**63),
            "circle": found[0]["circle"],
            "[redacted]": 1,
            "7": "seven",
        },
        {},
    ]
    assert CANARY.encode() not in b"".join(sent)


def test_a_record_that_cannot_be_sent_costs_the_caller_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The code that logs goes on, and what is said about it names the line and not what it logged."""
    hostile = logging.LogRecord("holodeck.test", logging.WARNING, "file.py", 7, "%s", (CANARY,), None)
    hostile.created = float("nan")
    with exported() as (logs, _), no_other_handlers():
        LOG.handle(hostile)
        LOG.warning("next")
    said = capsys.readouterr().err
    assert [log.body for log in logs] == ["next"]
    assert said == "holodeck: the log record of file.py:7 could not be exported (ValueError)\n"


@pytest.fixture
def holodeck_level() -> Iterator[logging.Logger]:
    """The ``holodeck`` logger, put back at the end."""
    logger = logging.getLogger("holodeck")
    before = logger.level
    logger.setLevel(logging.NOTSET)
    yield logger
    logger.setLevel(before)


def _with_logs(level: str = "INFO") -> Any:
    target = OtlpTarget(url="http://127.0.0.1:9/v1/logs", protocol="http/protobuf")
    return create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, logs=target, log_level=level))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_the_level_is_put_back_with_the_last_telemetry(holodeck_level: logging.Logger, order: tuple[int, ...]) -> None:
    """While several are alive the lowest level counts, in whichever order they end; then the logger is as it was."""
    levels = ["ERROR", "DEBUG", "INFO"]
    alive = {number: _with_logs(level) for number, level in enumerate(levels)}
    root = logging.getLogger().getEffectiveLevel()
    for number in order:
        assert holodeck_level.level == min(root, *(getattr(logging, levels[n]) for n in alive))
        alive.pop(number).shutdown()
    assert holodeck_level.level == logging.NOTSET
    assert not [h for h in holodeck_level.handlers if type(h).__name__ == "OtlpLogHandler"]


def test_a_level_of_the_host_is_left_alone(holodeck_level: logging.Logger) -> None:
    """What the host has set before, or sets meanwhile, is what is there afterwards."""
    holodeck_level.setLevel(logging.ERROR)
    made = _with_logs()
    assert holodeck_level.level == logging.ERROR
    made.shutdown()
    assert holodeck_level.level == logging.ERROR
    holodeck_level.setLevel(logging.NOTSET)
    first, second = _with_logs(), _with_logs("DEBUG")
    holodeck_level.setLevel(logging.CRITICAL)
    first.shutdown()
    second.shutdown()
    assert holodeck_level.level == logging.CRITICAL


def test_the_host_sees_no_less_than_before(holodeck_level: logging.Logger) -> None:
    """Where the root logger lets more through, so does ours."""
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.DEBUG)
    try:
        made = _with_logs("ERROR")
        assert holodeck_level.isEnabledFor(logging.DEBUG)
        made.shutdown()
    finally:
        root.setLevel(before)


HOST = """
import logging, sys
from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry import create_telemetry
if sys.argv[1] == "configured":
    logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s")
made = [create_telemetry(TelemetrySettings()) for _ in range(3)]
logging.getLogger("opentelemetry.sdk.trace").warning("complaint")
print([type(h).__name__ for h in logging.getLogger("opentelemetry").handlers], logging.getLogger("opentelemetry").propagate)
"""


@pytest.mark.parametrize(("host", "err"), [("silent", ""), ("configured", "opentelemetry.sdk.trace complaint\n")])
def test_complaints_of_opentelemetry_go_where_the_host_wants_them(host: str, err: str) -> None:
    """A process without logging gets nothing on stderr; one that has configured it sees them as ever."""
    done = subprocess.run([sys.executable, "-c", HOST, host], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("['NullHandler'] True\n", err)
