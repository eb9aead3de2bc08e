"""Odd answers of a collector: what has been taken is not sent again, and nothing is called lost that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from holodeck.telemetry.spool.outcome import Fate, of_grpc
from support.net import HttpConnection, HttpServer
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, spans_to, target_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n"


class Answers(HttpServer):
    """Takes requests and answers each with the next of the given bytes, the last one again and again; None: hangs up without a word."""

    def __init__(self, *answers: bytes | None, keep: bool = False) -> None:
        super().__init__()
        self._answers, self._keep = answers, keep
        self.headers: list[dict[str, str]] = []

    def answer(self, http: HttpConnection) -> None:
        """Answer, and close the connection if it is not to be kept."""
        http.body()
        self.headers.append({name.lower(): value for name, value in http.headers.items()})
        said = self._answers[min(len(self.headers), len(self._answers)) - 1]
        if said is not None:
            http.connection.sendall(said)
        if said is None or not self._keep:
            http.hang_up()


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"content-length: 1000\r\n\r\nabc",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzzz\r\n",
        HEAD + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nabcde",
        HEAD + b"content-length: 9\r\n\r\n\xff\xfegarbage",
        HEAD + b"content-length: 9000000\r\n\r\n" + bytes(9_000_000),
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ],
    ids=["short", "chunks", "gzip", "garbage", "long", "old", "continue"],
)
def test_an_acceptance_is_one_whatever_follows_its_head(tmp_path: Path, answer: bytes) -> None:
    """Once a collector has said 2xx the spans are its own: a body that cannot be read does not make them be sent again."""
    with Answers(answer) as server:
        with spans_to(tmp_path, target_of(server.base_url)) as spans:
            spans.make("a", "b")
            assert spans.queue.flush(3)
            assert (spans.statistics.delivered, spans.statistics.reason) == (2, "")
        assert len(server.headers) == 1


def test_a_body_that_drips_is_not_waited_for(tmp_path: Path) -> None:
    """The head of an acceptance has come, its body never ends: the spans count as delivered when the time is over."""

    class Dripping(HttpServer):
        def answer(self, http: HttpConnection) -> None:
            http.body()
            http.connection.sendall(HEAD + b"content-length: 100000\r\n\r\n")
            while True:
                http.pause(0.05)
                http.connection.sendall(b"\0")

    with Dripping() as server, spans_to(tmp_path, target_of(server.base_url)) as spans:
        spans.make("a")
        assert spans.queue.flush(1.5)
        assert spans.statistics.delivered == 1


def test_a_long_message_of_a_partial_success_is_read(tmp_path: Path) -> None:
    """The number of rejected spans stands beside a message of any length."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        receiver.partial(2, "x" * 1_000_000)
        spans.make("a", "b", "c")
        assert spans.queue.flush(5)
        assert (spans.statistics.delivered, spans.statistics.rejected) == (1, 2)
        assert len(spans.statistics.reason) < 300


@pytest.mark.parametrize("status", [400, 413])
def test_a_collector_that_takes_nothing_loses_nothing(tmp_path: Path, status: int) -> None:
    """400 or 413 for every request, an empty one too, says nothing about a span: all are kept."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        receiver.refuse(status)
        spans.make(*"abcde")
        assert not spans.queue.flush(3)
        assert (spans.statistics.rejected, spans.statistics.queued) == (0, 5)
        receiver.accept()
        assert spans.queue.flush(3)
        assert names_in(receiver) == list("abcde")


def test_a_pause_of_no_seconds_is_none(tmp_path: Path) -> None:
    """``Retry-After: 0`` allows another try within the same flush."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        receiver.refuse(503, times=1, headers={"retry-after": "0"})
        spans.make("a")
        assert spans.queue.flush(3)


def test_a_new_connection_that_breaks_is_not_tried_at_once(tmp_path: Path) -> None:
    """The request may have been taken: it is sent again later, as it was, and not in the same moment."""
    with Answers(None) as server, spans_to(tmp_path, target_of(server.base_url)) as spans:
        spans.make("a")
        assert not spans.queue.flush(0.5)
        assert len(server.headers) == 1
        assert spans.statistics.reason == "the connection was closed"


