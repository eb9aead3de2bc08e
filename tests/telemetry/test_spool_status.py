"""What a command can ask of the queues, and the counters and metrics of a process."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from holodeck.errors import SettingError
from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry import DeliveryReport, create_telemetry
from holodeck.telemetry.spool import flush_spool, set_aside, spool_status
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.spans import Spans, names_in, queues, spans_to, target_of
from support.telemetry import RESOURCE, record_turn


def environ_of(root: Path) -> dict[str, str]:
    """The environment in which ``root`` holds the queues."""
    assert root.name == "spool"
    return {"HOLODECK_STATE_DIR": str(root.parent)}


def leave(root: Path, url: str, *names: str) -> None:
    """Spans of a run whose collector was away."""
    spans = Spans(root, target_of(url))
    spans.make(*names)
    spans.queue.shutdown(1)


def test_status_shows_each_queue_and_changes_nothing(tmp_path: Path) -> None:
    """Destination, spans, bytes, age, whether its process lives; open spans of a live one are not crashed."""
    root = tmp_path / "spool"
    assert spool_status(environ_of(root)) == []
    dead_url = f"http://127.0.0.1:{unused_port()}"
    leave(root, dead_url, "a", "b")
    with spans_to(root, target_of("http://127.0.0.1:9", headers={"x": "y"})) as spans:
        spans.make("c")
        still_open = spans.tracer.start_span("open")
        left, live = spool_status(environ_of(root))
        assert (left.url, left.protocol, left.spans, left.live) == (f"{dead_url}/v1/traces", "http/protobuf", 2, False)
        assert (live.spans, live.open_spans, live.crashed_spans, live.live, live.damaged) == (1, 1, 0, True, 0)
        assert left.size > 200
        assert left.oldest is not None
        assert datetime.now(UTC) - left.oldest < timedelta(minutes=1)
        assert left.headers_sha256 != live.headers_sha256
        assert spool_status(environ_of(root)) == [left, live]
        still_open.end()


def test_a_queue_that_cannot_be_read_is_shown(tmp_path: Path) -> None:
    """Without its meta files a directory has no destination, and is shown none the less."""
    root = tmp_path / "spool"
    leave(root, "http://127.0.0.1:9", "a")
    for path in queues(root)[0].glob("meta*"):
        path.write_text("{")
    (entry,) = spool_status(environ_of(root))
    assert (entry.url, entry.spans) == ("", 1)


def test_flush_sends_what_goes_there_and_reports_the_rest(tmp_path: Path) -> None:
    """Delivered, kept, live and other destinations are told apart."""
    root = tmp_path / "spool"
    with OtlpReceiver() as receiver, spans_to(root, target_of(receiver.http_url)) as live:
        live.make("of the living")
        leave(root, "http://127.0.0.1:9", "elsewhere")
        receiver.refuse(503, headers={"retry-after": "0"})
        leave(root, receiver.http_url, "a", "b")
        receiver.accept()
        report = flush_spool(target_of(receiver.http_url), environ_of(root), 5)
        assert (report.delivered, report.kept, report.live, report.other_destinations, report.reason) == (2, 0, 1, 1, "")
        assert names_in(receiver) == ["a", "b"]
        assert report.url == f"{receiver.http_url}/v1/traces"


@pytest.mark.parametrize("status", [None, 503, 401])
def test_flush_says_why_spans_are_kept(tmp_path: Path, status: int | None) -> None:
    """Nobody there, busy or refused: the spans stay, with the reason."""
    root, url = tmp_path / "spool", f"http://127.0.0.1:{unused_port()}"
    with OtlpReceiver() as receiver:
        url = receiver.http_url if status else url
        if status:
            receiver.refuse(status)
        leave(root, url, "a", "b", "c")
        report = flush_spool(target_of(url), environ_of(root), 2)
        assert (report.delivered, report.kept) == (0, 3)
        assert report.reason
        assert len(spool_status(environ_of(root))) == 1


def test_flush_of_nothing_opens_no_connection(tmp_path: Path) -> None:
    """Without spans for the destination nobody is asked."""
    root = tmp_path / "spool"
    with OtlpReceiver() as receiver:
        report = flush_spool(target_of(receiver.http_url), environ_of(root))
        assert (report.delivered, report.kept, report.reason) == (0, 0, "")
        assert receiver.http_connections == 0
    assert not root.exists()


def test_spans_that_were_set_aside_can_be_seen(tmp_path: Path) -> None:
    """How many, how large, and where."""
    root = tmp_path / "spool"
    with OtlpReceiver() as receiver, spans_to(root, target_of(receiver.grpc_url, "grpc")) as spans:
        assert set_aside(environ_of(root)).spans == 0
        spans.make("huge", text="x" * 4_500_000)
        spans.queue.flush(5)
        aside = set_aside(environ_of(root))
        assert (aside.spans, aside.size > 4_500_000) == (1, True)
        assert b"huge" in next(aside.directory.iterdir()).read_bytes()


def test_what_is_set_aside_is_bounded(tmp_path: Path) -> None:
    """A sixteenth of all bytes: what has no room is counted only."""
    root = tmp_path / "spool"
    with OtlpReceiver() as receiver, spans_to(root, target_of(receiver.grpc_url, "grpc"), limits={"max_bytes": 1_000_000}) as spans:
        spans.make("huge", text="x" * 4_500_000)
        spans.queue.flush(5)
        assert spans.statistics.rejected == 1
        assert set_aside(environ_of(root)).spans == 0


def test_a_wrong_limit_is_one_error_for_every_door(tmp_path: Path) -> None:
    """Telemetry, status and flush refuse it alike."""
    environ = {"HOLODECK_STATE_DIR": str(tmp_path), "HOLODECK_SPOOL_MAX_AGE": "soon"}
    target = target_of("http://127.0.0.1:9")
    for door in (
        lambda: spool_status(environ),
        lambda: flush_spool(target, environ),
        lambda: create_telemetry(TelemetrySettings(traces=target, resource=RESOURCE), environ=environ),
    ):
        with pytest.raises(SettingError):
            door()


def test_statistics_count_every_signal(tmp_path: Path) -> None:
    """Spans, data points and log records: delivered ones, and failed ones when nobody is there."""
    with OtlpReceiver() as receiver:
        targets = {s: target_of(receiver.grpc_url, "grpc") for s in ("traces", "metrics", "logs")}
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **targets))
        record_turn(made)
        assert made.statistics().queued == 3
        assert made.flush(5)
        assert (made.statistics().delivered, made.statistics().queued) == (3, 0)
        made.shutdown()
        now = made.statistics()
        assert (now.logs_exported, now.logs_failed, now.metrics_failed) == (1, 0, 0)
        assert now.metrics_exported == sum(len(m.points) for m in receiver.metrics)
        json.dumps(now.model_dump())


def test_the_queue_is_a_metric_by_the_conventions_of_the_sdk(tmp_path: Path) -> None:
    """Waiting, sent and dropped spans under otel.sdk.*, with component and error.type, in the last export too."""
    with OtlpReceiver() as receiver:
        reader = InMemoryMetricReader()
        targets = {"traces": target_of(receiver.http_url), "metrics": target_of(receiver.grpc_url, "grpc")}
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **targets), metric_readers=[reader])
        record_turn(made)
        data = reader.get_metrics_data()
        found = {m.name: list(m.data.data_points) for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}
        assert found["otel.sdk.processor.span.queue.size"][0].value == 3
        attributes = found["otel.sdk.exporter.span.exported"][0].attributes
        assert attributes["otel.component.type"] == "otlp_http_span_exporter"
        assert attributes["otel.component.name"].startswith("otlp_http_span_exporter/")
        receiver.partial(1, "no")
        made.shutdown()
        points = {m.name: m.points for m in receiver.metrics}
        exported = {p.attributes.get("error.type"): p.value for p in points["otel.sdk.exporter.span.exported"]}
        assert exported == {None: 2, "rejected": 1}
        assert [p.value for p in points["otel.sdk.processor.span.processed"]] == [3]


def test_attributes_over_the_limit_are_counted(tmp_path: Path) -> None:
    """V5: what a span has no room for is dropped by the SDK, and counted here."""
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider

    from holodeck.telemetry.spool.processor import SpoolProcessor

    with spans_to(tmp_path, target_of("http://127.0.0.1:9")) as spans:
        provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=2), shutdown_on_exit=False)
        provider.add_span_processor(SpoolProcessor(spans.queue))
        provider.get_tracer("t").start_span("wide", attributes={str(i): i for i in range(5)}).end()
        assert spans.statistics.left_out == 3


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (DeliveryReport(made=3, delivered=3, url="u"), ""),
        (DeliveryReport(), ""),
        (
            DeliveryReport(made=15, delivered=3, kept=12, url="http://h:4318/v1/traces", reason="connection refused"),
            (
                "3 spans delivered, 12 kept for later (connection refused at http://h:4318/v1/traces): "
                "they go out with the next run, or with: holodeck trace spool flush"
            ),
        ),
        (DeliveryReport(made=2, delivered=1, rejected=1, url="u", reason="too old"), "1 span delivered, 1 rejected (too old at u)"),
        (
            DeliveryReport(made=2, dropped=2, url="u", reason="connection refused", drop_reason="they could not be written to disk"),
            "no spans delivered, 2 dropped (they could not be written to disk, connection refused at u)",
        ),
        (
            DeliveryReport(made=2, delivered=2, dropped=3, url="u", drop_reason="they were too old"),
            "2 spans delivered, 3 dropped (they were too old)",
        ),
        (
            DeliveryReport(made=2, delivered=2, unfinished=1, url="u"),
            "2 spans delivered, 1 not ended, kept for later: they go out with the next run, or with: holodeck trace spool flush",
        ),
        (
            DeliveryReport(made=2, kept=2, unfinished=1, url="u", reason="no answer in time"),
            (
                "no spans delivered, 1 not ended, 2 kept for later (no answer in time at u): "
                "they go out with the next run, or with: holodeck trace spool flush"
            ),
        ),
    ],
)
def test_the_last_line_says_what_became_of_the_spans(report: DeliveryReport, sentence: str) -> None:
    """One plain line, or nothing if everything arrived."""
    assert report.sentence() == sentence


def test_notices_reach_the_telemetry_and_its_callback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory that cannot be written: one line, kept and called back once; spans arrive all the same."""
    (tmp_path / "file").write_text("")
    heard: list[str] = []
    with OtlpReceiver() as receiver:
        settings = TelemetrySettings(resource=RESOURCE, otlp=True, traces=target_of(receiver.http_url))
        made = create_telemetry(settings, environ={"HOLODECK_STATE_DIR": str(tmp_path / "file")}, on_notice=heard.append)
        record_turn(made)
        record_turn(made, 2)
        report = made.shutdown()
        assert (report.delivered, report.sentence()) == (6, "")
        assert made.notices == heard
        assert len(heard) == 1
        assert "cannot be written" in heard[0]


