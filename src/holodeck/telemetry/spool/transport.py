"""Sends encoded requests over HTTP or gRPC and says what came of them. Nothing is raised, nothing is tried again here."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.spool.connections import Connections
from holodeck.telemetry.spool.outcome import Fate, Outcome, of_content, of_grpc, of_http, of_response, plain_reason
from holodeck.version import __version__

if TYPE_CHECKING:
    import grpc
    import requests

__all__ = ["Transport", "make_transport"]

_USER_AGENT: Final = f"holodeck/{__version__}"
_SERVICES: Final = {"traces": "trace.v1.TraceService", "metrics": "metrics.v1.MetricsService", "logs": "logs.v1.LogsService"}
_ENDED: Final = Outcome(Fate.LATER, "no answer in time", "timeout", answered=False)
_LONGEST_ANSWER: Final = 4 * 1024 * 1024
_LONGEST_READING: Final = 0.5  # seconds; the head of an answer has decided, the rest tells details
_LONGEST_WAIT: Final = 600.0
_RETRY_INFO: Final = "google.rpc.retryinfo-bin"
_STATUS_DETAILS: Final = "grpc-status-details-bin"


class Transport(Protocol):
    """A way to one destination."""

    def send(self, body: bytes, timeout: float) -> Outcome:
        """Send an ``Export…ServiceRequest`` and wait at most ``timeout`` seconds for each step of the way."""

    def close(self) -> None:
        """Hang up for good: a request that waits for its answer ends now, and none is sent any more."""


def make_transport(target: OtlpTarget, signal: str = "traces") -> Transport:
    """The transport of the target's protocol for ``signal`` (``traces``, ``metrics``, ``logs``); it connects with the first request."""
    return GrpcTransport(target, signal) if target.protocol == "grpc" else HttpTransport(target)


class HttpTransport:
    """OTLP over HTTP/protobuf, with the client that OpenTelemetry's exporters use: proxies and CA files of the environment count alike."""

    def __init__(self, target: OtlpTarget) -> None:
        self._target = target
        self._connections = Connections()
        self._session: requests.Session | None = None

    def _connect(self) -> requests.Session:
        target, session = self._target, self._connections.session()
        if target.client_certificate:
            certificate = str(target.client_certificate)
            session.cert = (certificate, str(target.client_key)) if target.client_key else certificate
        encoding = {} if target.compression == "none" else {"content-encoding": target.compression}
        own = {"content-type": "application/x-protobuf", "user-agent": _USER_AGENT, **encoding}
        session.headers.update(own | {name.lower(): value for name, value in target.headers.items()})
        session.auth = _no_other_credentials
        return session

    def send(self, body: bytes, timeout: float) -> Outcome:
        """Send a request; once more if it went into a connection that the server had closed meanwhile."""
        if self._connections.ended:
            return _ENDED
        try:
            if self._session is None:
                self._session = self._connect()
            return self._post(self._session, self._compressed(body), timeout)
        except Exception as error:  # noqa: BLE001 - whatever fails below, a certificate file too, must not hurt the chat
            return _ENDED if self._connections.ended else _of_http_error(error)

    def _post(self, session: requests.Session, body: bytes, timeout: float) -> Outcome:
        from requests.exceptions import ConnectionError as Broken  # noqa: PLC0415 - behind the first request
        from requests.exceptions import ProxyError, SSLError, Timeout  # noqa: PLC0415 - as above

        tried = self._connections.tried
        try:
            return self._post_once(session, body, timeout)
        except (Timeout, SSLError, ProxyError):
            raise
        except Broken:
            if self._connections.ended or self._connections.tried != tried:
                raise  # of a new connection that broke it is not known whether the request has been taken
            return self._post_once(session, body, timeout)

    def _post_once(self, session: requests.Session, body: bytes, timeout: float) -> Outcome:
        # Given with the request: a CA file of the environment (REQUESTS_CA_BUNDLE) would win over the session's.
        verify = str(self._target.certificate) if self._target.certificate else None
        # A redirect may lead to another host: it would get the headers, too.
        with session.post(self._target.url, data=body, timeout=timeout, allow_redirects=False, stream=True, verify=verify) as answer:
            said = _body(answer)
            if 200 <= answer.status_code < 300:
                return of_content(answer.headers.get("content-type", "")) or of_response(said)
            return of_http(answer.status_code, _retry_after(answer.headers.get("retry-after", "")))

    def _compressed(self, body: bytes) -> bytes:
        if self._target.compression == "gzip":
            return gzip.compress(body, compresslevel=6, mtime=0)
        return zlib.compress(body) if self._target.compression == "deflate" else body

    def close(self) -> None:
        """End every request."""
        self._connections.end()
        if self._session is not None:
            self._session.close()


