"""From settings to what really leaves the process: real OTLP receivers over HTTP and gRPC."""

from __future__ import annotations

import errno
import io
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest
from opentelemetry import trace

from holodeck.errors import SessionError
from holodeck.models.exchange import ModelReply
from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import Evaluation, Telemetry, create_telemetry
from support.otlp_receiver import OtlpReceiver, SilentPort, unused_port
from support.telemetry import RESOURCE, USAGE, record_turn

PROTOCOLS = ["http/protobuf", "grpc"]
SIGNALS = ("traces", "metrics", "logs")


def targets(receiver: OtlpReceiver, protocol: str, **options: Any) -> dict[str, OtlpTarget]:
    """One target a signal."""
    if protocol == "grpc":
        return {s: OtlpTarget(url=receiver.grpc_url, protocol="grpc", **options) for s in SIGNALS}
    return {s: OtlpTarget(url=f"{receiver.http_url}/v1/{s}", protocol="http/protobuf", **options) for s in SIGNALS}


@contextmanager
def telemetry(trace_file: Any = None, keep_turns: int = 0, **settings: Any) -> Iterator[Telemetry]:
    """Telemetry that is shut down at the end."""
    made = create_telemetry(TelemetrySettings(**({"resource": RESOURCE} | settings)), trace_file=trace_file, keep_turns=keep_turns)
    try:
        yield made
    finally:
        made.shutdown()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_spans_metrics_and_logs_arrive_with_the_same_trace(protocol: str) -> None:
    """All three signals of a turn reach the receiver, joined by trace id and resource."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, **targets(receiver, protocol, headers={"x-team": "a"})) as made:
            record_turn(made)
            logging.getLogger("holodeck.test").info("outside of the turn")
        assert receiver.tree() == ("invoke_agent support", [("chat gpt-4o-mini", []), ("execute_tool lookup_order", [])])
        (trace_id,) = {s.trace_id for s in receiver.spans}
        assert trace_id in {log.trace_id for log in receiver.logs}
        assert "gen_ai.client.token.usage" in {m.name for m in receiver.metrics}
        assert {s.resource["service.instance.id"] for s in receiver.spans} == {"test"}
        assert {a.signal for a in receiver.raw} == set(SIGNALS)
        assert all(a.headers.get("x-team") == "a" for a in receiver.raw)


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
def test_compression_reaches_the_wire(compression: str) -> None:
    """What the settings say is what the receiver sees."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, **targets(receiver, "http/protobuf", compression=compression)) as made:
            record_turn(made)
        assert len(receiver.spans) == 3
        assert {a.headers.get("content-encoding") for a in receiver.raw} == {compression}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_report_counts_what_was_delivered(protocol: str) -> None:
    """When everything arrives there is nothing to say."""
    with OtlpReceiver() as receiver:
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **targets(receiver, protocol)))
        record_turn(made)
        report = made.shutdown()
        assert (report.made, report.delivered, report.lost, report.sentence()) == (3, 3, 0, "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_leaving_is_bounded_and_honest_when_nobody_listens(protocol: str) -> None:
    """With a refused connection, leaving takes less than 2 s and the report says how many spans are kept, where and why."""
    url = f"http://127.0.0.1:{unused_port()}"
    url = url if protocol == "grpc" else f"{url}/v1/traces"
    made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, traces=OtlpTarget(url=url, protocol=protocol)))
    record_turn(made)
    start = monotonic()
    report = made.shutdown()
    assert monotonic() - start < 2
    assert report.sentence() == (
        f"no spans delivered, 3 kept for later (connection refused at {url}): "
        "they go out with the next run, or with: holodeck trace spool flush"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_leaving_is_bounded_when_the_collector_is_silent(protocol: str) -> None:
    """A collector that accepts and never answers does not hold the exit back."""
    with SilentPort() as silent:
        url = silent.base_url if protocol == "grpc" else f"{silent.base_url}/v1/traces"
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, traces=OtlpTarget(url=url, protocol=protocol)))
        record_turn(made)
        start = monotonic()
        report = made.shutdown()
        assert monotonic() - start < 2
        assert (report.kept, report.lost, report.reason) == (3, 0, "no answer in time")


@pytest.mark.parametrize(("status", "words"), [(401, "check the headers"), (404, "no OTLP there"), (400, "refused by the collector")])
def test_a_refusal_is_told_in_plain_words(status: int, words: str) -> None:
    """What the collector answered is in the report, in words that say what to do."""
    with OtlpReceiver() as receiver:
        receiver.refuse(status)
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, traces=targets(receiver, "http/protobuf")["traces"]))
        record_turn(made)
        assert words in made.shutdown().sentence()


