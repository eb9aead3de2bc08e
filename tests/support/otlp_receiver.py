"""A real OTLP receiver on loopback: gRPC and HTTP/protobuf, for spans, metrics and logs.

In a test::

    with OtlpReceiver() as receiver:
        ...  # export to receiver.http_url or receiver.grpc_url
        receiver.wait_for(3)
        assert receiver.tree() == ("invoke_agent a", [("chat m", [])])

On its own: ``python -m support.otlp_receiver [--file OUT.jsonl]`` prints both URLs and serves until it is ended.
"""

from __future__ import annotations

import argparse
import signal as signals
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from support.net import SilentPort, unused_port
from support.otlp_records import Event, Link, Log, Metric, Point, Span, Tree, json_line, read_logs, read_metrics, read_spans, tree_of
from support.otlp_transports import SIGNALS, Behaviour, GrpcTransport, HttpTransport, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "Arrival",
    "Event",
    "Link",
    "Log",
    "Metric",
    "OtlpReceiver",
    "Point",
    "SilentPort",
    "Span",
    "Tree",
    "main",
    "to_json_lines",
    "unused_port",
]

_READERS = {"traces": read_spans, "metrics": read_metrics, "logs": read_logs}


class Arrival(NamedTuple):
    """One export request: ``transport`` is ``grpc`` or ``http``, header names are in lower case, ``body`` is decompressed protobuf."""

    signal: str
    transport: str
    headers: dict[str, str]
    body: bytes
    accepted: bool


class OtlpReceiver:
    """Collects what exporters send, and misbehaves on request.

    It accepts until told otherwise; each of ``accept``, ``refuse``, ``silent``, ``slow`` and ``partial`` replaces the one before.
    gRPC messages are limited to 4 MiB, as in a collector with its defaults.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._behaviour = Behaviour()
        self._left: int | None = None  # requests for which the behaviour holds
        self._arrivals: list[Arrival] = []
        self._records: dict[str, list[Any]] = {name: [] for name in SIGNALS}
        self._http = HttpTransport(self._receive)
        self._grpc = GrpcTransport(self._receive)

    def __enter__(self) -> Self:
        self._http.start()
        self._grpc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._grpc.stop()
        self._http.stop()

    @property
    def http_url(self) -> str:
        """Base URL for ``http/protobuf``; the signal's path comes after it."""
        return self._http.base_url

    @property
    def grpc_url(self) -> str:
        """URL for ``grpc``, without TLS."""
        return f"http://127.0.0.1:{self._grpc.port}"

    @property
    def http_connections(self) -> int:
        """How many HTTP connections were opened."""
        return self._http.connections

    @property
    def spans(self) -> list[Span]:
        """Accepted spans in order of arrival."""
        return self._copy("traces")

    @property
    def metrics(self) -> list[Metric]:
        """Accepted metrics in order of arrival; one that was exported twice stands there twice."""
        return self._copy("metrics")

    @property
    def logs(self) -> list[Log]:
        """Accepted log records in order of arrival."""
        return self._copy("logs")

    @property
    def raw(self) -> list[Arrival]:
        """Every request, those that were refused or never answered included."""
        with self._changed:
            return list(self._arrivals)

    def accept(self) -> None:
        """Accept everything."""
        self._behave(Behaviour())

    def refuse(self, status: int, *, times: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        """Refuse with an HTTP status, or with what gRPC has for it; after ``times`` requests accept again."""
        self._behave(Behaviour(status=status, headers=headers or {}), times)

    def silent(self) -> None:
        """Read requests and never answer them, until the client or the receiver ends."""
        self._behave(Behaviour(seconds=None))

    def slow(self, seconds: float) -> None:
        """Accept, but answer only after ``seconds``."""
        self._behave(Behaviour(seconds=seconds))

    def partial(self, rejected: int, message: str) -> None:
        """Answer that ``rejected`` records were not taken; all are collected none the less."""
        self._behave(Behaviour(rejected=rejected, message=message))

    def wait_for(self, what: int | Callable[[OtlpReceiver], bool], timeout: float = 5.0) -> None:
        """Wait for that many spans, or until ``what(receiver)`` holds; asked again whenever something arrives.

        Raises:
            AssertionError: It did not come about within ``timeout`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.spans) >= what if isinstance(what, int) else what(self), timeout):
                raise AssertionError(f"not there within {timeout} s: {self._describe()}")

    def tree(self, trace_id: str | None = None) -> Tree:
        """A trace as ``(name, [children])``; without an id all spans must be of one trace.

        Raises:
            AssertionError: The spans make no tree, or several.
        """
        return tree_of(span for span in self.spans if trace_id in (None, span.trace_id))

    def clear(self) -> None:
        """Forget what has arrived."""
        with self._changed:
            self._arrivals.clear()
            for records in self._records.values():
                records.clear()

    def _receive(self, signal: Signal, transport: str, headers: dict[str, str], body: bytes) -> Behaviour:
        records = list(_READERS[signal.name](signal.request.FromString(body)))
        with self._changed:
            how = self._next()
            self._arrivals.append(Arrival(signal.name, transport, headers, body, how.accepts))
            self._records[signal.name] += records if how.accepts else []
            self._changed.notify_all()
        return how

    def _behave(self, behaviour: Behaviour, times: int | None = None) -> None:
        with self._changed:
            self._behaviour, self._left = behaviour, times

    def _next(self) -> Behaviour:
        if self._left == 0:
            self._behave(Behaviour())
        elif self._left is not None:
            self._left -= 1
        return self._behaviour

    def _copy(self, signal: str) -> list[Any]:
        with self._changed:
            return list(self._records[signal])

    def _describe(self) -> str:
        names = {"spans": [span.name for span in self.spans], "metrics": [metric.name for metric in self.metrics]}
        return f"{len(self._arrivals)} requests, {names}, {len(self.logs)} logs"


def to_json_lines(receiver: OtlpReceiver, path: Path) -> None:
    """Write what arrived as OTLP/JSON, one export request a line (ids in hex)."""
    requests = [SIGNALS[arrival.signal].request.FromString(arrival.body) for arrival in receiver.raw]
    path.write_text("".join(f"{json_line(request)}\n" for request in requests), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; then write what arrived to ``--file``."""
    parser = argparse.ArgumentParser(prog="python -m support.otlp_receiver", description=main.__doc__)
    parser.add_argument("--file", type=Path, metavar="OUT.jsonl")
    options = parser.parse_args(arguments)
    ends = {signals.SIGTERM, signals.SIGINT}
    signals.pthread_sigmask(signals.SIG_BLOCK, ends)  # before the first thread, which inherits it
    with OtlpReceiver() as receiver:
        sys.stdout.write(f"{receiver.http_url}\n{receiver.grpc_url}\n")
        sys.stdout.flush()
        signals.sigwait(ends)
        if options.file:
            to_json_lines(receiver, options.file)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
