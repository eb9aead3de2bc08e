"""What came of a request, and what that means for its spans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from holodeck.lib.validation import exportable, shorten, terminal_safe

__all__ = ["DELIVERED", "OTLP_TYPES", "Fate", "Outcome", "of_content", "of_grpc", "of_http", "of_response", "plain_reason"]


class Fate(Enum):
    """What is to be done with the spans of a request.

    Attributes:
        DELIVERED: They are taken.
        LATER: Nobody was there, or too busy: again soon.
        KEPT: Something has to be put right first: again, but seldom.
        INVALID: Something in them is not acceptable: find it.
        TOO_LARGE: Too much at once: send less.
    """

    DELIVERED = "delivered"
    LATER = "later"
    KEPT = "kept"
    INVALID = "invalid"
    TOO_LARGE = "too large"


@dataclass(frozen=True)
class Outcome:
    """What came of a request.

    Attributes:
        fate: What is to be done with its spans.
        reason: Why, in plain words; "" if all were taken.
        error_type: Low-cardinality name of the reason; "" if all were taken.
        retry_after: Seconds that the server asked for.
        rejected: Spans that it did not take of those that it took.
        answered: A server answered.
    """

    fate: Fate
    reason: str = ""
    error_type: str = ""
    retry_after: float | None = None
    rejected: int = 0
    answered: bool = True


DELIVERED: Final = Outcome(Fate.DELIVERED)

_REASONS = tuple(
    # From the particular to the general: gRPC begins every one of them with "failed to connect to all addresses".
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (
            r"certificate|verification|SSL(?:Error|_ERROR|V\d)|\[SSL|handshake|wrong.version.number",
            "TLS failed: check the scheme (http or https) and the certificate",
        ),
        (r"parsing HTTP/2|SETTINGS frame|http1\.x", "no gRPC is spoken there: check the port and the protocol"),
        (r"BadStatusLine|UnknownProtocol|BadHTTPVersion", "no HTTP is spoken there: check the port and the protocol"),
        (
            r"name or service not known|nodename nor servname|getaddrinfo|resolution|resolve|resolving|address lookup|\bDNS\b",
            "the host name is unknown",
        ),
        (r"connection.?refused", "connection refused"),
        (r"timed out|timeout|DEADLINE", "no answer in time"),
        (r"proxy", "the proxy did not let it through"),
        (r"reset|broken pipe|aborted|closed|disconnected", "the connection was closed"),
        (r"UNAVAILABLE.*connect|failed to connect", "no connection"),
    )
)
OTLP_TYPES: Final = frozenset({"", "application/x-protobuf", "application/protobuf", "application/json"})
"""Content types of OTLP's answers; some receivers send none."""
_BUSY: Final = frozenset({429, 502, 503, 504})
_HTTP_REASONS: Final = {
    401: "refused with 401: check the headers (authorization)",
    403: "refused with 403: check the headers (authorization)",
    404: "404, the server has no OTLP there: check the port and the path",
    405: "405, the server has no OTLP there: check the port and the path",
    415: "refused with 415: check the protocol",
}
_GRPC_LATER: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED", "OUT_OF_RANGE", "DATA_LOSS", "RESOURCE_EXHAUSTED"}
)
_GRPC_REASONS: Final = {
    "UNAUTHENTICATED": "refused by the collector (UNAUTHENTICATED): check the headers (authorization)",
    "PERMISSION_DENIED": "refused by the collector (PERMISSION_DENIED): check the headers (authorization)",
    "UNIMPLEMENTED": "UNIMPLEMENTED, the server has no OTLP there: check the port and the protocol",
    "NOT_FOUND": "NOT_FOUND, the server has no OTLP there: check the port and the protocol",
}
_TOO_LARGE: Final = re.compile(r"(client: )?received message larger than max", re.IGNORECASE)


def plain_reason(text: str, unknown: str = "") -> str:
    """An error's text as a few plain words; ``unknown``, or the text itself, where none are known for it."""
    return next((words for pattern, words in _REASONS if pattern.search(text)), unknown or _one_line(text))


def _one_line(text: str) -> str:
    return shorten(terminal_safe(exportable(text)).replace("\n", " ").replace("\t", " "), 120)


def of_http(status: int, retry_after: float | None = None) -> Outcome:
    """The outcome of an HTTP answer other than 2xx."""
    if status in _BUSY:
        return Outcome(Fate.LATER, f"the collector is too busy (HTTP {status})", str(status), retry_after)
    if status == 413:
        return Outcome(Fate.TOO_LARGE, "too large for the collector (HTTP 413)", "413")
    if status in (400, 422):
        return Outcome(Fate.INVALID, f"refused by the collector (HTTP {status})", str(status))
    if 300 <= status < 400:
        return Outcome(Fate.KEPT, f"the server redirects (HTTP {status}), which is not followed: check the endpoint", str(status))
    return Outcome(Fate.KEPT, _HTTP_REASONS.get(status, f"refused by the collector (HTTP {status})"), str(status))


def of_content(content_type: str) -> Outcome | None:
    """The outcome of an answer with 2xx that is no OTLP: a login page, or another program on the port. None if it may be OTLP."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in OTLP_TYPES:
        return None
    return Outcome(Fate.KEPT, f"answered with {_one_line(kind)}, which no OTLP receiver does: check the port and the path", "not_otlp")


def of_grpc(code: str, details: str, retry_after: float | None = None) -> Outcome:
    """The outcome of a gRPC status other than OK."""
    if code == "RESOURCE_EXHAUSTED" and (too_large := _TOO_LARGE.search(details)):
        # Where our own side says so it is about the answer: the request has been taken.
        return DELIVERED if too_large[1] else Outcome(Fate.TOO_LARGE, "too large for the collector", code)
    if code == "INVALID_ARGUMENT":
        return Outcome(Fate.INVALID, "refused by the collector (INVALID_ARGUMENT)", code)
    if code == "UNAVAILABLE":
        busy = f"the collector is too busy ({code})"
        reason = plain_reason(details, unknown=busy)  # known words are gRPC's own, for a way that is closed
        return Outcome(Fate.LATER, reason, code, retry_after, answered=reason == busy)
    if code == "DEADLINE_EXCEEDED":
        return Outcome(Fate.LATER, "no answer in time", code, retry_after, answered=False)
    if code in _GRPC_LATER:
        return Outcome(Fate.LATER, f"the collector is too busy ({code})", code, retry_after)
    return Outcome(Fate.KEPT, _GRPC_REASONS.get(code, f"refused by the collector ({code})"), code)


def of_response(body: bytes) -> Outcome:
    """The outcome of an acceptance, which may be a partial one."""
    if not body:
        return DELIVERED
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - only where a collector says more than OK
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse  # noqa: PLC0415 - as above

    try:
        partial = ExportTraceServiceResponse.FromString(body).partial_success
    except DecodeError:  # JSON or HTML with a status of success: taken at its word
        return DELIVERED
    if partial.rejected_spans <= 0:
        return DELIVERED
    said = f": {_one_line(partial.error_message)}" if partial.error_message else ""
    return Outcome(Fate.DELIVERED, f"not taken by the collector{said}", "rejected", rejected=partial.rejected_spans)