def test_disabled_telemetry_makes_no_thread_and_no_trace() -> None:
    """OTEL_SDK_DISABLED: the same calls work, nothing is recorded, no thread is started."""
    before = threading.active_count()
    with telemetry(disabled=True) as made:
        context = record_turn(made)
        assert context.trace_id == 0
        assert threading.active_count() == before
        assert made.trace(format(context.trace_id, "032x")) == {}


def test_recent_turns_can_be_read_back() -> None:
    """The last turns' spans are kept as OTLP/JSON; older ones are let go."""
    with telemetry(keep_turns=2) as made:
        ids = [format(record_turn(made, number).trace_id, "032x") for number in (1, 2, 3)]
        assert made.trace(ids[0]) == {}
        (resource,) = made.trace(ids[2])["resourceSpans"]
        assert {s["name"] for s in resource["scopeSpans"][0]["spans"]} == {
            "invoke_agent support",
            "chat gpt-4o-mini",
            "execute_tool lookup_order",
        }


def test_trace_file_holds_one_export_request_a_line() -> None:
    """Each finished span is one line of OTLP/JSON with hexadecimal ids and integer enums."""
    out = _Kept()
    with telemetry(trace_file=out) as made:
        context = record_turn(made)
    spans = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in out.kept.splitlines()]
    assert [s["name"] for s in spans] == ["chat gpt-4o-mini", "execute_tool lookup_order", "invoke_agent support"]
    assert {s["traceId"] for s in spans} == {format(context.trace_id, "032x")}
    assert [s["kind"] for s in spans] == [3, 1, 1]


class _Kept(io.BytesIO):
    kept = b""

    def close(self) -> None:
        self.kept = self.getvalue()
        super().close()


class Grudging(io.RawIOBase):
    """An unbuffered file that takes ``room`` bytes, and then none until there is room again."""

    def __init__(self, room: int) -> None:
        self.room, self.taken = room, b""

    def writable(self) -> bool:
        """It is open for writing."""
        return True

    def write(self, data: Any) -> int:
        """Take as much as fits."""
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data[: self.room])
        self.taken, self.room = self.taken + part, self.room - len(part)
        return len(part)


def test_a_line_that_was_cut_does_not_spoil_the_next() -> None:
    """A disk takes half a line: that is said, and when there is room again the next line begins at its beginning."""
    notices: list[str] = []
    disk = Grudging(100)
    made = create_telemetry(TelemetrySettings(resource=RESOURCE), trace_file=disk, on_notice=notices.append)
    record_turn(made)
    disk.room = 1_000_000
    record_turn(made, 2)
    made.shutdown()
    cut, *whole = disk.taken.splitlines()
    assert len(cut) == 100
    assert [len(json.loads(line)["resourceSpans"]) for line in whole] == [1, 1, 1]
    assert len(notices) == 1
    assert "No space left on device" in notices[0]


def test_sampling_leaves_turns_out_of_exports_but_not_out_of_sight() -> None:
    """sample_rate 0: nothing is exported, the turn can still be looked at in the terminal."""
    out = _Kept()
    with (
        OtlpReceiver() as receiver,
        telemetry(
            trace_file=out,
            keep_turns=1,
            otlp=True,
            sampler="parentbased_traceidratio",
            sampler_arg=0.0,
            **targets(receiver, "http/protobuf"),
        ) as made,
    ):
        context = record_turn(made)
        assert made.trace(format(context.trace_id, "032x"))
        assert made.shutdown().made == 0
        assert receiver.spans == []
    assert out.kept == b""


@pytest.mark.parametrize("sampler", ["always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off"])
def test_every_sampler_of_the_specification_is_known(sampler: str) -> None:
    """Each name makes a sampler that does what it says."""
    out = _Kept()
    with telemetry(trace_file=out, sampler=sampler) as made:
        record_turn(made)
    assert bool(out.kept) is (sampler not in ("always_off", "parentbased_always_off"))


def test_log_arguments_stay_inside_while_the_gate_is_shut() -> None:
    """A record's text arguments are left out of OTLP logs; numbers and declared attributes stay."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, logs=targets(receiver, "http/protobuf")["logs"]):
            log = logging.getLogger("holodeck.test")
            log.warning("turn %d failed: %s", 3, "the user's secret", extra={"attributes": {"error.type": "timeout"}})
            log.debug("not this one")
        (record,) = receiver.logs
        assert record.body == "turn 3 failed: …"
        assert record.attributes == {"error.type": "timeout"}
        assert b"secret" not in b"".join(a.body for a in receiver.raw)


def test_log_level_decides_what_is_exported() -> None:
    """observability.logs.level: records below it stay inside."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, log_level="ERROR", logs=targets(receiver, "http/protobuf")["logs"]):
            logging.getLogger("holodeck.test").warning("small")
            logging.getLogger("holodeck.test").error("big")
        assert [r.body for r in receiver.logs] == ["big"]


