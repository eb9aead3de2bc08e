"""A model endpoint that sends bytes as the test wrote them: what no well-behaved server would."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

from support.net import HttpConnection, HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RawServer", "chunk", "event", "http", "lines", "sse"]


class RawServer(HttpServer):
    """Answers each request with the next of ``answers`` and closes the connection.

    Attributes:
        answers: The bytes of whole answers, or functions that are given the connection.
        seen: Path, headers (names in lower case) and body of each request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: deque[bytes | Callable[[HttpConnection], None]] = deque()
        self.seen: list[tuple[str, dict[str, str], Any]] = []

    def answer(self, http: HttpConnection) -> None:
        """Record the request, send the bytes."""
        body = http.body()
        self.seen.append((http.path, {k.lower(): v for k, v in http.headers.items()}, json.loads(body) if body else None))
        answer = self.answers.popleft()
        http.close_connection = True
        if isinstance(answer, bytes):
            http.connection.sendall(answer)
        else:
            answer(http)


def http(body: str | bytes | dict[str, Any] | list[Any], status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP answer; of ``headers`` underscores are dashes."""
    data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "text/plain" if isinstance(body, str | bytes) else "application/json"
    all_headers = {"content-type": kind, "content-length": str(len(data)), "connection": "close"}
    all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in all_headers.items()), "", ""]
    return "\r\n".join(head).encode() + data


def sse(*data: Any, end: str = "\n") -> bytes:
    """A stream of OpenAI's: data lines, text as it is and the rest as JSON, and ``[DONE]``."""
    texts = [entry if isinstance(entry, str) else json.dumps(entry) for entry in (*data, "[DONE]")]
    return http("".join(f"data: {text}{end}{end}" for text in texts), content_type="text/event-stream")


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk of OpenAI's; ``more`` is added or put in place of what it has."""
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]} | more


def event(name: str, **data: Any) -> str:
    """An event of Anthropic's."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"


def lines(*parts: Any) -> bytes:
    """A stream of Ollama's: a JSON object a line, text as it is."""
    texts = [part if isinstance(part, str) else json.dumps(part) for part in parts]
    return http("".join(f"{text}\n" for text in texts), content_type="application/x-ndjson")
