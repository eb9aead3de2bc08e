"""The model that everybody talks to: an OpenAI-compatible endpoint whose answers depend on the request alone.

A request whose last message is a tool's result, or that offers no tools, is answered with text; any other with a call of the first tool.
Chat completions (streamed and whole) and, for one peer that speaks nothing else, responses.

    python model.py [--chunks N] [--first SECONDS] [--between SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from wire import Request, respond, run, stream

USAGE = {"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60}
ARGUMENTS = json.dumps({"order_id": "1042"})


def sse(value: dict[str, Any], event: str = "") -> bytes:
    """One event of a stream."""
    return (f"event: {event}\n" if event else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


def words(count: int) -> list[str]:
    """The answer in ``count`` pieces."""
    return [f"word{n} " for n in range(count)]


def tool_called(body: dict[str, Any]) -> str:
    """The tool that is called in answer to ``body``; "" for an answer in text."""
    tools = body.get("tools") or []
    last = (body.get("messages") or body.get("input") or [{}])[-1]
    if not tools or last.get("role") == "tool" or last.get("type") == "function_call_output":
        return ""
    return str(tools[0].get("function", tools[0])["name"])


def completion_chunks(body: dict[str, Any], count: int) -> list[bytes]:
    """A streamed chat completion."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    tool = tool_called(body)
    pieces = [piece({"role": "assistant", "content": ""})]
    if tool:
        pieces.append(
            piece({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": ""}}]})
        )
        pieces += [piece({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in (ARGUMENTS[:8], ARGUMENTS[8:])]
    else:
        pieces += [piece({"content": word}) for word in words(count)]
    pieces.append(piece({}, "tool_calls" if tool else "stop"))
    if (body.get("stream_options") or {}).get("include_usage"):
        pieces.append(sse({**head, "choices": [], "usage": USAGE}))
    return [*pieces, b"data: [DONE]\n\n"]


def completion(body: dict[str, Any], count: int) -> dict[str, Any]:
    """A whole chat completion."""
    tool = tool_called(body)
    message: dict[str, Any] = {"role": "assistant", "content": None if tool else "".join(words(count))}
    if tool:
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": {"name": tool, "arguments": ARGUMENTS}}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice], "usage": USAGE}


def response_events(body: dict[str, Any], count: int) -> list[bytes]:
    """A streamed response of the responses API."""
    tool, text = tool_called(body), "".join(words(count))
    if tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": ARGUMENTS, "status": "completed"}
    else:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 40, "output_tokens": 20, "total_tokens": 60}
    usage |= {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "tools": [], "tool_choice": "auto"}
    base |= {"parallel_tool_calls": True, "error": None, "incomplete_details": None, "instructions": None, "metadata": {}}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**base, "status": "in_progress", "output": []}}]
    events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []} if not tool else item})
    if not tool:
        where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        events.append({"type": "response.content_part.added", **where, "part": {"type": "output_text", "text": "", "annotations": []}})
        events += [{"type": "response.output_text.delta", **where, "delta": word, "logprobs": []} for word in words(count)]
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": {**base, "status": "completed", "output": [item], "usage": usage}})
    return [sse({**event, "sequence_number": number}, event["type"]) for number, event in enumerate(events)]


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--first", type=float, default=0.0)
    parser.add_argument("--between", type=float, default=0.0)
    options = parser.parse_args()

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        known = {"/v1/chat/completions": completion_chunks, "/v1/responses": response_events}.get(request.path)
        if known is None:
            respond(writer, 404, b'{"error": {"message": "no such path"}}')
            return
        body = json.loads(request.body)
        if body.get("stream"):
            await stream(writer, known(body, options.chunks), options.first, options.between)
        else:
            respond(writer, 200, json.dumps(completion(body, options.chunks)).encode())

    run(answer)


if __name__ == "__main__":
    main()
