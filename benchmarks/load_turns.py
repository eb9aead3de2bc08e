"""Turns at a fixed rate: requests that are encoded before the clock starts, sent over a few connections."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SPANS_PER_TURN: Final = 8
CONNECTIONS: Final = 8
_TRACE, _TIME = b"\xa5" * 15, 0x5A5A5A5A5A5A5A5A
"""Marks in the encoded request, in the place of each trace id's first 15 bytes and of each time."""


@dataclass
class Load:
    """Turns at a fixed rate over a few connections.

    Attributes:
        host: Where they go.
        port: Its OTLP/HTTP port.
        turns: Turns a second.
        seconds: How long; afterwards how long it took.
        per_request: Turns in a request.
        latencies: Milliseconds until each answer.
        accepted: Trace ids in requests that were accepted.
    """

    host: str
    port: int
    turns: int
    seconds: float
    per_request: int
    latencies: list[float] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    sent_spans: int = 0
    size: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def accepted_spans(self) -> int:
        """Spans in requests that were accepted."""
        return len(self.accepted) * SPANS_PER_TURN

    def run(self) -> None:
        """Send everything."""
        body = template(self.per_request)
        self.size = len(body)
        requests = int(self.turns * self.seconds / self.per_request)
        began = time.perf_counter()
        threads = [threading.Thread(target=self._send, args=(body, range(n, requests, CONNECTIONS), began)) for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds = max(time.perf_counter() - began, self.seconds)

    def _send(self, body: bytes, numbers: range, began: float) -> None:
        fields = f"host: {self.host}\r\ncontent-type: application/x-protobuf\r\ncontent-length: {len(body)}"
        head = f"POST /v1/traces HTTP/1.1\r\n{fields}\r\n\r\n".encode()
        every = self.per_request / self.turns
        with socket.create_connection((self.host, self.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number in numbers:
                time.sleep(max(0.0, began + number * every - time.perf_counter()))
                traces, data = filled(body, self.per_request)
                asked = time.perf_counter()
                connection.sendall(head + data)
                good = answer(connection)
                self._count(traces if good else [], (time.perf_counter() - asked) * 1000)

    def _count(self, traces: list[str], milliseconds: float) -> None:
        with self._lock:
            self.sent_spans += self.per_request * SPANS_PER_TURN
            self.accepted += traces
            self.latencies.append(milliseconds)


def template(turns: int) -> bytes:
    """An encoded request whose trace ids and times are marks of the same length."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    process = {"service.name": "load", "service.version": "0.1.0", "service.instance.id": "0f6ab067-a24b-4d9f-8b2f-7f6f3f1c1101"}
    sdk = {"telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.45.2"}
    resource.resource.attributes.extend(pairs({**process, **sdk}))
    scope = resource.scope_spans.add()
    scope.scope.name = "holodeck"
    for turn in range(turns):
        scope.spans.extend(turn_spans(_TRACE + bytes([turn])))
    return request.SerializeToString()


def turn_spans(trace: bytes) -> list[Span]:
    """A turn as HoloDeck records it: a root, four requests to a model, three tools."""
    conversation = {"gen_ai.conversation.id": "6a0f6ab0-67a2-4b0d-9f2b-2f7f6f3f1c11", "gen_ai.request.model": "gpt-4o-mini"}
    root = {
        **conversation, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support",
        "gen_ai.agent.description": "Answers questions about orders, stock and shipping", "holodeck.turn.number": 1,
        "holodeck.turn.model_requests": 4, "holodeck.turn.tool_calls": 3, "holodeck.turn.input_tokens": 1720,
        "holodeck.turn.output_tokens": 160, "holodeck.message.role": "user", "holodeck.message.length": 20,
        "holodeck.answer.length": 78, "holodeck.session.state": "active", "holodeck.session.message_count": 2,
    }  # fmt: skip
    chat = {
        **conversation, "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.stream": True,
        "gen_ai.response.model": "gpt-4o-mini-2024-07-18", "gen_ai.response.id": "chatcmpl-CKx0a8bWq3ZpT1rYv5",
        "gen_ai.usage.input_tokens": 430, "gen_ai.usage.output_tokens": 40, "gen_ai.usage.cache_read.input_tokens": 384,
        "gen_ai.response.time_to_first_chunk": 0.21, "server.address": "api.openai.com", "server.port": 443,
    }  # fmt: skip
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "support", "gen_ai.tool.name": "lookup_order",
        "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "call_b0Xv2L8dPq", "holodeck.tool.status": "success",
        "gen_ai.tool.description": "Where an order is and what is in it.", "holodeck.tool.execution_time": 0.12,
    }  # fmt: skip
    kinds = [
        ("invoke_agent support", root),
        *[("chat gpt-4o-mini", chat), ("execute_tool lookup_order", tool)] * 3,
        ("chat gpt-4o-mini", chat),
    ]
    return [
        Span(
            trace_id=trace,
            span_id=bytes([number + 1] * 8),
            parent_span_id=bytes([1] * 8) if number else b"",
            name=name,
            kind=Span.SPAN_KIND_CLIENT if name.startswith("chat") else Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_TIME,
            end_time_unix_nano=_TIME,
            attributes=pairs(attributes),
        )
        for number, (name, attributes) in enumerate(kinds)
    ]


def pairs(values: dict[str, object]) -> list[KeyValue]:
    """Attributes as OTLP has them."""
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return [KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value})) for key, value in values.items()]  # type: ignore[arg-type]


def filled(body: bytes, turns: int) -> tuple[list[str], bytes]:
    """The request with trace ids of its own and the present time."""
    mark = os.urandom(15)
    data = body.replace(_TRACE, mark).replace(_TIME.to_bytes(8, "little"), time.time_ns().to_bytes(8, "little"))
    return [(mark + bytes([turn])).hex() for turn in range(turns)], data


def answer(connection: socket.socket) -> bool:
    """Read one answer; whether it says 200."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    while len(rest) < int(length[1] if length else 0):
        rest += received(connection)
    return head.startswith(b"HTTP/1.1 200")


def received(connection: socket.socket) -> bytes:
    """What has arrived."""
    data = connection.recv(65536)
    if not data:
        raise SystemExit("the collector closed a connection")
    return data
