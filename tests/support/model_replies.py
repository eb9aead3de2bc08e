"""What a model endpoint is told to answer: values only, independent of any provider's wire format."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AUTO", "Call", "Fault", "Reply", "Usage"]

AUTO = "\0auto"
"""Stands for what a well-behaved server would send; None stands for a field that is absent."""

_ARGUMENT_PIECE = 5


@dataclass(frozen=True)
class Usage:
    """Tokens of one request. None in an optional part means that it is not reported.

    Attributes:
        prompt: All input tokens, cached ones included.
        completion: All output tokens, reasoning included.
        cached: Part of ``prompt`` that was read from a cache.
        reasoning: Part of ``completion`` (not on Anthropic's and Ollama's wire).
        cache_write: Part of ``prompt`` that was written to a cache (Anthropic only).
    """

    prompt: int
    completion: int
    cached: int | None = None
    reasoning: int | None = None
    cache_write: int | None = None


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes.

    Attributes:
        name: The tool.
        arguments: What it is called with.
        id: The call's id; by default unique in the server's life.
        raw: Argument text as it is, in place of ``arguments``: malformed JSON, for one.
        pieces: How a stream cuts the argument text; by default a few characters each, and ``{}`` always alone.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = AUTO
    raw: str | None = None
    pieces: Sequence[str] | None = None

    @property
    def text(self) -> str:
        """The argument text."""
        if self.pieces is not None:
            return "".join(self.pieces)
        return json.dumps(self.arguments) if self.raw is None else self.raw

    @property
    def deltas(self) -> list[str]:
        """The argument text as a stream sends it."""
        if self.pieces is not None:
            return list(self.pieces)
        parts = re.split(r"(\{\})", self.text)
        return [piece for part in parts for piece in _cut(part, _ARGUMENT_PIECE)]


@dataclass(frozen=True)
class Reply:
    """A good answer.

    Attributes:
        text: What the model says, before its tool calls.
        chunks: Into how many pieces a stream cuts the text (never more than it has characters); by default one a word.
        tool_calls: The tool calls, in order.
        usage: ``(prompt, completion)`` or a ``Usage``; None when the server reports none.
        finish_reason: In OpenAI's words (``stop``, ``length``, ``tool_calls``, ``content_filter``), translated for others.
        delay: Seconds before the first byte.
        chunk_delay: Seconds before each piece of a stream.
        model: The model that says it answered; by default the one that was asked for.
        id: The answer's id.
    """

    text: str = ""
    chunks: int | None = None
    tool_calls: Sequence[Call] = ()
    usage: tuple[int, int] | Usage | None = (12, 8)
    finish_reason: str | None = AUTO
    delay: float = 0.0
    chunk_delay: float = 0.0
    model: str | None = AUTO
    id: str | None = AUTO

    @property
    def counts(self) -> Usage | None:
        """The usage in its long form."""
        return Usage(*self.usage) if isinstance(self.usage, tuple) else self.usage

    @property
    def text_pieces(self) -> list[str]:
        """The text as a stream sends it."""
        if self.chunks is None:
            return re.findall(r"\s*\S+|\s+", self.text)
        count = min(self.chunks, len(self.text))
        bounds = [len(self.text) * i // count for i in range(count + 1)] if count else []
        return [self.text[start:end] for start, end in itertools.pairwise(bounds)]

    @property
    def finish(self) -> str | None:
        """The finish reason, worked out where it was left to the server."""
        if self.finish_reason != AUTO:
            return self.finish_reason
        return "tool_calls" if self.tool_calls else "stop"


_LONG_REPLY = Reply(text="The parcel left the depot this morning and should be with you tomorrow.")


@dataclass(frozen=True)
class Fault:
    """A bad answer. ``Fault(status=503)`` is an HTTP error; the class methods make the rest.

    Attributes:
        status: HTTP status.
        body: JSON object or text; by default an error in the provider's own form.
        headers: Further response headers.
        kind: ``status``, or what happens to the connection or the stream.
        after: How many pieces of ``reply`` go out first; None when nothing does, not even the status line.
        reply: The answer that is spoilt.
    """

    status: int = 200
    body: Mapping[str, Any] | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "status"
    after: int | None = None
    reply: Reply = _LONG_REPLY

    @classmethod
    def html(cls) -> Fault:
        """A proxy's page, with status 200, where JSON or an event stream was asked for."""
        return cls(body="<!doctype html><title>Sign in</title><p>Please sign in.</p>\n", headers={"content-type": "text/html"})

    @classmethod
    def context_length(cls) -> Fault:
        """The conversation does not fit into the model's context (400)."""
        message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
        error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
        return cls(status=400, body={"error": error})

    @classmethod
    def reset_before(cls) -> Fault:
        """The connection is reset once the request has been read."""
        return cls(kind="reset")

    @classmethod
    def reset_after(cls, chunks: int, reply: Reply = _LONG_REPLY) -> Fault:
        """The connection is reset in the middle."""
        return cls(kind="reset", after=chunks, reply=reply)

    @classmethod
    def truncate_after(cls, chunks: int, reply: Reply = _LONG_REPLY) -> Fault:
        """The body ends in good order, but without finish reason or end mark."""
        return cls(kind="truncate", after=chunks, reply=reply)

    @classmethod
    def cut_after(cls, chunks: int, reply: Reply = _LONG_REPLY) -> Fault:
        """The connection is closed inside the body, so that HTTP itself is incomplete."""
        return cls(kind="cut", after=chunks, reply=reply)

    @classmethod
    def silence(cls) -> Fault:
        """The request is read and never answered."""
        return cls(kind="silence")

    @classmethod
    def silence_after(cls, chunks: int, reply: Reply = _LONG_REPLY) -> Fault:
        """The connection stays open and nothing more comes."""
        return cls(kind="silence", after=chunks, reply=reply)

    @classmethod
    def error_event(cls, after: int = 0, reply: Reply = _LONG_REPLY) -> Fault:
        """The provider reports an error inside the stream."""
        return cls(kind="error", after=after, reply=reply)

    @classmethod
    def garbage_chunk(cls, after: int = 0, reply: Reply = _LONG_REPLY) -> Fault:
        """One piece is not JSON; the rest follows as if nothing had happened."""
        return cls(kind="garbage", after=after, reply=reply)

    @staticmethod
    def no_usage(text: str = "Fine.", **more: Any) -> Reply:
        """A good answer whose token usage is unknown."""
        return Reply(text=text, usage=None, **more)

    @staticmethod
    def empty() -> Reply:
        """An answer that stops at once and says nothing."""
        return Reply(text="")


def _cut(text: str, size: int) -> list[str]:
    return [text] if text == "{}" else [text[i : i + size] for i in range(0, len(text), size)]
