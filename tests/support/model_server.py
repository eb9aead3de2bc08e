"""A model endpoint on loopback that does what the test says, for the real client libraries of the providers.

In a test::

    with ModelServer() as server:
        server.reply(Reply(tool_calls=[Call("lookup_order", {"order_id": "1042"})]), Reply("It has been shipped."))
        ...
        assert server.requests[1].body["messages"][-1]["role"] == "tool"

On its own: ``python -m support.model_server --port 0 [--replies FILE.json]`` prints its URL and serves until it is ended.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from support.model_replies import AUTO, Call, Fault, Reply, Usage
from support.model_wire import Azure, Dialect, OpenAI, Request, Stream, last_user_text
from support.model_wire_others import Anthropic, Ollama
from support.net import HttpConnection, HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["AUTO", "Call", "Fault", "ModelServer", "Reply", "Request", "Usage", "main"]

_ROUTES: list[tuple[str, Dialect]] = [
    (r"/v1/chat/completions", OpenAI()),
    (r"/openai/v1/chat/completions", OpenAI()),
    (r"/openai/deployments/[^/]+/chat/completions", Azure()),
    (r"/v1/messages", Anthropic()),
    (r"/api/chat", Ollama()),
]


class ModelServer(HttpServer):
    """OpenAI, Azure OpenAI, Anthropic and Ollama in one loopback server.

    Each request takes the next queued answer; with an empty queue ``respond`` decides; without it the last user message comes back.

    Attributes:
        respond: Called with the request when the queue is empty, in the connection's own thread.
        disconnects: How often a client hung up before its answer was complete.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.respond: Callable[[Request], Reply | Fault] | None = None
        self.disconnects = 0
        self._queue: deque[Reply | Fault] = deque()
        self._requests: list[Request] = []

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients; others take ``base_url``."""
        return f"{self.base_url}/v1"

    @property
    def requests(self) -> list[Request]:
        """The requests so far, in the order in which they arrived."""
        with self._changed:
            return list(self._requests)

    def reply(self, *answers: Reply | Fault) -> None:
        """Queue answers: one a request."""
        with self._changed:
            self._queue.extend(answers)

    @property
    def unused(self) -> int:
        """How many queued answers nobody asked for."""
        return len(self._queue)

    def describe(self) -> str:
        """The requests and disconnects, for the message of a failed wait."""
        return f"{[request.path for request in self._requests]}, {self.disconnects} disconnects"

    def answer(self, http: HttpConnection) -> None:
        """Record the request and answer it as told."""
        request, queued = self._record(http)
        dialect = _dialect(request)
        if dialect is None or not isinstance(request.body, dict):
            _refuse(http, dialect or OpenAI(), Fault(status=400 if dialect else 404))
            return
        answer = queued or (self.respond or _echo)(request)
        try:
            _deliver(http, dialect, request, answer)
        except ConnectionError:
            http.hang_up()
            self._count_disconnect()

    def _record(self, http: HttpConnection) -> tuple[Request, Reply | Fault | None]:
        raw, url = http.body(), urlsplit(http.path)
        headers = {name.lower(): value for name, value in http.headers.items()}
        with self._changed:
            number = len(self._requests) + 1
            request = Request(number, http.command, url.path, dict(parse_qsl(url.query)), headers, _parse(raw), raw, time.time())
            self._requests.append(request)
            self._changed.notify_all()
            queued = self._queue.popleft() if self._queue and _dialect(request) else None
        return request, queued

    def _count_disconnect(self) -> None:
        with self._changed:
            self.disconnects += not self.stopping.is_set()
            self._changed.notify_all()


def _deliver(http: HttpConnection, dialect: Dialect, request: Request, answer: Reply | Fault) -> None:
    fault = answer if isinstance(answer, Fault) else None
    reply = answer.reply if isinstance(answer, Fault) else answer
    http.pause(reply.delay)
    if fault and fault.kind == "status":
        _refuse(http, dialect, fault)
        return
    if fault and fault.after is None:
        _strike(http, dialect, fault)
        return
    stream, content_type = _encode(dialect, request, reply)
    before = stream.pieces if fault is None else stream.pieces[: fault.after]
    http.begin(content_type)
    _send(http, stream.head, 0)
    _send(http, before, reply.chunk_delay)
    if fault and not _strike(http, dialect, fault):
        return
    _send(http, stream.pieces[len(before) :], reply.chunk_delay)
    _send(http, stream.tail[:-1], 0)
    http.piece(stream.tail[-1], last=True)  # a client that has read it may close at once, and has not hung up


def _encode(dialect: Dialect, request: Request, reply: Reply) -> tuple[Stream, str]:
    """The answer in pieces; one that is not streamed has two, so that a fault can strike between them."""
    if dialect.is_stream(request):
        return dialect.stream(request, reply), dialect.stream_type
    body = _json(dialect.whole(request, reply))
    half = len(body) // 2
    return Stream([], [body[:half]], [body[half:]]), "application/json"


def _send(http: HttpConnection, pieces: Sequence[bytes], delay: float) -> None:
    for piece in pieces:
        http.piece(piece, delay)


def _refuse(http: HttpConnection, dialect: Dialect, fault: Fault) -> None:
    body = dialect.error(fault.status) if fault.body is None else fault.body
    data = body.encode() if isinstance(body, str) else _json(body)
    http.respond(fault.status, data, {"content-type": "application/json", **fault.headers})


def _strike(http: HttpConnection, dialect: Dialect, fault: Fault) -> bool:
    """Do the damage; True when the answer goes on after it."""
    match fault.kind:
        case "reset" | "cut":
            http.hang_up(reset=fault.kind == "reset")
        case "silence":
            http.pause(None)
        case "truncate":
            http.end()
        case "error":
            http.piece(dialect.error_event(), last=True)
        case "garbage":
            http.piece(dialect.garbage)
            return True
        case _:
            raise ValueError(f"no such fault: {fault.kind}")
    return False


def _dialect(request: Request) -> Dialect | None:
    found = next((dialect for pattern, dialect in _ROUTES if re.fullmatch(pattern, request.path)), None)
    versioned = not isinstance(found, Azure) or "api-version" in request.query
    return found if request.method == "POST" and versioned else None


def _echo(request: Request) -> Reply:
    return Reply(text=last_user_text(request.body))


def _json(data: Any) -> bytes:
    return json.dumps(data).encode()


def _parse(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _read_replies(path: str) -> list[Reply]:
    """A JSON list of objects with the fields of ``Reply`` (``tool_calls``: those of ``Call``; ``usage``: a list of numbers)."""
    replies = []
    for entry in json.loads(Path(path).read_text(encoding="utf-8")):
        calls = [Call(**call) for call in entry.pop("tool_calls", [])]
        usage = entry.pop("usage", (12, 8))
        replies.append(Reply(**entry, tool_calls=calls, usage=usage and Usage(*usage)))
    return replies


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; ``--replies`` are given in turn, over and over."""
    parser = argparse.ArgumentParser(prog="python -m support.model_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--replies", metavar="FILE.json")
    options = parser.parse_args(arguments)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the first thread, which inherits it
    with ModelServer(options.port) as server:
        if options.replies:
            endless = itertools.cycle(_read_replies(options.replies))
            server.respond = lambda _: next(endless)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        signal.sigwait(ends)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