def _no_other_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keep ``requests`` from looking into ``~/.netrc``: what it finds for the host takes the place of the header that was configured."""
    return request


def _body(answer: requests.Response) -> bytes:
    """What an answer says; less or nothing where it cannot be read, or not soon: that it is an acceptance is known by then."""
    end, said = monotonic() + _LONGEST_READING, bytearray()
    with suppress(Exception):
        while len(said) < _LONGEST_ANSWER and monotonic() < end and (part := answer.raw.read1(64 * 1024, decode_content=True)):
            said += part
    return bytes(said)


def _of_http_error(error: Exception) -> Outcome:
    from requests.exceptions import ConnectionError as Broken  # noqa: PLC0415 - loaded by now
    from requests.exceptions import SSLError, Timeout  # noqa: PLC0415 - as above

    reason = _safe_reason(error)
    if isinstance(error, Timeout):
        return Outcome(Fate.LATER, "no answer in time", "timeout", answered=False)
    if isinstance(error, Broken) and not isinstance(error, SSLError):
        return Outcome(Fate.LATER, reason, type(error).__name__, answered=False)
    return Outcome(Fate.KEPT, reason, type(error).__name__, answered=False)


def _safe_reason(error: Exception) -> str:
    """Plain words for what is known; otherwise the error's name only, since its text may quote a header."""
    text = f"{type(error).__name__}: {error}"
    return plain_reason(text, unknown=f"the request could not be made ({type(error).__name__})")


def _retry_after(text: str) -> float | None:
    """Seconds to wait, from a ``Retry-After`` header in either form (RFC 9110, 10.2.3); at most ten minutes."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT) if math.isfinite(seconds) else None


class GrpcTransport:
    """OTLP over gRPC; requests and answers are bytes."""

    def __init__(self, target: OtlpTarget, signal: str) -> None:
        self._target = target
        self._method = f"/opentelemetry.proto.collector.{_SERVICES[signal]}/Export"
        self._channel: grpc.Channel | None = None
        self._ended = False

    def _connect(self) -> grpc.Channel:
        import grpc  # noqa: PLC0415 - 19 MB, behind the first request

        target = self._target
        compression = grpc.Compression.Gzip if target.compression == "gzip" else grpc.Compression.NoCompression
        options = [("grpc.primary_user_agent", _USER_AGENT)]
        address = urlsplit(target.url).netloc or target.url
        if target.insecure:
            return grpc.insecure_channel(address, options=options, compression=compression)
        read = [path.read_bytes() if path else None for path in (target.certificate, target.client_key, target.client_certificate)]
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(*read), options=options, compression=compression)

    def send(self, body: bytes, timeout: float) -> Outcome:
        """Send a request."""
        import grpc  # noqa: PLC0415 - behind the first request

        if self._ended:
            return _ENDED
        try:
            if self._channel is None:
                self._channel = self._connect()
            call: Any = self._channel.unary_unary(self._method)
            metadata = tuple((name.lower(), value) for name, value in self._target.headers.items())
            return of_response(call(body, timeout=timeout, metadata=metadata) or b"")
        except grpc.RpcError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - a certificate that cannot be read, a channel that was closed meanwhile
            return _ENDED if self._ended else Outcome(Fate.KEPT, _safe_reason(error), type(error).__name__, answered=False)

    def _failed(self, error: Any) -> Outcome:
        if self._ended:
            return _ENDED
        code = error.code().name
        if code == "UNAVAILABLE":
            self._disconnect()  # a channel waits up to two minutes before it connects again by itself
        return of_grpc(code, error.details() or "", _grpc_retry_after(dict(error.trailing_metadata() or ())))

    def close(self) -> None:
        """End every call."""
        self._ended = True
        self._disconnect()

    def _disconnect(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


def _grpc_retry_after(trailers: Mapping[str, object]) -> float | None:
    """Seconds to wait, from the ``RetryInfo`` of a status (OTLP specification, "OTLP/gRPC Throttling"); at most ten minutes."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - loaded by now
    from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # noqa: PLC0415 - only where a server fails
    from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

    details, alone = trailers.get(_STATUS_DETAILS), trailers.get(_RETRY_INFO)
    info = RetryInfo()
    try:
        found = isinstance(details, bytes) and any(detail.Unpack(info) for detail in Status.FromString(details).details)
        if not found and isinstance(alone, bytes):
            info, found = RetryInfo.FromString(alone), True
    except DecodeError:
        return None
    return float(min(max(info.retry_delay.seconds + info.retry_delay.nanos / 1e9, 0.0), _LONGEST_WAIT)) if found else None
