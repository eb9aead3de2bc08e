"""A chat whose collector is no collector, or does not want its spans: one plain line, and the chat goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.command import run
from support.net import LoopbackServer, SilentPort, unused_port
from support.otlp_receiver import OtlpReceiver
from support.scripts import scripted_agent
from support.strangers import Banner, Page, TlsPage, certificate

_TURNS = ["-m", "one", "-m", "two"]


@pytest.fixture
def agent(tmp_path) -> Path:
    """An agent that answers twice."""
    return scripted_agent(tmp_path, {"text": "first"}, {"text": "second"})


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """A receiver that can be told to misbehave."""
    with OtlpReceiver() as running:
        yield running


def _chat(agent: Path, url: str, **more: str) -> str:
    """What is said beside the answers, which come as if nothing were wrong."""
    began = time.monotonic()
    result = run(["chat", agent, "--observability", *_TURNS], env={"OTEL_EXPORTER_OTLP_ENDPOINT": url, **more})
    assert (result.code, result.out) == (0, "first\nsecond\n")
    assert time.monotonic() - began < 30
    assert "Traceback" not in result.err
    said = [line for line in result.err.splitlines() if "· trace " not in line]
    assert not any("\x1b" in line for line in said)
    return "\n".join(said)


def _one_line(said: str) -> str:
    """The one line that says what became of the spans; what the settings look like may be warned of before."""
    lines = [line for line in said.splitlines() if not re.search(r"usual port", line)]
    assert len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_nobody_listens(agent, protocol):
    """Connection refused, at which address, and what becomes of the spans."""
    port = unused_port()
    line = _one_line(_chat(agent, f"http://127.0.0.1:{port}", OTEL_EXPORTER_OTLP_PROTOCOL=protocol))
    assert "connection refused" in line
    assert f"127.0.0.1:{port}" in line
    assert "kept for later" in line


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_other_protocol_is_spoken_there(agent, receiver, protocol):
    """The chat ends in time, and the line names the address."""
    url = receiver.grpc_url if protocol == "http/protobuf" else receiver.http_url
    line = _one_line(_chat(agent, url, OTEL_EXPORTER_OTLP_PROTOCOL=protocol))
    assert url.removeprefix("http://") in line
    assert f"no {'gRPC' if protocol == 'grpc' else 'HTTP'} is spoken there: check the port and the protocol" in line


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_tls_to_a_plain_port(agent, receiver, protocol):
    """The scheme is named."""
    url = receiver.http_url if protocol == "http/protobuf" else receiver.grpc_url
    line = _one_line(_chat(agent, url.replace("http:", "https:"), OTEL_EXPORTER_OTLP_PROTOCOL=protocol))
    assert "TLS failed: check the scheme" in line


def test_plain_text_to_a_tls_port(agent, tmp_path):
    """One line, whatever the server makes of it."""
    with TlsPage(certificate(tmp_path)) as page:
        assert str(page.port) in _one_line(_chat(agent, page.base_url))


@pytest.mark.parametrize("stranger", [lambda: Page(200, b"<html></html>"), lambda: Banner(b"SSH-2.0-x\r\n"), SilentPort, lambda: Page(404)])
def test_the_port_is_somebody_elses(agent, stranger: Callable[[], LoopbackServer]):
    """A page, a banner, silence: the chat neither stalls nor fails."""
    with stranger() as server:
        said = _chat(agent, server.base_url)
    assert len(said.splitlines()) <= 1


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize(("status", "word"), [(400, "400|INVALID_ARGUMENT"), (401, "headers"), (403, "headers"), (404, "check the p")])
def test_a_collector_that_refuses(agent, receiver, protocol, status, word):
    """The refusal is named, with what to look at."""
    receiver.refuse(status)
    url = receiver.http_url if protocol == "http/protobuf" else receiver.grpc_url
    assert re.search(word, _one_line(_chat(agent, url, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)))


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_partial_success(agent, receiver, protocol):
    """What the collector did not take is counted, with its own words."""
    receiver.partial(1, "over quota")
    url = receiver.http_url if protocol == "http/protobuf" else receiver.grpc_url
    line = _one_line(_chat(agent, url, OTEL_EXPORTER_OTLP_PROTOCOL=protocol))
    assert "rejected" in line
    assert "over quota" in line


@pytest.mark.parametrize("headers", ["no-equals-sign", "a b=c", "x=\u00e9"])
def test_headers_that_are_none(agent, headers):
    """They are refused before the first message, in one line that shows none of their values."""
    result = run(["chat", agent, "--observability", *_TURNS], env={"OTEL_EXPORTER_OTLP_HEADERS": headers})
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("error: OTEL_EXPORTER_OTLP_HEADERS: ")
    assert headers not in result.err