def test_records_of_other_loggers_are_never_exported() -> None:
    """OpenTelemetry's own complaints do not become logs that are exported again."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, logs=targets(receiver, "http/protobuf")["logs"]):
            logging.getLogger("opentelemetry.exporter").error("export failed")
            logging.getLogger("holodeck.test").error("ours")
        assert [r.body for r in receiver.logs] == ["ours"]


def test_two_telemetries_in_one_process_do_not_mix() -> None:
    """Each has providers of its own; OpenTelemetry's globals are left alone."""
    before = trace.get_tracer_provider()
    with OtlpReceiver() as one, OtlpReceiver() as two:
        with (
            telemetry(otlp=True, traces=targets(one, "http/protobuf")["traces"]) as a,
            telemetry(otlp=True, traces=targets(two, "http/protobuf")["traces"]) as b,
        ):
            record_turn(a)
            record_turn(b)
            record_turn(b, 2)
        assert (len(one.spans), len(two.spans)) == (3, 6)
    assert trace.get_tracer_provider() is before


def test_a_hostile_value_does_not_cost_the_batch() -> None:
    """A lone surrogate in a response's id arrives as U+FFFD, and the other spans arrive too."""
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, traces=targets(receiver, "http/protobuf")["traces"]) as made:
            reply = ModelReply.model_construct(
                text="Shipped.", finish_reason="stop", response_id="bad\ud83eid", response_model="m", usage=USAGE
            )
            record_turn(made, reply=reply)
        (chat,) = [s for s in receiver.spans if s.name.startswith("chat")]
        assert chat.attributes["gen_ai.response.id"] == "bad\ufffdid"
        assert len(receiver.spans) == 3


@pytest.mark.parametrize("signal", SIGNALS)
def test_the_resource_is_redacted_and_exportable(signal: str) -> None:
    """Keys, texts and lists of texts pass the gate on every signal, and a value whose key names a secret is hidden."""
    resource = {
        **RESOURCE,
        "owner": "a@b.example",
        "odd": "x\ud83e",
        "owners": ["c@d.example", "team"],
        "e@f.example": "mail",
        "deploy.password": "hunter2",
        "large": 2**70,
        "port": 8080,
    }
    with OtlpReceiver() as receiver:
        with telemetry(otlp=True, resource=resource, **{signal: targets(receiver, "http/protobuf")[signal]}) as made:
            record_turn(made)
        seen = {"traces": receiver.spans, "metrics": receiver.metrics, "logs": receiver.logs}[signal][0].resource
        sent = b"".join(a.body for a in receiver.raw)
    assert (seen["owner"], seen["odd"], list(seen["owners"])) == ("[redacted]", "x\ufffd", ["[redacted]", "team"])
    assert (seen["[redacted]"], seen["deploy.password"], seen["large"], seen["port"]) == ("[redacted]", "[redacted]", str(2**70), 8080)
    assert not any(secret in sent for secret in (b"a@b", b"c@d", b"e@f", b"hunter2"))


def test_a_turns_records_go_to_its_own_telemetry() -> None:
    """Two agents in one process: what is logged inside a turn leaves with that turn's telemetry only."""
    with OtlpReceiver() as one, OtlpReceiver() as two:
        with (
            telemetry(otlp=True, logs=targets(one, "http/protobuf")["logs"]) as a,
            telemetry(otlp=True, logs=targets(two, "http/protobuf")["logs"]) as b,
        ):
            record_turn(a)
            record_turn(b, 2)
        assert [r.body for r in one.logs] == ["turn 1"]
        assert [r.body for r in two.logs] == ["turn 2"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_collector_that_refuses_is_not_waited_for(protocol: str) -> None:
    """Where nobody listens, leaving takes a fraction of the bound, although the exporters of metrics and logs would try again."""
    url = f"http://127.0.0.1:{unused_port()}"
    urls = {s: url if protocol == "grpc" else f"{url}/v1/{s}" for s in SIGNALS}
    made = create_telemetry(
        TelemetrySettings(resource=RESOURCE, otlp=True, **{s: OtlpTarget(url=urls[s], protocol=protocol) for s in SIGNALS})
    )
    record_turn(made)
    start = monotonic()
    assert made.shutdown().kept == 3
    assert monotonic() - start < 1.2


def test_what_has_been_shut_down_says_so() -> None:
    """A second shutdown repeats the report, later turns cost nothing and say nothing, and its providers never become the globals."""
    before = trace.get_tracer_provider()
    with OtlpReceiver() as receiver:
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, **targets(receiver, "http/protobuf")))
        record_turn(made)
        assert made.shutdown() == made.shutdown()
        record_turn(made, 2)
        made.evaluated(Evaluation("case", passed=True, score=1.0), record_turn(made, 3))
        assert made.flush() is True
        with pytest.raises(SessionError, match="has been shut down"):
            made.install_globals()
        assert len(receiver.spans) == 3
    assert trace.get_tracer_provider() is before
