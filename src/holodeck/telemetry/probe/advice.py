"""What to change where a canary was not taken."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.probe.canary import Answer
from holodeck.telemetry.probe.listener import Listener

__all__ = ["fix_for"]

_PORTS: Final = {"grpc": 4317, "http/protobuf": 4318}
_WRITTEN: Final = {"grpc": "grpc", "http/protobuf": "http"}
_SIGNAL: Final = re.compile(r"/v1/(?:traces|metrics|logs)")
_WEB_PAGES: Final = re.compile(r"jaeger|grafana|prometheus|zipkin|kibana", re.IGNORECASE)
_AUTH: Final = (401, 403)
_AUTH_CODES: Final = ("UNAUTHENTICATED", "PERMISSION_DENIED")


def fix_for(target: OtlpTarget, answer: Answer, listener: Listener, signal: str) -> str:
    """One sentence that says what to do; "" where nothing better than the reason is known."""
    if answer.accepted:
        return ""
    if answer.status in _AUTH or answer.code in _AUTH_CODES:
        return _about_headers(target)
    return _about_port(target, listener) or _about_answer(target, answer, signal) or _about_certificate(answer)


def _about_headers(target: OtlpTarget) -> str:
    names = ", ".join(sorted(target.headers))
    has = f"the headers that are sent ({names}) are not accepted" if names else "no header is sent"
    return f"{has}: set OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20TOKEN', or exporters.otlp.headers in the agent file"


def _about_port(target: OtlpTarget, listener: Listener) -> str:
    """Who listens is not who was meant."""
    place = _place(target)
    stranger = f"{listener.words}: name the collector's port ({_PORTS[target.protocol]} is the usual one)"
    fixes = {
        "unknown host": "check the host name of the endpoint",
        "refused": f"start the collector, or name the port on which it listens: nobody listens at {place}",
        "unreachable": f"check host, port and firewall: {place} does not answer",
        "silent": f"something accepts connections at {place} and never answers: is it the collector, and is it well?",
        "ssh": stranger,
        "other": stranger,
    }
    return fixes.get(listener.kind) or _about_protocol(target, listener)


def _about_protocol(target: OtlpTarget, listener: Listener) -> str:
    place = _place(target)
    if listener.tls is target.insecure:
        return f"{'TLS is spoken' if listener.tls else 'no TLS is spoken'} at {place}: write {_other_scheme(target)}"
    if listener.kind == "http2" and target.protocol == "http/protobuf":
        return f"gRPC is spoken at {place}: {_other_protocol(target)}"
    if page := _web_page(target, listener):
        return page
    if listener.kind == "http" and target.protocol == "grpc":
        return f"HTTP is spoken at {place}, and no gRPC: {_other_protocol(target)}"
    return ""


def _about_answer(target: OtlpTarget, answer: Answer, signal: str) -> str:
    """The right kind of server, and something else is wrong."""
    if answer.status in (404, 405) or (answer.status < 300 and answer.content_type == "text/html"):
        return _about_path(target, signal)
    if 300 <= answer.status < 400:
        return f"the server sends elsewhere, which is not followed: write the endpoint it names ({answer.location or 'it does not say'})"
    if answer.status in (400, 415):
        return "the server does not read protobuf over HTTP there: check that it is an OTLP receiver"
    if answer.code == "UNIMPLEMENTED":
        return f"the gRPC server at {_place(target)} takes no OTLP {signal}: name the collector's port, or switch the signal off"
    return ""


def _about_path(target: OtlpTarget, signal: str) -> str:
    path = urlsplit(target.url).path
    if len(_SIGNAL.findall(path)) > 1:
        return f"the path {path} has the signal's path twice: leave /v1/{signal} out of the endpoint, it is added"
    if not _SIGNAL.search(path):
        variable = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
        return f"the path {path or '/'} lacks /v1/{signal}: {variable} is used as it is, so write it there"
    return f"no OTLP is served under {path}: check port ({_PORTS[target.protocol]} is the usual one) and path"


def _about_certificate(answer: Answer) -> str:
    if "TLS" in answer.reason or "certificate" in answer.reason:
        return "the certificate is not trusted or is for another host: set OTEL_EXPORTER_OTLP_CERTIFICATE to the file of its authority"
    return ""


def _web_page(target: OtlpTarget, listener: Listener) -> str:
    if listener.kind == "http" and _WEB_PAGES.search(listener.name):
        return f"these are the web pages of {listener.name}: OTLP has another port ({_PORTS[target.protocol]} is the usual one)"
    return ""


def _other_protocol(target: OtlpTarget) -> str:
    other = "grpc" if target.protocol == "http/protobuf" else "http/protobuf"
    written = _WRITTEN[other]
    return (
        f"use port {_PORTS[target.protocol]}, or the protocol {other} (OTEL_EXPORTER_OTLP_PROTOCOL={other}, in the agent file "
        f"exporters.otlp.protocol: {written})"
    )


def _other_scheme(target: OtlpTarget) -> str:
    return f"{'https' if target.insecure else 'http'}://{_place(target)} as the endpoint"


def _place(target: OtlpTarget) -> str:
    parts = urlsplit(target.url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{parts.port or (80 if target.insecure else 443)}"
