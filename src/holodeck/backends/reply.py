"""A model's reply, put together from the chunks of Semantic Kernel's connectors.

The chunks are joined here and not by Semantic Kernel's ``+``: that loses an argument delta that is exactly ``{}``, and takes time that
grows with the square of their number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from holodeck.lib.validation import with_whole_characters
from holodeck.models.base import MAX_INT
from holodeck.models.exchange import ModelReply, ToolCall
from holodeck.models.token_usage import TokenUsage

__all__ = ["ReplyBuilder", "may_be_written_call"]


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, delta: Any) -> None:
        self.id = self.id or delta.id or ""
        self.name += delta.name or ""  # some servers send it in two
        if isinstance(delta.arguments, Mapping):
            self.arguments.append(json.dumps(delta.arguments))
        elif delta.arguments:
            self.arguments.append(delta.arguments)

    def done(self) -> ToolCall:
        arguments = with_whole_characters("".join(self.arguments)) or "{}"
        return ToolCall(
            id=with_whole_characters(self.id) or f"call_{uuid4().hex[:12]}", name=with_whole_characters(self.name), arguments=arguments
        )


class ReplyBuilder:
    """Collects the chunks of one reply.

    Attributes:
        chunks: How many arrived.
        finish_reason: Why the model stopped; None until it has said so.
    """

    def __init__(self) -> None:
        self.chunks = 0
        self.finish_reason: str | None = None
        self._text: list[str] = []
        self._half = ""
        self._calls: dict[Any, _Call] = {}
        self._usage: TokenUsage | None = None
        self._id: str | None = None
        self._model: str | None = None

    def add(self, chunk: list[Any]) -> str:
        """Take a chunk (Semantic Kernel's list of one ``StreamingChatMessageContent`` a choice) and return its text."""
        self.chunks += 1
        if not chunk:
            return ""
        content = chunk[0]
        text = ""
        for item in content.items:
            if item.content_type == "function_call":
                self._call(item).add(item)
            elif item.content_type in ("text", "streaming_text"):
                text += item.text or ""
        text = self._joined(text)
        if text:
            self._text.append(text)
        self._read(content)
        return text

    def _joined(self, text: str) -> str:
        """``text`` as UTF-8 can carry it; the first half of a surrogate pair waits for the next chunk."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return with_whole_characters(text)

    def _call(self, delta: Any) -> _Call:
        # A delta with an id starts a call; those without belong to the call with their index. Some servers send no index at all.
        key = delta.index if delta.index is not None else delta.id or f"#{len(self._calls)}"
        known = self._calls.get(key)
        if known is not None and delta.id and known.id and delta.id != known.id:
            key = delta.id
        return self._calls.setdefault(key, _Call())

    def _read(self, content: Any) -> None:
        raw = content.inner_content
        if content.finish_reason is not None:
            self.finish_reason = content.finish_reason.value
        elif getattr(raw, "done", False):  # Ollama's last chunk; Semantic Kernel leaves the reason out
            self.finish_reason = getattr(raw, "done_reason", None) or "stop"
        message = getattr(raw, "message", raw)  # Anthropic puts both into message_start.message
        self._id = self._id or getattr(message, "id", None) or getattr(raw, "id", None) or None
        self._model = self._model or getattr(message, "model", None) or getattr(raw, "model", None) or None
        self._add_usage(content.metadata.get("usage"), getattr(raw, "usage", None) or getattr(message, "usage", None))

    def _add_usage(self, usage: Any, raw: Any) -> None:
        """Take the counts of a chunk that has some, known or not: those of an earlier chunk would be wrong by now."""
        if _says(raw, "prompt_tokens", "completion_tokens"):
            self._usage = _openai_usage(raw)
        elif _says(raw, "output_tokens"):
            self._usage = _anthropic_usage(raw, self._usage)
        elif _says(usage, "prompt_tokens", "completion_tokens"):  # of a client that keeps them elsewhere
            self._usage = _openai_usage(usage)

    def adopt_written_call(self, names: Collection[str]) -> bool:
        """Take a reply that is nothing but a call written as JSON, bare or fenced, as the tool call it means; True if it was one.

        Small local models answer like that. ``names`` are the tools that may be meant.
        """
        call = None if self._calls else _written_call("".join(self._text), names)
        if call is not None:
            self._calls["written"] = call
            self._text.clear()
        return call is not None

    def reply(self) -> ModelReply:
        """What was received so far."""
        calls = [call.done() for call in self._calls.values()]
        return ModelReply(
            text="".join(self._text) + ("\ufffd" if self._half else ""),
            tool_calls=calls,
            finish_reason="tool_calls" if calls and self.finish_reason == "stop" else self.finish_reason,
            response_id=with_whole_characters(self._id) if self._id else None,
            response_model=with_whole_characters(self._model) if self._model else None,
            usage=self._usage,
        )


_FENCED = re.compile(r"\s*(?:```(?:json|tool_call)?|<tool_call>)?\s*(\{.*\})\s*(?:```|</tool_call>)?\s*", re.DOTALL)


def may_be_written_call(text: str) -> bool:
    """Whether a reply that begins like this may turn out to be a call written as JSON."""
    start = text.lstrip()[:12]
    return any(start.startswith(mark) or mark.startswith(start) for mark in ("{", "```json", "```tool_call", "```{", "<tool_call>"))


def _written_call(text: str, names: Collection[str]) -> _Call | None:
    found = _FENCED.fullmatch(text)
    try:
        value = json.loads(found.group(1)) if found else None
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("name") not in names:
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    return _Call(name=value["name"], arguments=[arguments if isinstance(arguments, str) else json.dumps(arguments)])


def _says(usage: Any, *names: str) -> bool:
    return any(getattr(usage, name, None) is not None for name in names)


def _count(value: Any) -> int | None:
    """``value`` if it is a count; None for anything else, and for more than telemetry can carry."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INT else None


def _usage(prompt: int | None, completion: int | None, **parts: int | None) -> TokenUsage | None:
    """The usage; None where a count is unknown, or both together are more than a count can be."""
    if prompt is None or completion is None or prompt + completion > MAX_INT:
        return None
    return TokenUsage.of(prompt, completion, **parts)


def _openai_usage(usage: Any) -> TokenUsage | None:
    read, spent = getattr(usage, "prompt_tokens_details", None), getattr(usage, "completion_tokens_details", None)
    return _usage(
        _count(getattr(usage, "prompt_tokens", None)),
        _count(getattr(usage, "completion_tokens", None)),
        cached_tokens=_count(getattr(read, "cached_tokens", None)),
        reasoning_tokens=_count(getattr(spent, "reasoning_tokens", None)),
    )


def _anthropic_usage(raw: Any, before: TokenUsage | None) -> TokenUsage | None:
    """Anthropic counts cached input apart from ``input_tokens``; the conventions count it in. message_delta repeats what it knows."""
    output = _count(raw.output_tokens)
    said = [getattr(raw, name, None) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]
    fresh, read, written = map(_count, said)
    if said[0] is None:
        if before is None:
            return None
        return _usage(before.prompt_tokens, output, cached_tokens=before.cached_tokens, cache_write_tokens=before.cache_write_tokens)
    if fresh is None or [read is None, written is None] != [part is None for part in said[1:]]:
        return None  # a part that is said and means nothing leaves the whole unknown
    read, written = (read, written) if before is None else (read or before.cached_tokens, written or before.cache_write_tokens)
    return _usage(fresh + (read or 0) + (written or 0), output, cached_tokens=read, cache_write_tokens=written)
