"""Trying out the way to the collector, against servers that are and servers that are not one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry.probe import Answer, fix_for, look_at, make_canary, send_canary
from support.net import SilentPort, unused_port
from support.otlp_receiver import OtlpReceiver
from support.strangers import Banner, Page, TlsPage, certificate, grpc_over_tls

_SETTINGS = TelemetrySettings(resource={"service.name": "doctor-test"})
_JAEGER = b"<!doctype html><html><head><title>Jaeger UI</title></head></html>"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path]:
    """A certificate and its key."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """A receiver that takes everything."""
    with OtlpReceiver() as running:
        yield running


def _http(base: str, path: str = "/v1/traces", **options) -> OtlpTarget:
    return OtlpTarget(url=f"{base}{path}", protocol="http/protobuf", insecure=base.startswith("http:"), **options)


def _grpc(base: str, **options) -> OtlpTarget:
    return OtlpTarget(url=base, protocol="grpc", insecure=base.startswith("http:"), **options)


def _try(target: OtlpTarget, signal: str = "traces") -> tuple[Answer, str]:
    """What was answered, and the advice."""
    answer = send_canary(target, signal, make_canary(_SETTINGS), 3)
    host, _, port = target.url.partition("://")[2].partition("/")[0].rpartition(":")
    return answer, fix_for(target, answer, look_at(host, int(port), 1), signal)


def test_a_canary_is_a_span_and_a_measurement_with_the_resource(receiver):
    """Both arrive, over both protocols, and it is said who took them."""
    for protocol, target in (("HTTP 200 from", _http), ("gRPC OK", _grpc)):
        receiver.clear()
        canary = make_canary(_SETTINGS)
        for signal, base in (("traces", "/v1/traces"), ("metrics", "/v1/metrics")):
            to = target(receiver.http_url, base) if target is _http else target(receiver.grpc_url)
            answer = send_canary(to, signal, canary, 3)
            assert answer.accepted
            assert answer.by.startswith(protocol)
        assert [(span.name, span.trace_id, span.resource["service.name"]) for span in receiver.spans] == [
            ("holodeck doctor", canary.trace_id, "doctor-test")
        ]
        assert [metric.name for metric in receiver.metrics] == ["holodeck.doctor.canary"]


@pytest.mark.parametrize("grpc", [False, True])
def test_refusals_are_named(receiver, grpc):
    """A partial success is no success; a refusal for want of a header names the header."""
    target = _grpc(receiver.grpc_url) if grpc else _http(receiver.http_url)
    receiver.partial(1, "over quota")
    answer, _ = _try(target)
    assert not answer.accepted
    assert "over quota" in answer.reason
    receiver.refuse(401)
    answer, fix = _try(target)
    assert ("UNAUTHENTICATED" if grpc else "401") in answer.by
    assert "OTEL_EXPORTER_OTLP_HEADERS" in fix
    receiver.refuse(401)
    known = target.model_copy(update={"headers": {"x-api-key": "hunter2"}})
    answer, fix = _try(known)
    assert "x-api-key" in fix
    assert "hunter2" not in fix + str(answer)
    receiver.refuse(503)
    answer, _ = _try(target)
    assert not answer.accepted
    assert answer.reason


def test_the_wrong_port_for_the_protocol(receiver):
    """One is spoken on the port of the other, and back."""
    answer, fix = _try(_http(receiver.grpc_url))
    assert not answer.accepted
    assert "gRPC is spoken" in fix
    assert "4318" in fix
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=grpc" in fix
    answer, fix = _try(_grpc(receiver.http_url))
    assert not answer.accepted
    assert "HTTP is spoken" in fix
    assert "4317" in fix
    assert "exporters.otlp.protocol: http" in fix


def test_tls_to_a_plain_port(receiver):
    """The scheme is the fix, for both protocols."""
    for target in (_http(receiver.http_url.replace("http:", "https:")), _grpc(receiver.grpc_url.replace("http:", "https:"))):
        answer, fix = _try(target)
        assert not answer.accepted
        assert re.search(r"no TLS is spoken at 127\.0\.0\.1:\d+: write http://127\.0\.0\.1:\d+", fix)


def test_plain_text_to_a_tls_port(files):
    """The scheme is the fix, for both protocols."""
    with TlsPage(files) as page:
        _, fix = _try(_http(page.base_url))
        assert "write https://" in fix
    with grpc_over_tls(files) as port:
        _, fix = _try(_grpc(f"http://127.0.0.1:{port}"))
        assert "write https://" in fix


def test_a_certificate_that_nobody_vouches_for(files):
    """It is named, and with its authority's file it is trusted."""
    with TlsPage(files, headers={"content-type": "application/x-protobuf"}) as page:
        target = _http(page.base_url.replace("http:", "https:"))
        answer, fix = _try(target)
        assert not answer.accepted
        assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in fix
        answer, _ = _try(target.model_copy(update={"certificate": files[0]}))
        assert answer.accepted


