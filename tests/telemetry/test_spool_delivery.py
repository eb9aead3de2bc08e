"""From the queue to a collector that may behave in any way: real receivers over HTTP and gRPC."""

from __future__ import annotations

import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.net import HttpConnection, HttpServer, SilentPort, unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, spans_to, target_of

PROTOCOLS = ["http/protobuf", "grpc"]


def url_of(receiver: OtlpReceiver, protocol: str) -> str:
    """The base URL of a protocol."""
    return receiver.grpc_url if protocol == "grpc" else receiver.http_url


class Picky(HttpServer):
    """Refuses requests with a span of the name ``poison``, as a collector with strict validation does."""

    def __init__(self, *, everything: bool = False, empty: bool = True, port: int = 0) -> None:
        super().__init__(port)
        self.everything, self.empty = everything, empty
        self.taken: list[str] = []
        self.requests = 0

    def answer(self, http: HttpConnection) -> None:
        """Take a request or refuse it."""
        request = ExportTraceServiceRequest.FromString(http.body())
        names = [span.name for r in request.resource_spans for s in r.scope_spans for span in s.spans]
        self.requests += 1
        refused = self.everything or "poison" in names or not (names or self.empty)
        if not refused:
            self.taken += names
        http.respond(400 if refused else 200, b"", {})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_spans_arrive_in_order_and_the_directory_goes(tmp_path: Path, protocol: str) -> None:
    """What a collector takes is gone from the disk, and each span was sent once."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(url_of(receiver, protocol), protocol)) as spans:
            spans.make(*(str(i) for i in range(50)))
            assert spans.queue.queued == 50
            assert spans.queue.flush(5)
            assert spans.accounted()
        assert names_in(receiver) == [str(i) for i in range(50)]
        assert list(tmp_path.iterdir()) == []


def test_a_full_batch_leaves_at_once_and_the_rest_after_the_delay(tmp_path: Path) -> None:
    """max_export_batch_size and schedule_delay_millis decide when spans leave."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url), most_spans=5) as spans:
        spans.make(*"abcde")
        receiver.wait_for(5)
        assert names_in(receiver) == [*"abcde"]
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url), delay=0.05) as spans:
        spans.make("a", "b")
        receiver.wait_for(2)
        assert names_in(receiver) == ["a", "b"]


def test_a_batch_is_limited_in_spans_and_bytes(tmp_path: Path) -> None:
    """No request has more spans than it may, none more than about 3.5 MiB; a larger span goes alone."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url), most_spans=1000) as spans:
            for name in ("1", "2", "3"):
                spans.make(name, text="x" * 1_500_000)
            spans.make("huge", text="x" * 5_000_000)
            spans.make("small")
            assert spans.queue.flush(10)
        requests = [ExportTraceServiceRequest.FromString(a.body) for a in receiver.raw]
        assert [len(r.resource_spans[0].scope_spans) for r in requests] == [2, 1, 1, 1]
        assert names_in(receiver) == ["1", "2", "3", "huge", "small"]


def test_a_span_too_large_for_grpc_is_set_aside_and_its_neighbours_arrive(tmp_path: Path) -> None:
    """V2: over 4 MiB in one span: it is rejected with the reason, the others are delivered."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.grpc_url, "grpc")) as spans:
            spans.make("before")
            spans.make("huge", text="x" * 5_000_000)
            spans.make("after")
            spans.queue.flush(10)
            now = spans.statistics
            assert (now.delivered, now.rejected, now.queued) == (2, 1, 0)
            assert "too large" in now.reason
        assert names_in(receiver) == ["before", "after"]


@pytest.mark.parametrize("position", [0, 1, 6, 11])
def test_a_poison_span_is_found_and_the_others_arrive(tmp_path: Path, position: int) -> None:
    """400 for a batch: it is divided until the span is alone; that one is set aside, counted, and not sent again."""
    names = [f"good-{i}" for i in range(11)]
    with Picky() as picky:
        with spans_to(tmp_path, target_of(picky.base_url)) as spans:
            spans.make(*names[:position], "poison", *names[position:])
            assert spans.queue.flush(5)
            now = spans.statistics
            assert (now.delivered, now.rejected, now.queued, now.reason) == (11, 1, 0, "refused by the collector (HTTP 400)")
            asked = picky.requests
            spans.make("later")
            assert spans.queue.flush(5)
            assert picky.requests == asked + 1
        assert picky.taken == [*names, "later"]
    assert [path.name for path in tmp_path.iterdir()] == ["rejected"]


