"""The real collector and the real Jaeger for tests: the shipped configurations on ports and directories of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.otlp_records import Span, read_spans

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "otel-collector"
SCRIPT = ROOT / "scripts" / "backends.py"
PORTS = {
    "JAEGER": ("OTLP", "QUERY", "QUERY_GRPC", "HEALTH", "TELEMETRY"),
    "COLLECTOR": ("GRPC", "HTTP", "PROMETHEUS", "HEALTH", "TELEMETRY"),
    "GATEWAY": ("GRPC", "PEER", "HEALTH", "TELEMETRY"),
}
DEADLINE = 30.0


class Server:
    """A program with one of the shipped configurations; it can be killed and started again, and keeps ports and data.

    Args:
        binary: The program.
        configs: Its configurations, the later over the earlier.
        prefix: What its variables start with.
        directory: Where its data and its log go.
        environment: More variables.
    """

    def __init__(self, binary: Path, configs: list[Path], prefix: str, directory: Path, environment: Mapping[str, str]) -> None:
        self._command = [str(binary), *(word for config in configs for word in ("--config", str(config)))]
        self._prefix, self.directory, self._more = prefix, directory, dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self.ports: dict[str, int] = {}
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> str:
        """What it said so far."""
        return (self.directory / "log").read_text(encoding="utf-8", errors="replace")

    def url(self, port: str, path: str = "") -> str:
        """The URL of one of its ports."""
        return f"http://127.0.0.1:{self.ports[port]}{path}"

    def start(self) -> None:
        """Start it and wait until it is healthy; the first start chooses ports, and chooses again if another program was faster."""
        for _ in range(5 if not self.ports else 1):
            self.ports = self.ports or dict(zip(PORTS[self._prefix], unused_ports(len(PORTS[self._prefix])), strict=True))
            self._run()
            if self._healthy():
                return
            self.kill()
            if "address already in use" not in self.log:
                break
            self.ports = {}
        raise AssertionError(f"{self._command} did not become healthy:\n{self.log[-3000:]}")

    def _run(self) -> None:
        ports = {f"{self._prefix}_{name}_PORT": str(port) for name, port in self.ports.items()}
        environment = {"PATH": os.environ["PATH"], f"{self._prefix}_DATA": str(self.directory / "data"), **ports, **self._more}
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.directory
            )

    def _healthy(self) -> bool:
        deadline = time.monotonic() + DEADLINE
        while self._process is not None and self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url("HEALTH", "/status"), timeout=2) as answer:
                return bool(answer.status == 200)
            time.sleep(0.03)
        return False

    def kill(self) -> None:
        """End it without any chance to tidy up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise
            self._process = None


