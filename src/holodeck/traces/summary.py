"""What a trace comes to: the figures for a footer, a list of traces or an assertion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holodeck.traces import names
from holodeck.traces.tree import Node, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holodeck.traces.records import SpanRecord

__all__ = ["TraceSummary", "Usage", "summarise", "usage_of"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of the model requests in a trace.

    Attributes:
        requests: How many spans are requests to a model.
        input_tokens: Sum of what is known.
        output_tokens: Sum of what is known.
        cached_tokens: Sum of what is known; a part of the input.
        input_unknown: Whether a request did not report its input tokens, so that the sum is only a part.
        output_unknown: The same for output tokens.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    input_unknown: bool = False
    output_unknown: bool = False


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One trace in figures.

    Attributes:
        trace_id: Lower-case hex id.
        name: Name of the root span.
        start: Start of the root span, Unix time in nanoseconds.
        duration: Seconds that the root span took.
        spans: Number of spans in the tree.
        input_tokens: Sum over the model requests; None if one of them did not say. 0 if there was none.
        output_tokens: The same for output tokens.
        tool_calls: Number of tool executions; an MCP request inside of one is not another.
        errors: Number of spans with status ERROR.
        conversation_id: ``gen_ai.conversation.id`` of the first span that has one, or "".
        turn: Number of the turn in its conversation; None where the trace does not say.
        requests: Number of requests to a model.
    """

    trace_id: str
    name: str
    start: int
    duration: float
    spans: int
    input_tokens: int | None
    output_tokens: int | None
    tool_calls: int
    errors: int
    conversation_id: str
    turn: int | None
    requests: int


def summarise(root: Node) -> TraceSummary:
    """The tree under ``root`` in figures."""
    nodes = [node for node, _ in walk(root)]
    spans = [node.span for node in nodes]
    usage = usage_of(spans)
    turn = root.span.attributes.get(names.TURN_NUMBER)
    return TraceSummary(
        trace_id=root.span.trace_id,
        name=root.span.name,
        start=root.span.start,
        duration=root.span.duration,
        spans=len(spans),
        input_tokens=None if usage.input_unknown else usage.input_tokens,
        output_tokens=None if usage.output_unknown else usage.output_tokens,
        tool_calls=sum(map(_tool_calls, nodes)),
        errors=sum(span.failed for span in spans),
        conversation_id=_conversation(spans),
        turn=turn if isinstance(turn, int) and not isinstance(turn, bool) else None,
        requests=usage.requests,
    )


def usage_of(spans: Iterable[SpanRecord]) -> Usage:
    """The usage of the requests to a model among ``spans``. Other spans that report usage repeat a total and are not added."""
    requests = inputs = outputs = cached = 0
    input_unknown = output_unknown = False
    for span in spans:  # one pass: a long trace is summed up before its first line is drawn
        if not span.asks_model:
            continue
        requests += 1
        taken, given = span.input_tokens, span.output_tokens
        inputs, outputs, cached = inputs + (taken or 0), outputs + (given or 0), cached + (span.cached_tokens or 0)
        input_unknown = input_unknown or taken is None
        output_unknown = output_unknown or (given is None and span.operation != names.EMBEDDINGS)
    return Usage(requests, inputs, outputs, cached, input_unknown, output_unknown)


def _tool_calls(node: Node) -> int:
    """1 for a tool execution, less the MCP requests right below it, which carry the same operation."""
    if node.span.operation != names.EXECUTE_TOOL:
        return 0
    return 1 - sum(child.span.operation == names.EXECUTE_TOOL and names.MCP_METHOD in child.span.attributes for child in node.children)


def _conversation(spans: Iterable[SpanRecord]) -> str:
    return next((value for span in spans if isinstance(value := span.attributes.get(names.CONVERSATION), str)), "")