def test_a_connection_that_was_closed_between_two_requests_is_opened_again(tmp_path: Path) -> None:
    """A collector that promises to keep a connection and closes it costs no span and no delay."""
    with Answers(HEAD + b"content-length: 0\r\n\r\n") as server, spans_to(tmp_path, target_of(server.base_url)) as spans:
        for name in "abc":
            spans.make(name)
            assert spans.queue.flush(3)
        assert len(server.headers) == 3


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer mine"}])
def test_credentials_of_netrc_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]) -> None:
    """What stands in ``~/.netrc`` for the host was not configured, and does not take the place of the header that was."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login joe password t0ps3cret\n", encoding="utf-8")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Answers(HEAD + b"content-length: 0\r\n\r\n") as server:
        with spans_to(tmp_path / "spool", target_of(server.base_url, headers=headers)) as spans:
            spans.make("a")
            assert spans.queue.flush(3)
        assert [sent.get("authorization") for sent in server.headers] == [headers.get("authorization")]


def exporting(handle: Callable[[bytes, grpc.ServicerContext], bytes], act: Callable[[str], None]) -> None:
    """Run ``act`` with the URL of a gRPC server that answers by ``handle``."""

    class Handler(grpc.GenericRpcHandler):
        def service(self, _: Any) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(handle)

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as workers:
        options = [("grpc.max_send_message_length", -1)]
        server = grpc.server(workers, handlers=[Handler()], options=options)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            act(f"http://127.0.0.1:{port}")
        finally:
            server.stop(None).wait()


def test_a_grpc_answer_that_is_too_large_is_an_answer(tmp_path: Path) -> None:
    """It is our side that does not take it: the spans have been taken, and are neither rejected nor sent again."""
    requests: list[bytes] = []

    def handle(body: bytes, _: grpc.ServicerContext) -> bytes:
        requests.append(body)
        return bytes(9_000_000)

    def act(url: str) -> None:
        with spans_to(tmp_path, target_of(url, "grpc")) as spans:
            spans.make("a", "b")
            assert spans.queue.flush(5)
            assert (spans.statistics.delivered, spans.statistics.rejected, len(requests)) == (2, 0, 1)

    exporting(handle, act)


def details(info: RetryInfo) -> tuple[str, bytes]:
    """As the gRPC libraries send details of a status."""
    status = Status(code=8)
    status.details.add().Pack(info)
    return "grpc-status-details-bin", status.SerializeToString()


@pytest.mark.parametrize("form", [details, lambda info: ("google.rpc.retryinfo-bin", info.SerializeToString())], ids=["details", "alone"])
def test_the_pause_that_a_grpc_collector_asks_for_is_kept(tmp_path: Path, form: Callable[[Message], tuple[str, bytes]]) -> None:
    """``RetryInfo`` among the details of a status, or as a trailer of its own: nothing is sent before."""
    requests: list[bytes] = []
    info = RetryInfo()
    info.retry_delay.seconds = 30

    def handle(body: bytes, context: grpc.ServicerContext) -> bytes:
        requests.append(body)
        context.set_trailing_metadata((form(info),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy")
        raise AssertionError

    def act(url: str) -> None:
        with spans_to(tmp_path, target_of(url, "grpc")) as spans:
            spans.make("a")
            assert not spans.queue.flush(1)
            assert not spans.queue.flush(0.5)
            assert (spans.statistics.queued, len(requests)) == (1, 1)

    exporting(handle, act)


@pytest.mark.parametrize(
    ("details", "fate"),
    [
        ("SERVER: Received message larger than max (5000000 vs. 4194304)", Fate.TOO_LARGE),
        ("grpc: received message larger than max (5000000 vs. 4194304)", Fate.TOO_LARGE),
        ("Stream removed (CLIENT: Received message larger than max (9000000 vs. 4194304))", Fate.DELIVERED),
        ("out of quota", Fate.LATER),
    ],
)
def test_which_side_found_a_message_too_large(details: str, fate: Fate) -> None:
    """The server's limit is about the spans, ours about its answer."""
    assert of_grpc("RESOURCE_EXHAUSTED", details).fate is fate


def test_a_certificate_for_another_host_is_named() -> None:
    """What gRPC calls a failed verification is a matter of TLS."""
    said = "failed to connect to all addresses; last error: Custom verification check failed: Hostname Verification Check failed."
    assert of_grpc("UNAVAILABLE", said).reason.startswith("TLS failed")


def test_neither_a_disk_nor_an_answer_is_counted(tmp_path: Path) -> None:
    """Leaving while a request hangs: what was in memory only is dropped with its reason, and not forgotten."""
    (tmp_path / "file").write_text("")
    with OtlpReceiver() as receiver:
        receiver.silent()
        spans = Spans(tmp_path / "file" / "spool", target_of(receiver.http_url))
        spans.make("a", "b")
        spans.queue.shutdown(0.3)
        assert (spans.queue.kept, spans.statistics.dropped) == (0, {"not_kept": 2})
        assert spans.accounted()