class Stack:
    """A collector in front of a Jaeger."""

    def __init__(self, collector: Server, jaeger: Server) -> None:
        self.collector, self.jaeger = collector, jaeger

    def environment(self, protocol: str = "http/protobuf") -> dict[str, str]:
        """What a command is told, so that its telemetry comes here."""
        port = "GRPC" if protocol == "grpc" else "HTTP"
        return {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url(port)}

    def trace(self, trace_id: str) -> list[Span]:
        """A trace's spans as Jaeger's query API tells them; empty if it knows none."""
        try:
            found = get_json(self.jaeger.url("QUERY", f"/api/v3/traces/{trace_id}"))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        return spans_of(found)

    def wait_for_trace(self, trace_id: str, count: int, seconds: float = DEADLINE) -> list[Span]:
        """A trace once it has ``count`` spans."""
        return wait(lambda: (spans := self.trace(trace_id)) and len(spans) >= count and spans, f"{count} spans of {trace_id}", seconds)

    def search(self, service: str, **tags: str) -> set[str]:
        """The ids of the traces with these attributes; ``/api/traces`` where Jaeger still has it, else what replaced it."""
        query = {"service": service, "tags": json.dumps(tags), "limit": "100", "lookback": "1h"}
        try:
            found = get_json(self.jaeger.url("QUERY", f"/api/traces?{urllib.parse.urlencode(query)}"))
        except urllib.error.HTTPError as error:
            if error.code not in (404, 405, 410):
                raise
            return {span.trace_id for span in self.recent(service, **{"query.attributes": json.dumps(tags)})}
        return {trace["traceID"] for trace in found["data"] or ()}

    def recent(self, service: str, **more: str) -> list[Span]:
        """The spans of a service's traces of the last hour, in names that old and new versions take."""
        now = time.time()
        query = {
            "query.service_name": service,
            "query.start_time_min": rfc3339(now - 3600),
            "query.start_time_max": rfc3339(now + 60),
            "query.num_traces": "1000",
            **more,
        }
        try:
            return spans_of(get_json(self.jaeger.url("QUERY", f"/api/v3/traces?{urllib.parse.urlencode(query)}")))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """What Prometheus would read at the collector now."""
        return samples_of(get(self.collector.url("PROMETHEUS", "/metrics")).decode())

    def tokens(self, **labels: str) -> dict[str, float]:
        """Tokens by type, summed over all series with these labels."""
        sums: dict[str, float] = {}
        for (name, pairs), value in self.samples().items():
            if name == "gen_ai_client_token_usage_sum" and set(labels.items()) <= pairs:
                kind = dict(pairs)["gen_ai_token_type"]
                sums[kind] = sums.get(kind, 0) + value
        return sums

    def own_metric(self, name: str) -> float:
        """The sum of one of the collector's own metrics over its series; 0 if there is none."""
        text = get(self.collector.url("TELEMETRY", "/metrics")).decode()
        return sum(value for (found, _), value in samples_of(text).items() if found in (name, f"{name}_total"))


@contextlib.contextmanager
def running(binaries: Path, directory: Path, **environment: str) -> Iterator[Stack]:
    """A collector and a Jaeger, started and ended."""
    jaeger = Server(binaries / "jaeger", [CONFIGS / "jaeger.yaml"], "JAEGER", directory / "jaeger", {})
    with contextlib.ExitStack() as ends:
        ends.callback(jaeger.stop)
        jaeger.start()
        more = {"TRACES_ENDPOINT": f"127.0.0.1:{jaeger.ports['OTLP']}", "COLLECTOR_SPAN_METRICS_INTERVAL": "200ms", **environment}
        collector = Server(binaries / "otelcol", [CONFIGS / "config.yaml"], "COLLECTOR", directory / "collector", more)
        ends.callback(collector.stop)
        collector.start()
        yield Stack(collector, jaeger)


def script(*arguments: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``scripts/backends.py`` with these variables on top of the environment."""
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env=os.environ | environment, text=True, capture_output=True, timeout=timeout, check=False)


def wait(look: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """Look until there is something.

    Raises:
        AssertionError: There is nothing after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not there after {seconds} s: {what}"
        time.sleep(0.05)
    return found


def unused_ports(count: int) -> list[int]:
    """Different ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def get(url: str) -> bytes:
    """The body behind a URL."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def get_json(url: str) -> Any:
    """The JSON behind a URL."""
    return json.loads(get(url))


def rfc3339(seconds: float) -> str:
    """A time as Jaeger's query API takes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def spans_of(answer: dict[str, Any]) -> list[Span]:
    """The spans in an answer of ``/api/v3``: OTLP/JSON, its ids in hex."""
    request = ParseDict(_base64_ids(answer.get("result", {})), ExportTraceServiceRequest(), ignore_unknown_fields=True)
    return list(read_spans(request))


def _base64_ids(node: Any) -> Any:
    from base64 import b64encode

    if isinstance(node, list):
        return [_base64_ids(item) for item in node]
    if not isinstance(node, dict):
        return node
    ids = {"traceId", "spanId", "parentSpanId"}
    return {key: b64encode(bytes.fromhex(value)).decode() if key in ids else _base64_ids(value) for key, value in node.items()}


def samples_of(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Prometheus' text format as name and labels → value."""
    found = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)", text, re.MULTILINE):
        found[name, frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))] = float(value)
    return found
