"""The wire formats of Anthropic (messages) and Ollama (chat)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.model_wire import Dialect, Stream, call_ids, given, sse, without_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.model_replies import Call, Reply, Usage
    from support.model_wire import Request

__all__ = ["Anthropic", "Ollama"]

_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_CREATED_AT = "2025-01-01T00:00:00.000000Z"


class Anthropic(Dialect):
    """``POST /v1/messages``."""

    garbage = b'event: content_block_delta\ndata: {"type": "content_bl\n\n'

    def stream(self, request: Request, reply: Reply) -> Stream:
        """message_start, ping, a block for the text and one a tool call, message_delta, message_stop."""
        message = _message(request, reply) | {"content": [], "stop_reason": None, "usage": _usage_at_start(reply.counts)}
        head = [_event("message_start", message=without_none(message)), _event("ping")]
        blocks = [_text_block(0, reply)] if reply.text else []
        for call, call_id in zip(reply.tool_calls, call_ids(request, reply), strict=True):
            blocks.append(_tool_block(len(blocks), call, call_id))
        usage = {"output_tokens": reply.counts.completion} if reply.counts else None
        delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        end = [] if reply.finish is None else [_event("message_delta", delta=delta, **without_none({"usage": usage}))]
        return Stream(head, [piece for block in blocks for piece in block], [*end, _event("message_stop")])

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        """A message object."""
        blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        for call, call_id in zip(reply.tool_calls, call_ids(request, reply), strict=True):
            blocks.append({"type": "tool_use", "id": call_id, "name": call.name, "input": _as_object(call)})
        usage = reply.counts
        counts = None if usage is None else {**_input_counts(usage), "output_tokens": usage.completion}
        message = {**_message(request, reply), "content": blocks, "stop_reason": _stop_reason(reply), "usage": counts}
        return without_none(message)

    def error(self, status: int) -> dict[str, Any]:
        """``{"type": "error", "error": {type, message}}``."""
        kind = _ERROR_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": f"The request failed with status {status}."}}

    def error_event(self) -> bytes:
        """The ``error`` event."""
        return _event("error", error={"type": "overloaded_error", "message": "Overloaded"})


class Ollama(Dialect):
    """``POST /api/chat``: a JSON object a line."""

    stream_type = "application/x-ndjson"
    garbage = b'{"model": "m", "mess\n'

    def is_stream(self, request: Request) -> bool:
        """Ollama streams unless it is told not to."""
        return bool(request.body.get("stream", True))

    def stream(self, request: Request, reply: Reply) -> Stream:
        """A line a piece of text, one a tool call, and the last with the counts."""
        base = _ollama_base(request, reply)
        messages: list[dict[str, Any]] = [{"content": piece} for piece in reply.text_pieces]
        messages += [{"content": "", "tool_calls": [_ollama_call(call)]} for call in reply.tool_calls]
        pieces = [_line({**base, "message": {"role": "assistant", **message}, "done": False}) for message in messages]
        last = {**base, "message": {"role": "assistant", "content": ""}, **_ollama_end(reply)}
        return Stream([], pieces, [_line(last)])

    def whole(self, request: Request, reply: Reply) -> dict[str, Any]:
        """One object with everything."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.tool_calls:
            message["tool_calls"] = [_ollama_call(call) for call in reply.tool_calls]
        return {**_ollama_base(request, reply), "message": message, **_ollama_end(reply)}

    def error(self, status: int) -> dict[str, Any]:
        """``{"error": message}``."""
        return {"error": f"the request failed with status {status}"}

    def error_event(self) -> bytes:
        """An error line."""
        return _line({"error": "llama runner process has terminated"})


def _event(name: str, **data: Any) -> bytes:
    return sse({"type": name, **data}, event=name)


def _message(request: Request, reply: Reply) -> dict[str, Any]:
    ident = given(reply.id, f"msg_{request.number}")
    model = given(reply.model, request.body.get("model", "model"))
    return without_none({"id": ident, "type": "message", "role": "assistant", "model": model})


def _text_block(index: int, reply: Reply) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in reply.text_pieces]
    return _block(index, {"type": "text", "text": ""}, deltas)


def _tool_block(index: int, call: Call, call_id: str | None) -> list[bytes]:
    start = without_none({"type": "tool_use", "id": call_id, "name": call.name, "input": {}})
    return _block(index, start, [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *call.deltas]])


def _block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
    pieces = [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
    pieces[0] = _event("content_block_start", index=index, content_block=start) + pieces[0]
    pieces[-1] += _event("content_block_stop", index=index)
    return pieces


def _stop_reason(reply: Reply) -> str | None:
    return None if reply.finish is None else _STOP_REASONS.get(reply.finish, reply.finish)


def _usage_at_start(usage: Usage | None) -> dict[str, int] | None:
    return None if usage is None else {**_input_counts(usage), "output_tokens": 1}


def _input_counts(usage: Usage) -> dict[str, int]:
    """Anthropic counts cached input beside ``input_tokens``, not inside."""
    counts = {"input_tokens": usage.prompt - (usage.cached or 0) - (usage.cache_write or 0)}
    return counts | without_none({"cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": usage.cache_write})


def _as_object(call: Call) -> Any:
    """The arguments as JSON; text that is none stays text."""
    try:
        return json.loads(call.text)
    except ValueError:
        return call.text


def _ollama_base(request: Request, reply: Reply) -> dict[str, Any]:
    return without_none({"model": given(reply.model, request.body.get("model", "model")), "created_at": _CREATED_AT})


def _ollama_call(call: Call) -> dict[str, Any]:
    return {"function": {"name": call.name, "arguments": _as_object(call)}}


def _ollama_end(reply: Reply) -> dict[str, Any]:
    """Ollama has no finish reason for tool calls: it says ``stop``."""
    if reply.finish is None:
        return {"done": False}
    reason = "stop" if reply.finish == "tool_calls" else reply.finish
    usage = reply.counts
    counts = {} if usage is None else {"prompt_eval_count": usage.prompt, "eval_count": usage.completion}
    return {"done": True, "done_reason": reason, "total_duration": 1_000_000, "load_duration": 1_000, **counts}


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"