def test_a_path_that_stands_there_twice_or_not_at_all(receiver):
    """Both are named."""
    _, fix = _try(_http(receiver.http_url, "/v1/traces/v1/traces"))
    assert "twice" in fix
    _, fix = _try(_http(receiver.http_url, "/"))
    assert "lacks /v1/traces" in fix
    _, fix = _try(_http(receiver.http_url, "/other/v1/traces"))
    assert "no OTLP is served under /other/v1/traces" in fix


@pytest.mark.parametrize(
    ("page", "grpc", "said"),
    [
        (lambda: Page(200, _JAEGER), False, "the web pages of Jaeger UI"),
        (lambda: Page(405, _JAEGER), True, "the web pages of Jaeger UI"),
        (lambda: Page(200, b"<html>welcome</html>"), False, "no OTLP is served"),
        (lambda: Page(308, b"", {"location": "https://elsewhere.example/"}), False, "https://elsewhere.example/"),
        (lambda: Banner(b"SSH-2.0-OpenSSH_9.6\r\n"), False, "an SSH server answers there (SSH-2.0-OpenSSH_9.6)"),
        (lambda: Banner(b"SSH-2.0-OpenSSH_9.6\r\n"), True, "an SSH server answers there (SSH-2.0-OpenSSH_9.6)"),
        (lambda: Banner(b"220 mail\x1b[2J ready\r\n"), False, "neither HTTP nor gRPC answers there (220 mail"),
        (SilentPort, False, "never answers"),
        (SilentPort, True, "never answers"),
    ],
)
def test_something_else_on_the_port(page, grpc, said):
    """It is said what answered, without anything that a terminal would act upon."""
    with page() as server:
        target = _grpc(server.base_url) if grpc else _http(server.base_url)
        answer, fix = _try(target)
    assert not answer.accepted
    assert said in fix
    assert "\x1b" not in fix + answer.reason


@pytest.mark.parametrize("grpc", [False, True])
def test_nobody_there(grpc):
    """Refused, and the unknown host."""
    base = f"http://127.0.0.1:{unused_port()}"
    answer, fix = _try(_grpc(base) if grpc else _http(base))
    assert answer.reason == "connection refused"
    assert "start the collector" in fix
    base = "http://nobody.invalid:4318"
    answer, fix = _try(_grpc(base) if grpc else _http(base))
    assert not answer.accepted
    assert "host name" in fix


def test_a_receiver_of_spans_alone():
    """A gRPC server without the service of the signal is named as that."""
    answer = Answer(accepted=False, code="UNIMPLEMENTED", by="gRPC UNIMPLEMENTED", reason="…")
    from holodeck.telemetry.probe import Listener

    fix = fix_for(_grpc("http://127.0.0.1:4317"), answer, Listener("http2"), "metrics")
    assert "takes no OTLP metrics" in fix


def test_the_certificate_that_was_named_counts_whatever_the_environment_says(files, monkeypatch):
    """Also on the way that turns take: a CA bundle of the environment does not take its place."""
    from holodeck.telemetry.spool.transport import make_transport

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Path(certifi.where())))
    with TlsPage(files, headers={"content-type": "application/x-protobuf"}) as page:
        target = _http(page.base_url.replace("http:", "https:"), certificate=files[0])
        assert _try(target)[0].accepted
        transport = make_transport(target)
        outcome = transport.send(make_canary(_SETTINGS).requests["traces"], 3)
        transport.close()
    assert outcome.reason == ""
