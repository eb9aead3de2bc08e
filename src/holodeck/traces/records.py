"""Spans as plain values, whoever wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holodeck.traces import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["EventRecord", "LinkRecord", "SpanRecord"]

_NANOS: Final = 1e9
_MAX_TOKENS: Final = 2**63


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened while a span ran.

    Attributes:
        name: For example ``exception``.
        time: Unix time in nanoseconds, 0 where it is not known.
        attributes: Plain Python values.
    """

    name: str
    time: int
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A reference from one span to another, for example to the turn before.

    Attributes:
        trace_id: Lower-case hex id of the other trace.
        span_id: Lower-case hex id of the other span.
        attributes: Plain Python values.
    """

    trace_id: str
    span_id: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span.

    Attributes:
        trace_id: Lower-case hex id, or "" where it is missing.
        span_id: Lower-case hex id, or "" where it is missing.
        parent_id: Span id of the parent, or "" for a root.
        name: The span's name, as it was written.
        kind: OTLP span kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer; 0 unknown.
        start: Unix time in nanoseconds, 0 where it is not known.
        end: Unix time in nanoseconds, 0 where it is not known. May lie before ``start`` (clock skew).
        attributes: Plain Python values.
        status_code: 0 unset, 1 ok, 2 error.
        status_message: What the writer said about an error, or "".
        events: In the order in which they were written.
        links: In the order in which they were written.
        resource: Attributes of the resource; shared by all spans of it, not to be changed.
        scope: Name of the instrumentation scope, or "".
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    status_code: int
    status_message: str
    events: tuple[EventRecord, ...]
    links: tuple[LinkRecord, ...]
    resource: dict[str, Any]
    scope: str

    @property
    def duration(self) -> float:
        """Seconds from start to end; 0.0 where the end is missing or lies before the start."""
        return max(self.end - self.start, 0) / _NANOS

    @property
    def failed(self) -> bool:
        """Whether the status is ERROR."""
        return self.status_code == 2

    @property
    def operation(self) -> str:
        """The value of ``gen_ai.operation.name``; of older writers what says the same, in the same words; or ""."""
        value = self.attributes.get(names.OPERATION)
        return value if isinstance(value, str) else _older_operation(self.attributes)

    @property
    def input_tokens(self) -> int | None:
        """Input tokens that this span reports, cached ones included; None if it reports none."""
        return _count(self.attributes, names.INPUT_TOKENS)

    @property
    def output_tokens(self) -> int | None:
        """Output tokens that this span reports, reasoning ones included; None if it reports none."""
        return _count(self.attributes, names.OUTPUT_TOKENS)

    @property
    def cached_tokens(self) -> int | None:
        """The part of the input tokens that was read from a cache; None if the span does not say."""
        return _count(self.attributes, names.CACHED_TOKENS)

    @property
    def asks_model(self) -> bool:
        """Whether this is one request to a model: its operation says so, or it has no operation and reports usage."""
        operation = self.operation
        return operation in names.MODEL_OPERATIONS or (not operation and (self.input_tokens, self.output_tokens) != (None, None))


def _older_operation(attributes: Mapping[str, Any]) -> str:
    for key, words in names.KINDS.items():
        if isinstance(value := attributes.get(key), str):
            return words.get(value.lower(), value.lower())
    return ""


def _count(attributes: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """The first usable token count; numbers may come as text or as floats from other people's writers."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MAX_TOKENS:
            return int(value)
    return None