@pytest.mark.parametrize("alone", [True, False])
def test_a_collector_that_refuses_everything_takes_no_span_away(tmp_path: Path, alone: bool) -> None:
    """400 for each request, even an empty one, is a fault of the way and not of a span: all are kept."""
    with Picky(everything=True) as picky, spans_to(tmp_path, target_of(picky.base_url)) as spans:
        spans.make(*(["one"] if alone else [str(i) for i in range(300)]))
        assert not spans.queue.flush(5)
        now = spans.statistics
        assert (now.delivered, now.rejected, now.queued) == (0, 0, now.made)
        assert picky.requests < 100


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "check the headers"),
        (403, "check the headers"),
        (404, "no OTLP there"),
        (500, "refused by the collector"),
        (429, "too busy"),
        (503, "too busy"),
        (302, "redirects"),
    ],
)
def test_a_refusal_keeps_the_spans_and_says_why(tmp_path: Path, status: int, words: str) -> None:
    """Whatever a collector answers but success: the spans stay, with the reason in plain words."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        receiver.refuse(status, headers={"location": receiver.http_url})
        spans.make("a", "b")
        start = monotonic()
        assert not spans.queue.flush(1.5)
        assert monotonic() - start < 1.8
        assert spans.statistics.queued == 2
        assert words in spans.statistics.reason
        receiver.accept()
        assert spans.queue.flush(5)
        assert names_in(receiver) == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "words"), [(401, "check the headers"), (404, "no OTLP there"), (503, "too busy (UNAVAILABLE)"), (429, "too busy")]
)
def test_a_grpc_refusal_keeps_the_spans_and_says_why(tmp_path: Path, status: int, words: str) -> None:
    """The same over gRPC."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.grpc_url, "grpc")) as spans:
        receiver.refuse(status)
        spans.make("a")
        assert not spans.queue.flush(1.5)
        assert words in spans.statistics.reason
        receiver.accept()
        assert spans.queue.flush(5)
        assert names_in(receiver) == ["a"]


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """A redirect would hand the headers to another host."""
    with OtlpReceiver() as receiver, OtlpReceiver() as other:
        receiver.refuse(307, headers={"location": f"{other.http_url}/v1/traces"})
        with spans_to(tmp_path, target_of(receiver.http_url, headers={"authorization": "Bearer t0ps3cret"})) as spans:
            spans.make("a")
            spans.queue.flush(1)
        assert other.raw == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_partial_success_is_counted_and_not_sent_again(tmp_path: Path, protocol: str) -> None:
    """The number and the message of what a collector did not take are told."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(url_of(receiver, protocol), protocol)) as spans:
        receiver.partial(2, "too \x1b[31mold")
        spans.make("a", "b", "c")
        assert spans.queue.flush(5)
        now = spans.statistics
        assert (now.delivered, now.rejected, now.reason) == (1, 2, "not taken by the collector: too old")
        assert len(receiver.raw) == 1


def test_a_busy_collector_is_asked_again_within_a_flush(tmp_path: Path) -> None:
    """503 once: the next try delivers, and the receiver has the same bytes twice."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url)) as spans:
        receiver.refuse(503, times=1)
        spans.make("a", "b")
        assert spans.queue.flush(3)
        first, second = receiver.raw
        assert (first.accepted, second.accepted) == (False, True)
        assert first.body == second.body


def test_a_request_without_an_answer_is_sent_again_as_it_was(tmp_path: Path) -> None:
    """It may have arrived: what came in meanwhile goes into a request of its own."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url, timeout=0.2)) as spans:
        receiver.silent()
        spans.make("a", "b")
        assert not spans.queue.flush(1)
        receiver.accept()
        spans.make("c")
        assert spans.queue.flush(3)
        lost, again, rest = receiver.raw
        assert lost.body == again.body != rest.body
        assert names_in(receiver) == ["a", "b", "c"]


def test_a_poison_span_that_was_alone_is_found_when_others_come(tmp_path: Path) -> None:
    """A collector that takes no empty request either: one refused span proves nothing, and blocks nothing for ever."""
    with Picky(empty=False) as picky, spans_to(tmp_path, target_of(picky.base_url)) as spans:
        spans.make("poison")
        assert not spans.queue.flush(2)
        spans.make("good", "better")
        assert spans.queue.flush(3)
        assert picky.taken == ["good", "better"]
        assert spans.statistics.rejected == 1


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    """Before the time that a collector asked for nothing is sent, not even by a flush."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url), delay=0.01) as spans:
        receiver.refuse(429, times=1, headers={"retry-after": "1"})
        start = monotonic()
        spans.make("a")
        receiver.wait_for(lambda r: len(r.raw) == 1)
        assert not spans.queue.flush(0.2)
        assert len(receiver.raw) == 1
        receiver.wait_for(1)
        assert monotonic() - start >= 0.95


