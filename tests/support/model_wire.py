"""OpenAI's wire format (and Azure's), and what every wire format has to offer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from support.model_replies import AUTO, Call, Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Azure", "Dialect", "OpenAI", "Request", "Stream", "call_ids", "given", "last_user_text", "sse", "without_none"]

_CREATED = 1_700_000_000
_ERROR_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_ERROR_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


@dataclass(frozen=True)
class Request:
    """A request as it arrived.

    Attributes:
        number: 1 for the server's first request.
        method: ``POST`` or ``GET``.
        path: Without the query.
        query: The query's first values.
        headers: Names in lower case.
        body: Parsed JSON; None where it is none.
        raw: The body as sent.
        time: Seconds since the epoch.
    """

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    time: float


@dataclass(frozen=True)
class Stream:
    """A streamed answer: what opens it, the pieces of the answer proper, and what ends it."""

    head: Sequence[bytes]
    pieces: Sequence[bytes]
    tail: Sequence[bytes]


class Dialect:
    """How one provider writes answers and errors."""

    stream_type: ClassVar[str] = "text/event-stream"
    garbage: ClassVar[bytes] = b'data: {"id": "broken", "choi\n\n'

    def is_stream(self, request: Request) -> bool:
        """Whether the client asked for a stream."""
        return bool(request.body.get("stream", False))

    def stream(self, request: Request, reply: Reply) -> Stream:
        """The answer in pieces."""
        raise NotImplementedError

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        """The answer in one object."""
        raise NotImplementedError

    def error(self, status: int) -> dict[str, Any]:
        """The body of an HTTP error."""
        raise NotImplementedError

    def error_event(self) -> bytes:
        """An error inside a stream."""
        raise NotImplementedError


class OpenAI(Dialect):
    """Chat completions."""

    def stream(self, request: Request, reply: Reply) -> Stream:
        """Chunks; usage only if ``stream_options.include_usage`` asks for it, as the real service does."""
        wants_usage = (request.body.get("stream_options") or {}).get("include_usage", False)
        chunk = _Chunks(_envelope(request, reply, "chat.completion.chunk") | ({"usage": None} if wants_usage else {}))
        pieces = [chunk.delta({"content": piece}) for piece in reply.text_pieces]
        for index, (call, call_id) in enumerate(zip(reply.tool_calls, call_ids(request, reply), strict=True)):
            pieces += [chunk.delta({"tool_calls": [{"index": index, **part}]}) for part in _call_deltas(call, call_id)]
        tail = [] if reply.finish is None else [chunk.delta({}, finish=reply.finish)]
        if wants_usage and reply.counts:
            tail.append(chunk.last(_usage(reply.counts)))
        return Stream([chunk.delta({"role": "assistant", "content": ""})], pieces, [*tail, b"data: [DONE]\n\n"])

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        """A ``chat.completion`` object."""
        calls = [
            without_none({"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.text}})
            for call, call_id in zip(reply.tool_calls, call_ids(request, reply), strict=True)
        ]
        message = {"role": "assistant", "content": reply.text or None} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        usage = {"usage": _usage(reply.counts)} if reply.counts else {}
        return {**_envelope(request, reply, "chat.completion"), "choices": [choice], **usage}

    def error(self, status: int) -> dict[str, Any]:
        """``{"error": {message, type, param, code}}``."""
        kind = _ERROR_TYPES.get(status, "server_error")
        return {
            "error": {"message": f"The request failed with status {status}.", "type": kind, "param": None, "code": _ERROR_CODES.get(status)}
        }

    def error_event(self) -> bytes:
        """An error object in a data line."""
        return sse(
            {"error": {"message": "The server had an error while it answered.", "type": "server_error", "param": None, "code": None}}
        )


class Azure(OpenAI):
    """Chat completions of an Azure deployment: the first chunk carries filter results and no choice."""

    def stream(self, request: Request, reply: Reply) -> Stream:
        """As OpenAI, after the filter chunk."""
        stream = super().stream(request, reply)
        results = [{"prompt_index": 0, "content_filter_results": {}}]
        first = {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": results}
        return Stream([sse(first), *stream.head], stream.pieces, stream.tail)


class _Chunks:
    def __init__(self, envelope: dict[str, Any]) -> None:
        self._envelope = envelope

    def delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return sse({**self._envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def last(self, usage: dict[str, Any]) -> bytes:
        return sse({**self._envelope, "choices": [], "usage": usage})


def sse(data: Mapping[str, Any], event: str = "") -> bytes:
    """A server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def given(value: str | None, automatic: str) -> str | None:
    """``value``, or ``automatic`` where it was left to the server."""
    return automatic if value == AUTO else value


def without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Only what is there."""
    return {key: value for key, value in mapping.items() if value is not None}


def call_ids(request: Request, reply: Reply) -> list[str | None]:
    """The ids of the reply's tool calls."""
    return [given(call.id, f"call_{request.number}_{index}") for index, call in enumerate(reply.tool_calls, start=1)]


def last_user_text(body: Any) -> str:
    """The text of the last user message in a request of any provider."""
    messages = body.get("messages", []) if isinstance(body, dict) else []
    content = next((m.get("content") or "" for m in reversed(messages) if m.get("role") == "user"), "")
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _envelope(request: Request, reply: Reply, kind: str) -> dict[str, Any]:
    ident = given(reply.id, f"chatcmpl-{request.number}")
    model = given(reply.model, request.body.get("model", "model"))
    return without_none({"id": ident, "object": kind, "created": _CREATED, "model": model})


def _call_deltas(call: Call, call_id: str | None) -> list[dict[str, Any]]:
    first = without_none({"id": call_id, "type": "function", "function": {"name": call.name, "arguments": ""}})
    return [first, *({"function": {"arguments": piece}} for piece in call.deltas)]


def _usage(usage: Usage) -> dict[str, Any]:
    counts: dict[str, Any] = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
    counts["total_tokens"] = usage.prompt + usage.completion
    if usage.cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return counts
