"""The OTLP receiver, fed by OpenTelemetry's own exporters over both transports."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from support.otlp_receiver import OtlpReceiver, SilentPort, to_json_lines, unused_port

RESOURCE = Resource({"service.name": "shop"})


@pytest.fixture
def receiver():
    """A running receiver."""
    with OtlpReceiver() as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def span_exporter(request, receiver):
    """A span exporter for the receiver, once for each transport."""
    if request.param == "http":
        exporter = HttpSpans(f"{receiver.http_url}/v1/traces", timeout=0.5)
    else:
        exporter = GrpcSpans(receiver.grpc_url, timeout=0.5)
    yield exporter
    exporter.shutdown()


def record_turn(exporter):
    """A root with two children, the second of which failed."""
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop.turns")
    with tracer.start_as_current_span("turn") as root:
        with tracer.start_as_current_span(
            "chat", kind=SpanKind.CLIENT, attributes={"stop": ["a", "b"], "tokens": 3, "rate": 0.5, "ok": True}
        ):
            pass
        with tracer.start_as_current_span("tool", links=[Link(root.get_span_context(), {"why": "test"})]) as tool:
            tool.add_event("retry", {"n": 1})
            tool.set_status(Status(StatusCode.ERROR, "no such order"))


def one_span(exporter):
    """The result of exporting a single span."""
    results = []

    class Recorder(SimpleSpanProcessor):
        def on_end(self, span):
            results.append(self.span_exporter.export([span]))

    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(Recorder(exporter))
    provider.get_tracer("t").start_span("one").end()
    return results[0]


def test_spans_arrive_with_everything_they_carry(receiver, span_exporter):
    """Names, ids, kinds, attributes, status, events, links, resource and scope are as they were recorded."""
    record_turn(span_exporter)
    receiver.wait_for(3)
    chat, tool, root = receiver.spans
    assert receiver.tree(root.trace_id) == receiver.tree() == ("turn", [("chat", []), ("tool", [])])
    assert (chat.kind, tool.kind, root.parent_id, chat.parent_id) == (3, 1, "", root.span_id)
    assert chat.attributes == {"stop": ["a", "b"], "tokens": 3, "rate": 0.5, "ok": True}
    assert (tool.status_code, tool.status_message, chat.status_code) == (2, "no such order", 0)
    assert (tool.events[0].name, tool.events[0].attributes) == ("retry", {"n": 1})
    assert tool.links == [(root.trace_id, root.span_id, {"why": "test"})]
    assert (root.resource["service.name"], root.scope) == ("shop", "shop.turns")
    assert root.start <= chat.start <= chat.end <= root.end
    assert len(root.trace_id) == 32
    assert len(root.span_id) == 16


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_metrics_and_logs_arrive(receiver, transport):
    """Histograms keep bounds, counts and temporality; log records keep severity and trace ids."""
    if transport == "http":
        metrics, logs = HttpMetrics(f"{receiver.http_url}/v1/metrics"), HttpLogs(f"{receiver.http_url}/v1/logs")
    else:
        metrics, logs = GrpcMetrics(receiver.grpc_url), GrpcLogs(receiver.grpc_url)
    meters = MeterProvider([PeriodicExportingMetricReader(metrics)], RESOURCE, shutdown_on_exit=False)
    histogram = meters.get_meter("m").create_histogram("latency", "s", explicit_bucket_boundaries_advisory=[0.1, 1.0])
    histogram.record(0.5, {"model": "a"})
    histogram.record(2.0, {"model": "a"})
    meters.get_meter("m").create_counter("turns").add(2)
    meters.shutdown()
    loggers = LoggerProvider(RESOURCE, shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("t")
    with tracer.start_as_current_span("s") as span:
        loggers.get_logger("shop").emit(body="low on stock", severity_text="WARN", attributes={"left": 2})
    loggers.shutdown()

    receiver.wait_for(lambda r: len(r.metrics) == 2 and r.logs)
    latency, turns = sorted(receiver.metrics, key=lambda metric: metric.name)
    point = latency.points[0]
    assert (latency.kind, latency.unit, point.temporality) == ("histogram", "s", "cumulative")
    assert (point.attributes, point.count, point.sum, point.bounds, point.bucket_counts) == ({"model": "a"}, 2, 2.5, [0.1, 1.0], [0, 1, 1])
    assert (turns.kind, turns.points[0].value) == ("sum", 2)
    record = receiver.logs[0]
    assert (record.body, record.severity, record.resource["service.name"]) == ("low on stock", "WARN", "shop")
    assert record.attributes == {"left": 2}
    assert record.trace_id == f"{span.get_span_context().trace_id:032x}"
    assert {arrival.transport for arrival in receiver.raw} == {transport}


@pytest.mark.parametrize("compression", list(Compression))
def test_compressed_bodies_are_understood(receiver, compression):
    """Plain, gzip and deflate bodies mean the same; ``raw`` holds what was inside."""
    exporter = HttpSpans(f"{receiver.http_url}/v1/traces", compression=compression, headers={"x-key": "k"})
    assert one_span(exporter) is SpanExportResult.SUCCESS
    exporter.shutdown()
    arrival = receiver.raw[0]
    assert (arrival.signal, arrival.transport, arrival.headers["x-key"], arrival.accepted) == ("traces", "http", "k", True)
    assert ExportTraceServiceRequest.FromString(arrival.body).resource_spans[0].scope_spans[0].spans[0].name == "one"


@pytest.mark.parametrize("encode", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_the_encoding_is_read_from_the_body(receiver, encode):
    """Both spellings of a compressed body work without any exporter, and a wrong path is not found."""
    encoding = {"content-encoding": "gzip" if encode is gzip.compress else "deflate"}
    assert httpx.post(f"{receiver.http_url}/v1/traces", content=encode(b""), headers=encoding).status_code == 200
    assert httpx.post(f"{receiver.http_url}/traces", content=b"").status_code == 404


@pytest.mark.parametrize("status", [400, 401, 503])
def test_a_refusal_fails_the_export_and_is_over_after_its_time(receiver, span_exporter, status):
    """The exporter learns of the refusal, nothing is collected, and then all is well again."""
    receiver.refuse(status, times=1)
    first = one_span(span_exporter)
    assert [arrival.accepted for arrival in receiver.raw][:1] == [False]
    assert first is SpanExportResult.FAILURE
    assert receiver.spans == []
    assert one_span(span_exporter) is SpanExportResult.SUCCESS
    assert [span.name for span in receiver.spans] == ["one"]


def test_silence_lasts_until_the_exporter_gives_up(receiver, span_exporter):
    """A silent receiver reads and does not answer."""
    receiver.silent()
    assert one_span(span_exporter) is SpanExportResult.FAILURE
    assert receiver.spans == []
    assert receiver.raw[0].accepted is False


def test_a_silent_receiver_stops_at_once():
    """Waiting clients do not hold up the end of a test."""
    with OtlpReceiver() as receiver:
        receiver.silent()
        client = socket.create_connection(("127.0.0.1", int(receiver.http_url.rpartition(":")[2])))
        client.sendall(b"POST /v1/traces HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        receiver.wait_for(lambda r: r.raw)
        started = time.monotonic()
    with client:
        assert client.recv(10) == b""
    assert time.monotonic() - started < 1


def test_a_slow_receiver_accepts_in_the_end(receiver, span_exporter):
    """The answer comes after the time that was asked for."""
    receiver.slow(0.1)
    started = time.monotonic()
    assert one_span(span_exporter) is SpanExportResult.SUCCESS
    assert time.monotonic() - started >= 0.1


def test_a_partial_success_says_how_much_was_rejected(receiver):
    """The response carries count and reason; after ``accept`` it is empty again."""
    receiver.partial(rejected=2, message="too long")
    reply = httpx.post(f"{receiver.http_url}/v1/traces", content=b"")
    receiver.accept()
    assert reply.content == b"\x0a\x0c\x08\x02\x12\x08too long"
    assert httpx.post(f"{receiver.http_url}/v1/traces", content=b"").content == b""


def test_waiting_in_vain_says_what_arrived_and_clear_forgets_it(receiver, span_exporter):
    """The message of a failed wait names the spans."""
    one_span(span_exporter)
    with pytest.raises(AssertionError, match="'one'"):
        receiver.wait_for(2, timeout=0.01)
    receiver.clear()
    assert (receiver.spans, receiver.raw) == ([], [])


def test_two_roots_are_no_tree(receiver, span_exporter):
    """Spans that do not hang together are an error, not a guess."""
    one_span(span_exporter)
    one_span(span_exporter)
    with pytest.raises(AssertionError, match="one root was expected"):
        receiver.tree()


def test_json_lines_have_hex_ids_and_numbers_for_enums(receiver, span_exporter, tmp_path):
    """What is written is OTLP/JSON, one export request a line."""
    record_turn(span_exporter)
    receiver.wait_for(3)
    to_json_lines(receiver, tmp_path / "out.jsonl")
    requests = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    spans = [request["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for request in requests]
    assert [span["spanId"] for span in spans] == [span.span_id for span in receiver.spans]
    assert (spans[0]["traceId"], spans[0]["parentSpanId"], spans[0]["kind"]) == (receiver.spans[2].trace_id, receiver.spans[2].span_id, 3)
    assert spans[1]["links"][0]["spanId"] == receiver.spans[2].span_id
    assert spans[1]["status"]["code"] == 2


def test_ports_without_anybody_and_ports_without_an_answer():
    """Nobody listens on an unused port; a silent one takes a connection and says nothing."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", unused_port()), timeout=1)
    with SilentPort() as silent:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(silent.base_url, timeout=0.05)
        assert silent.connections == 1


def test_it_runs_as_a_process_of_its_own(tmp_path):
    """The module prints both URLs and writes what arrived when it is ended."""
    file = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "support.otlp_receiver", "--file", str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    ) as process:
        http_url, grpc_url = process.stdout.readline().strip(), process.stdout.readline().strip()
        for exporter in (HttpSpans(f"{http_url}/v1/traces"), GrpcSpans(grpc_url)):
            assert one_span(exporter) is SpanExportResult.SUCCESS
            exporter.shutdown()
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    assert len(file.read_text(encoding="utf-8").splitlines()) == 2
