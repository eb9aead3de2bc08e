"""Metrics and log records over OTLP: their form, what is tried again, and how it ends at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import create_telemetry
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.exporters import Delivery
from support.net import SilentPort
from support.otlp_receiver import Metric, OtlpReceiver, unused_port
from support.telemetry import RESOURCE, record_turn

PROTOCOLS = ["http/protobuf", "grpc"]


def target(receiver: OtlpReceiver, protocol: str, signal: str = "logs", **options: Any) -> OtlpTarget:
    """Where ``signal`` goes."""
    url = receiver.grpc_url if protocol == "grpc" else f"{receiver.http_url}/v1/{signal}"
    return OtlpTarget(url=url, protocol=protocol, **options)


def metrics_of(**settings: Any) -> dict[str, Metric]:
    """The metrics of a turn, by name, as a receiver sees them."""
    with OtlpReceiver() as receiver:
        traces, metrics = (target(receiver, "http/protobuf", signal) for signal in ("traces", "metrics"))
        made = create_telemetry(TelemetrySettings(resource=RESOURCE, otlp=True, traces=traces, metrics=metrics, **settings))
        record_turn(made)
        made.shutdown()
        return {metric.name: metric for metric in receiver.metrics}


@pytest.mark.parametrize(
    ("preference", "histogram", "counter", "queue"),
    [
        ("cumulative", "cumulative", "cumulative", "cumulative"),
        ("delta", "delta", "delta", "cumulative"),
        ("lowmemory", "delta", "cumulative", "cumulative"),
    ],
)
def test_temporality_is_as_preferred(preference: str, histogram: str, counter: str, queue: str) -> None:
    """Histograms, observable counters and up-down counters are sent as the specification's table says."""
    found = metrics_of(metric_temporality=preference)
    names = ("gen_ai.client.operation.duration", "otel.sdk.exporter.span.exported", "otel.sdk.processor.span.queue.size")
    assert [found[name].points[0].temporality for name in names] == [histogram, counter, queue]


@pytest.mark.parametrize(
    ("aggregation", "kind"),
    [("explicit_bucket_histogram", "histogram"), ("base2_exponential_bucket_histogram", "exponential_histogram")],
)
def test_histograms_are_as_asked_for(aggregation: str, kind: str) -> None:
    """Buckets are the conventions' own, or exponential ones."""
    assert metrics_of(metric_histogram=aggregation)["gen_ai.client.operation.duration"].kind == kind


def send(delivery: Delivery, records: int = 3) -> bool:
    """An empty request that stands for so many records."""
    return delivery.send(records, lambda: b"")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_busy_collector_is_asked_again(protocol: str) -> None:
    """What was refused with 503 arrives with the next try, and is counted once."""
    counters = Counters()
    with OtlpReceiver() as receiver:
        receiver.refuse(503, times=1)
        assert send(Delivery(target(receiver, protocol), "logs", counters)) is True
        assert len(receiver.raw) == 2
    assert (counters.statistics(0).logs_exported, counters.statistics(0).logs_failed) == (3, 0)


def test_a_pause_of_no_seconds_is_no_reason_to_hurry() -> None:
    """``Retry-After: 0`` with every answer: the pauses grow as if nothing had been said."""
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "0"})
        assert send(Delivery(target(receiver, "http/protobuf", timeout=1.5), "logs", Counters())) is False
        assert len(receiver.raw) <= 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refusal_for_good_is_not_tried_again(protocol: str) -> None:
    """What cannot be accepted is counted as failed."""
    counters = Counters()
    with OtlpReceiver() as receiver:
        receiver.refuse(400)
        assert send(Delivery(target(receiver, protocol), "logs", counters)) is False
        assert len(receiver.raw) == 1
    assert (counters.statistics(0).logs_exported, counters.statistics(0).logs_failed) == (0, 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_records_that_were_not_taken_are_counted(protocol: str) -> None:
    """A partial success counts both parts, whatever number the collector names."""
    counters = Counters()
    with OtlpReceiver() as receiver:
        receiver.partial(2, "too old")
        assert send(Delivery(target(receiver, protocol), "metrics", counters)) is True
        receiver.partial(99, "too old")
        assert send(Delivery(target(receiver, protocol), "metrics", counters)) is True
    assert (counters.statistics(0).metrics_exported, counters.statistics(0).metrics_failed) == (1, 5)


def test_what_cannot_be_encoded_is_counted(capfd: pytest.CaptureFixture[str]) -> None:
    """An exception while encoding is a failed export, without a word."""
    counters = Counters()

    def encode() -> bytes:
        raise ValueError("secret")

    assert Delivery(OtlpTarget(url="http://127.0.0.1:9", protocol="grpc"), "logs", counters).send(2, encode) is False
    assert counters.statistics(0).logs_failed == 2
    assert capfd.readouterr().err == ""


def test_the_timeout_bounds_all_tries() -> None:
    """Where nobody listens an export ends with its time, the pauses between tries included."""
    delivery = Delivery(OtlpTarget(url=f"http://127.0.0.1:{unused_port()}", protocol="http/protobuf", timeout=0.5), "logs", Counters())
    start = monotonic()
    assert send(delivery) is False
    assert monotonic() - start < 0.6


def ended_while(delivery: Delivery, ready: Callable[[], object]) -> float:
    """Seconds from :meth:`Delivery.close` to the end of an export that is under way."""
    thread = threading.Thread(target=send, args=(delivery,))
    thread.start()
    ready()
    start = monotonic()
    delivery.close()
    thread.join(8)
    assert send(delivery) is False
    return monotonic() - start


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_request_that_waits_is_ended(protocol: str, scheme: str) -> None:
    """A collector that never answers, not even TLS, is let go at once."""
    with SilentPort() as silent:
        url = silent.base_url.replace("http:", f"{scheme}:")
        delivery = Delivery(OtlpTarget(url=url, protocol=protocol, insecure=scheme == "http"), "logs", Counters())
        assert ended_while(delivery, lambda: silent.wait_until(lambda: silent.connections > 0)) < 1


def test_a_request_through_a_proxy_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that never answers is let go at once, too."""
    with SilentPort() as silent:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", silent.base_url)
        delivery = Delivery(OtlpTarget(url="http://collector.invalid/v1/logs", protocol="http/protobuf"), "logs", Counters())
        assert ended_while(delivery, lambda: silent.wait_until(lambda: silent.connections > 0)) < 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pause_between_tries_is_ended(protocol: str) -> None:
    """A collector that asks for half a minute is not waited for."""
    with OtlpReceiver() as receiver:
        receiver.refuse(503, headers={"retry-after": "30"})
        delivery = Delivery(target(receiver, protocol, timeout=60.0), "logs", Counters())
        assert ended_while(delivery, lambda: receiver.wait_for(lambda r: len(r.raw) > 0)) < 1
