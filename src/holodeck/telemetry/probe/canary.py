"""One span and one measurement, sent to where telemetry goes, and what was answered."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import time_ns
from typing import Any, Final
from urllib.parse import urlsplit

from holodeck.lib.validation import shorten, terminal_safe
from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry.resource import resource_attributes
from holodeck.telemetry.semconv import SCOPE
from holodeck.telemetry.spool.outcome import Fate, Outcome, of_content, of_grpc, of_http, of_response, plain_reason
from holodeck.version import __version__

__all__ = ["Answer", "Canary", "make_canary", "send_canary"]

NAME: Final = "holodeck doctor"
METRIC: Final = "holodeck.doctor.canary"
_USER_AGENT: Final = f"holodeck/{__version__}"
_LONGEST: Final = 64 * 1024
_METHODS: Final = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}


@dataclass(frozen=True)
class Canary:
    """The requests.

    Attributes:
        trace_id: Of the span, 32 hex digits.
        requests: Signal → ``Export…ServiceRequest`` as protobuf.
    """

    trace_id: str
    requests: dict[str, bytes]


@dataclass(frozen=True)
class Answer:
    """What came of sending one.

    Attributes:
        accepted: The receiver took it.
        by: Who answered, and how: ``HTTP 200 from nginx``, ``gRPC OK``; "" if nobody did.
        reason: Why it was not taken, in plain words; "" if it was.
        status: HTTP status, or 0.
        code: gRPC status, or "".
        content_type: Of an HTTP answer.
        location: Where a redirect leads.
    """

    accepted: bool
    by: str = ""
    reason: str = ""
    status: int = 0
    code: str = ""
    content_type: str = ""
    location: str = ""


def make_canary(settings: TelemetrySettings) -> Canary:
    """A span and a measurement with the resource that turns have, and nothing else on them."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest  # noqa: PLC0415 - only here
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415 - as above

    trace_id, now = secrets.token_bytes(16), time_ns()
    traces: Any = ExportTraceServiceRequest()
    span = _scope(traces.resource_spans.add(), settings, "scope_spans").spans.add()
    span.trace_id, span.span_id, span.name, span.kind = trace_id, secrets.token_bytes(8), NAME, 1
    span.start_time_unix_nano, span.end_time_unix_nano = now - 1_000_000, now
    metrics: Any = ExportMetricsServiceRequest()
    metric = _scope(metrics.resource_metrics.add(), settings, "scope_metrics").metrics.add()
    metric.name, metric.unit, metric.description = METRIC, "1", "1 whenever 'holodeck doctor' has looked at the way to the collector."
    point = metric.gauge.data_points.add()
    point.time_unix_nano, point.as_int = now, 1
    return Canary(trace_id.hex(), {"traces": traces.SerializeToString(), "metrics": metrics.SerializeToString()})


def _scope(holder: Any, settings: TelemetrySettings, scopes: str) -> Any:
    for key, value in resource_attributes(settings).items():
        attribute = holder.resource.attributes.add()
        attribute.key = key
        kind = {bool: "bool_value", int: "int_value", float: "double_value"}.get(type(value), "string_value")
        setattr(attribute.value, kind, value if kind != "string_value" else str(value))
    made = getattr(holder, scopes).add()
    made.scope.name, made.scope.version = SCOPE, __version__
    return made


def send_canary(target: OtlpTarget, signal: str, canary: Canary, seconds: float) -> Answer:
    """Send the canary of ``signal`` to ``target`` and wait at most ``seconds`` for each step. Never raises."""
    send: Callable[[OtlpTarget, str, bytes, float], Answer] = _by_grpc if target.protocol == "grpc" else _by_http
    try:
        return send(target, signal, canary.requests[signal], seconds)
    except Exception as error:  # noqa: BLE001 - a certificate file that cannot be read, for example: it is what the doctor has to say
        name = type(error).__name__
        return Answer(accepted=False, reason=plain_reason(f"{name}: {error}", unknown=f"the request could not be made ({name})"))


def _by_http(target: OtlpTarget, signal: str, body: bytes, seconds: float) -> Answer:
    del signal  # it is in the URL
    import requests  # noqa: PLC0415 - the client that turns are sent with: proxies and CA files of the environment count alike

    headers = {"content-type": "application/x-protobuf", "user-agent": _USER_AGENT, **{k.lower(): v for k, v in target.headers.items()}}
    with requests.Session() as session:
        # Given with the request: a CA file of the environment would win over the session's, which the user has named here.
        verify = str(target.certificate) if target.certificate else None
        if target.client_certificate:
            session.cert = (str(target.client_certificate), str(target.client_key))
        with session.post(
            target.url, data=body, headers=headers, timeout=seconds, allow_redirects=False, stream=True, verify=verify
        ) as answer:
            said = answer.raw.read(_LONGEST, decode_content=True) or b""
            return _of_http(answer.status_code, answer.headers, said)


def _of_http(status: int, headers: Any, said: bytes) -> Answer:
    kind = str(headers.get("content-type", "")).partition(";")[0].strip().lower()
    server = _one_line(str(headers.get("server", "")))
    by = f"HTTP {status}" + (f" from {server}" if server else "")
    known: dict[str, Any] = {"by": by, "status": status, "content_type": kind, "location": _one_line(str(headers.get("location", "")))}
    if not 200 <= status < 300:
        return Answer(accepted=False, reason=of_http(status).reason, **known)
    if stranger := of_content(kind):
        return Answer(accepted=False, reason=stranger.reason.partition(":")[0], **known)
    return _of_outcome(of_response(said), known)


def _by_grpc(target: OtlpTarget, signal: str, body: bytes, seconds: float) -> Answer:
    import grpc  # noqa: PLC0415 - only if used

    address = urlsplit(target.url).netloc
    read = [path.read_bytes() if path else None for path in (target.certificate, target.client_key, target.client_certificate)]
    options = [("grpc.primary_user_agent", _USER_AGENT), ("grpc.enable_retries", 0)]
    channel = (
        grpc.insecure_channel(address, options=options)
        if target.insecure
        else grpc.secure_channel(address, grpc.ssl_channel_credentials(*read), options=options)
    )
    with channel:
        call: Any = channel.unary_unary(_METHODS[signal])
        try:
            said = call(body, timeout=seconds, metadata=tuple((name.lower(), value) for name, value in target.headers.items()))
        except grpc.RpcError as error:
            failed: Any = error
            code, outcome = failed.code().name, of_grpc(failed.code().name, failed.details() or "")
            by = f"gRPC {code}" if outcome.answered and code != "UNAVAILABLE" else ""
            return Answer(accepted=False, by=by, reason=outcome.reason, code=code)
    return _of_outcome(of_response(said or b""), {"by": "gRPC OK", "code": "OK"})


def _of_outcome(outcome: Outcome, known: dict[str, Any]) -> Answer:
    taken = outcome.fate is Fate.DELIVERED and not outcome.rejected
    return Answer(accepted=taken, reason="" if taken else outcome.reason, **known)


def _one_line(text: str) -> str:
    return shorten(" ".join(terminal_safe(text).split()), 120)