def test_the_start_of_a_turn_is_on_disk_with_its_conversation(tmp_path: Path, state: Path) -> None:
    """While a tool runs, root and tool are noted with what is known of them: a crash would find it."""
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

    from holodeck.models.chat import Message, MessageRole
    from holodeck.telemetry.spool.contents import read_contents
    from support.telemetry import CALL, SESSION_ID, SPEC, chat_session

    made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, traces=target_of(f"http://127.0.0.1:{unused_port()}")))
    with made.turn(chat_session(), 1, Message(role=MessageRole.USER, content="Hi")) as turn, turn.tool(CALL, SPEC):
        (queue,) = queues(state / "spool")
        opened = read_contents(queue).opened.values()
        data = (queue / "000001.seg").read_bytes()
        noted = [ScopeSpans.FromString(data[at.offset + 11 + 24 : at.offset + at.length]).spans[0] for at in opened]
    root, tool = ({a.key: a.value.string_value for a in span.attributes} for span in noted)
    assert root["gen_ai.conversation.id"] == str(SESSION_ID)
    assert root["gen_ai.operation.name"] == "invoke_agent"
    assert tool["gen_ai.tool.call.id"] == CALL.id
    assert noted[1].parent_span_id == noted[0].span_id
    made.shutdown(0.5)
