"""The two transports of OTLP: they read requests, ask a sink what to do, and answer."""

from __future__ import annotations

import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

from support.net import HttpConnection, HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.protobuf.message import Message

    Sink = Callable[["Signal", str, dict[str, str], bytes], "Behaviour"]
    """Takes signal, transport, headers and protobuf body; says how the request is to be answered."""

__all__ = ["SIGNALS", "Behaviour", "GrpcTransport", "HttpTransport", "Signal"]

_GRPC_WORKERS = 16
_GRPC_STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.UNIMPLEMENTED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}


@dataclass(frozen=True)
class Signal:
    """One of the three signals: its name in the URL, its gRPC service and its messages.

    Attributes:
        rejected: The field of a partial success that counts what was not taken.
    """

    name: str
    service: str
    request: type[Message]
    response: type[Any]
    rejected: str


def _signal(name: str, service: str, module: Any, message: str, rejected: str) -> Signal:
    request, response = (getattr(module, f"Export{message}Service{end}") for end in ("Request", "Response"))
    return Signal(name, f"opentelemetry.proto.collector.{service}", request, response, rejected)


SIGNALS = {
    "traces": _signal("traces", "trace.v1.TraceService", trace_pb, "Trace", "rejected_spans"),
    "metrics": _signal("metrics", "metrics.v1.MetricsService", metrics_pb, "Metrics", "rejected_data_points"),
    "logs": _signal("logs", "logs.v1.LogsService", logs_pb, "Logs", "rejected_log_records"),
}


@dataclass(frozen=True)
class Behaviour:
    """What happens to a request.

    Attributes:
        status: 200, or the HTTP status of a refusal.
        headers: Further response headers (HTTP only).
        seconds: How long the answer takes; None is for ever.
        rejected: Records of a partial success that were not taken.
        message: Why not.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = 0.0
    rejected: int = 0
    message: str = ""

    @property
    def accepts(self) -> bool:
        """Whether the client hears that its request was taken."""
        return self.status == 200 and self.seconds is not None

    def response(self, signal: Signal) -> bytes:
        """The protobuf body of an acceptance."""
        response = signal.response()
        if self.rejected or self.message:
            setattr(response.partial_success, signal.rejected, self.rejected)
            response.partial_success.error_message = self.message
        return response.SerializeToString()


class HttpTransport(HttpServer):
    """``POST /v1/{signal}`` with protobuf bodies, plain, gzip or deflate."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink

    def answer(self, http: HttpConnection) -> None:
        """Take one export request."""
        headers = {name.lower(): value for name, value in http.headers.items()}
        body = _decompress(http.body(), headers.get("content-encoding", ""))
        signal = SIGNALS.get(http.path.removeprefix("/v1/"))
        if signal is None or http.command != "POST":
            http.respond(404, b"404 page not found\n", {"content-type": "text/plain"})
            return
        how = self._sink(signal, "http", headers, body)
        http.pause(how.seconds)
        http.respond(how.status, how.response(signal) if how.accepts else b"", {"content-type": "application/x-protobuf", **how.headers})


class GrpcTransport:
    """The three ``Export`` services."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._workers = ThreadPoolExecutor(_GRPC_WORKERS, thread_name_prefix="otlp-grpc")
        handlers = [self._handler(signal) for signal in SIGNALS.values()]
        self._server = grpc.server(self._workers, handlers=handlers, options=[("grpc.so_reuseport", 0)])
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")

    def start(self) -> None:
        """Start to accept."""
        self._server.start()

    def stop(self) -> None:
        """End every call and wait for its thread."""
        self._server.stop(grace=None).wait()
        self._workers.shutdown()

    def _handler(self, signal: Signal) -> grpc.GenericRpcHandler:
        def export(body: bytes, context: grpc.ServicerContext) -> bytes:
            return self._export(signal, body, context)

        # without (de)serializers the bytes come as they were sent
        return grpc.method_handlers_generic_handler(signal.service, {"Export": grpc.unary_unary_rpc_method_handler(export)})

    def _export(self, signal: Signal, body: bytes, context: grpc.ServicerContext) -> bytes:
        headers = {key: value if isinstance(value, str) else value.hex() for key, value in context.invocation_metadata()}
        how = self._sink(signal, "grpc", headers, body)
        ended = threading.Event()
        if context.add_callback(ended.set):  # set when the client gives up or the server stops
            ended.wait(how.seconds)
        if not how.accepts:
            context.abort(_GRPC_STATUS.get(how.status, grpc.StatusCode.UNKNOWN), f"refused with {how.status}")
        return how.response(signal)


def _decompress(body: bytes, encoding: str) -> bytes:
    if encoding in ("", "identity"):
        return body
    return zlib.decompress(body, zlib.MAX_WBITS | 32)  # tells gzip from zlib, which HTTP calls deflate, by the header
