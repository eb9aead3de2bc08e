"""Two gateways on one machine, without Kafka: the shipped gateway.yaml with gateway-direct.yaml on top."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from integration.otlp_requests import ERROR, span, spans_request
from integration.stack import CONFIGS, PORTS, ROOT, Server, Stack, get, samples_of, unused_ports, wait
from support.command import run

SLOW_NANOSECONDS = 11_000_000_000
PARTS = 6


@pytest.fixture
def gateways(binaries: Path, tmp_path: Path) -> Iterator[tuple[list[Server], Stack]]:
    """Two gateways that know each other, and an agent and a Jaeger before and behind them."""
    jaeger = Server(binaries / "jaeger", [CONFIGS / "jaeger.yaml"], "JAEGER", tmp_path / "jaeger", {})
    with ExitStack() as ends:
        ends.callback(jaeger.stop)
        jaeger.start()
        ports = [dict(zip(PORTS["GATEWAY"], unused_ports(4), strict=True)) for _ in range(2)]
        more = {
            "GATEWAY_PEERS": "[" + ", ".join(f"127.0.0.1:{each['PEER']}" for each in ports) + "]",
            "GATEWAY_AFTER_ROOT": "1s",
            "GATEWAY_KEEP_PERCENT": "0",
            "TRACES_ENDPOINT": f"127.0.0.1:{jaeger.ports['OTLP']}",
        }
        configs = [CONFIGS / "gateway.yaml", CONFIGS / "gateway-direct.yaml"]
        servers = [Server(binaries / "otelcol", configs, "GATEWAY", tmp_path / f"gateway-{number}", more) for number in (1, 2)]
        for server, chosen in zip(servers, ports, strict=True):
            ends.callback(server.stop)
            server.ports = chosen
            server.start()
        agent = Server(
            binaries / "otelcol", [CONFIGS / "config.yaml"], "COLLECTOR", tmp_path / "agent",
            {"TRACES_ENDPOINT": f"127.0.0.1:{servers[0].ports['GRPC']}"},
        )  # fmt: skip
        ends.callback(agent.stop)
        agent.start()
        yield servers, Stack(agent, jaeger)


def scatter(servers: list[Server], traces: dict[int, str]) -> None:
    """Send each turn's spans one by one to one gateway and the other in turn, the root last."""
    import grpc

    with ExitStack() as ends:
        channels = [ends.enter_context(grpc.insecure_channel(f"127.0.0.1:{server.ports['GRPC']}")) for server in servers]
        stubs = [TraceServiceStub(channel) for channel in channels]
        for number in range(PARTS, 0, -1):
            for trace, kind in traces.items():
                failed = kind == "error" and number == 3
                made = span(
                    trace, number, parent=0 if number == 1 else 1, status=ERROR if failed else 0,
                    nanoseconds=SLOW_NANOSECONDS if kind == "slow" and number == 1 else 1_000_000,
                )  # fmt: skip
                stubs[number % 2].Export(spans_request("scattered", [made]), timeout=10)


def test_every_error_turn_is_kept_whole(gateways: tuple[list[Server], Stack]) -> None:
    """Turns with an error and slow ones arrive whole though their spans went to both gateways; the others are left out."""
    servers, stack = gateways
    traces = {uuid4().int: kind for kind in ("error", "slow", "plain") for _ in range(20)}
    scatter(servers, traces)
    kept = {f"{trace:032x}" for trace, kind in traces.items() if kind != "plain"}

    def whole() -> dict[str, int]:
        found: dict[str, int] = {}
        for each in stack.recent("scattered"):
            found[each.trace_id] = found.get(each.trace_id, 0) + 1
        return found

    wait(lambda: {trace for trace, count in whole().items() if count == PARTS} >= kept, "every turn with an error, and every slow one")
    decided = "otelcol_processor_tail_sampling_global_count_traces_sampled"
    wait(lambda: sum(metric(server, decided) for server in servers) == len(traces), f"{len(traces)} decisions")
    assert whole() == dict.fromkeys(kept, PARTS)
    assert all(metric(server, decided) > 0 for server in servers), "both gateways have their share"


def test_a_chat_with_a_failing_tool_comes_through(gateways: tuple[list[Server], Stack]) -> None:
    """From the command through an agent and the gateways the turn with the failed tool arrives whole; the agent counted both turns."""
    _, stack = gateways
    words = ["chat", ROOT / "examples" / "support" / "agent.yaml", "--observability", "--json"]
    result = run([*words, "-m", "Where is order 1042?", "-m", "Track the parcel of order 1042"], env=stack.environment())
    assert result.code == 0, result
    plain, failing = [json.loads(line)["trace_id"] for line in result.out.splitlines()]
    spans = stack.wait_for_trace(failing, 6)
    assert sorted(each.name for each in spans if each.status_code == ERROR) == ["execute_tool track_parcel"]
    wait(lambda: stack.tokens() == {"input": 864 + 1397, "output": 50 + 87}, "the tokens of both turns")
    assert stack.trace(plain) == []


def metric(server: Server, name: str) -> float:
    """The sum of one of a gateway's own metrics over its series."""
    found = samples_of(get(server.url("TELEMETRY", "/metrics")).decode())
    return sum(value for (other, _), value in found.items() if other in (name, f"{name}_total"))