def test_a_collector_that_comes_back_gets_everything(tmp_path: Path) -> None:
    """Refused, then there: the thread tries again by itself, without a flush."""
    port = unused_port()
    with spans_to(tmp_path, target_of(f"http://127.0.0.1:{port}"), delay=0.02) as spans:
        spans.make("a", "b")
        deadline = monotonic() + 5
        while not spans.statistics.reason and monotonic() < deadline:
            threading.Event().wait(0.01)
        assert spans.statistics.reason == "connection refused"
        with _Waited(port=port) as server:
            server.wait_until(lambda: server.taken == ["a", "b"])


class _Waited(Picky):
    def answer(self, http: HttpConnection) -> None:
        """Note, then tell who waits."""
        super().answer(http)
        with self._changed:
            self._changed.notify_all()


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
def test_compressed_requests_are_deterministic(tmp_path: Path, compression: str) -> None:
    """A batch that is sent again is the same on the wire, whatever the time."""
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url, compression=compression)) as spans:
        receiver.refuse(503, times=1)
        spans.make("a")
        assert spans.queue.flush(3)
        assert len({a.body for a in receiver.raw}) == 1
        assert {a.headers["content-encoding"] for a in receiver.raw} == {compression}


def test_a_proxy_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY counts, as it does for OpenTelemetry's exporters."""
    seen: list[str] = []

    class Proxy(HttpServer):
        def answer(self, http: HttpConnection) -> None:
            seen.append(http.path)
            http.body()
            http.respond(200, b"", {})

    with Proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with spans_to(tmp_path, target_of("http://collector.invalid:4318")) as spans:
            spans.make("a")
            assert spans.queue.flush(5)
    assert seen == ["http://collector.invalid:4318/v1/traces"]


def test_tls_against_a_plain_port_is_said_in_plain_words(tmp_path: Path) -> None:
    """TLS where there is none: kept, and the reason says what to check."""
    with SilentPort() as port, spans_to(tmp_path, target_of(f"https://127.0.0.1:{port.port}", timeout=0.3)) as spans:
        spans.make("a")
        assert not spans.queue.flush(1)
        assert spans.statistics.queued == 1
    with OtlpReceiver() as receiver, spans_to(tmp_path, target_of(receiver.http_url.replace("http:", "https:"))) as spans:
        spans.make("a")
        assert not spans.queue.flush(2)
        assert "TLS failed" in spans.statistics.reason


def test_a_certificate_that_is_not_there_hurts_nobody(tmp_path: Path) -> None:
    """A missing CA file is a reason, not a traceback; no header is in it."""
    for protocol in PROTOCOLS:
        target = target_of(
            "https://127.0.0.1:9", protocol, insecure=False, certificate=tmp_path / "none.pem", headers={"authorization": "t0ps3cret\n"}
        )
        with spans_to(tmp_path / protocol[:4], target) as spans:
            spans.make("a")
            assert not spans.queue.flush(2)
            assert spans.statistics.reason
            assert "t0ps3cret" not in spans.statistics.reason


def test_the_headers_and_the_agent_are_sent(tmp_path: Path) -> None:
    """What the target says is on the wire; a user's own value wins."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url, headers={"X-Team": "a"})) as spans:
            spans.make("a")
            spans.queue.flush(5)
        (arrival,) = receiver.raw
        assert arrival.headers["x-team"] == "a"
        assert arrival.headers["content-type"] == "application/x-protobuf"
        assert arrival.headers["user-agent"].startswith("holodeck/")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_silent_collector_holds_nobody_up(tmp_path: Path, protocol: str) -> None:
    """While a request hangs, spans are made as fast as before, and leaving is bounded."""
    with SilentPort() as silent:
        spans = Spans(tmp_path, target_of(silent.base_url, protocol), delay=0.01)
        spans.make("first")
        silent.wait_until(lambda: silent.connections > 0) if protocol == "grpc" else threading.Event().wait(0.1)
        slowest = 0.0
        for _ in range(200):
            start = monotonic()
            spans.make("more")
            slowest = max(slowest, monotonic() - start)
        assert slowest < 0.25
        start = monotonic()
        spans.queue.shutdown(1.0)
        assert monotonic() - start < 1.3
        assert spans.queue.kept == 201


def test_nothing_is_there_before_the_first_span(tmp_path: Path) -> None:
    """No directory, no thread; and an unsampled span makes none."""
    before = threading.active_count()
    root = tmp_path / "spool"
    with spans_to(root, target_of("http://127.0.0.1:9")):
        assert not root.exists()
        assert threading.active_count() == before


def test_a_span_after_the_end_is_counted(tmp_path: Path) -> None:
    """A span that ends after shutdown is dropped with a reason."""
    with OtlpReceiver() as receiver:
        with spans_to(tmp_path, target_of(receiver.http_url)) as spans:
            spans.make("a")
        spans.make("late")
        now: Any = spans.statistics
        assert (now.delivered, now.dropped) == (1, {"already_shutdown": 1})
        assert spans.accounted()
