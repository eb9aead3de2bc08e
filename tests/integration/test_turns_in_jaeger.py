"""What HoloDeck recorded is what Jaeger tells, whole, over both protocols."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holodeck import Session, load_agent
from integration.stack import ROOT, Stack, wait
from support.command import run
from support.model_server import Call, ModelServer, Reply, Usage
from support.otlp_records import Span, tree_of

SUPPORT = ROOT / "examples" / "support" / "agent.yaml"
MESSAGES = ("Where is order 1042?", "Is the desk lamp in stock, and what does shipping to Norway cost?", "Track the parcel of order 1042")
CHAT, TOOL, ROOT_SPAN = "chat support-script", "execute_tool", "invoke_agent support"
TREES = [
    (ROOT_SPAN, [(CHAT, []), (f"{TOOL} lookup_order", []), (CHAT, [])]),
    (ROOT_SPAN, [(CHAT, []), (f"{TOOL} check_stock", []), (f"{TOOL} quote_shipping", []), (CHAT, [])]),
    (ROOT_SPAN, [(CHAT, []), (f"{TOOL} lookup_order", []), (CHAT, []), (f"{TOOL} track_parcel", []), (CHAT, [])]),
]
USAGE = [
    [(398, 24, None), (466, 26, 384)],
    [(408, 46, None), (492, 27, 384)],
    [(402, 29, None), (471, 21, 384), (524, 37, 384)],
]
INTERNAL, CLIENT, ERROR = 1, 3, 2


def chat(stack: Stack, protocol: str, *messages: str, agent: Path = SUPPORT) -> list[dict[str, Any]]:
    """The installed command's turns as data."""
    words = ["chat", agent, "--observability", "--json", *(word for message in messages for word in ("-m", message))]
    result = run(words, env=stack.environment(protocol))
    assert result.code == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def size(tree: tuple[str, list[Any]]) -> int:
    """How many spans a tree has."""
    return 1 + sum(size(child) for child in tree[1])


def read(stack: Stack, turns: list[dict[str, Any]], trees: list[Any]) -> list[list[Span]]:
    """Each turn's spans, in the order of their starts."""
    found = [stack.wait_for_trace(turn["trace_id"], size(tree)) for turn, tree in zip(turns, trees, strict=True)]
    return [sorted(spans, key=lambda span: span.start) for spans in found]


@pytest.fixture(scope="module", params=["http/protobuf", "grpc"])
def conversation(request: pytest.FixtureRequest, stack: Stack) -> tuple[list[dict[str, Any]], list[list[Span]]]:
    """Three turns with tools, side by side and failing, and what Jaeger says of them."""
    turns = chat(stack, request.param, *MESSAGES)
    return turns, read(stack, turns, TREES)


def test_every_turn_is_a_whole_tree(conversation: Any) -> None:
    """Each turn is one trace with its requests and tools under one root, and nothing else."""
    turns, traces = conversation
    assert [tree_of(spans) for spans in traces] == TREES
    assert len({turn["trace_id"] for turn in turns}) == 3


def test_kinds(conversation: Any) -> None:
    """Requests to a model are clients, all else is internal."""
    for spans in conversation[1]:
        assert {span.name: span.kind for span in spans} == {s.name: CLIENT if s.name == CHAT else INTERNAL for s in spans}


def test_tokens_are_integers_on_the_requests(conversation: Any) -> None:
    """Each request has what the model billed for it, as integers; the root has the totals under other names."""
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens")
    turns, traces = conversation
    for turn, spans, usage in zip(turns, traces, USAGE, strict=True):
        found = [tuple(span.attributes.get(name) for name in names) for span in spans if span.name == CHAT]
        assert found == usage
        assert all(type(number) is int for numbers in found for number in numbers if number is not None)
        root = spans[0].attributes
        assert (root["holodeck.turn.input_tokens"], root["holodeck.turn.output_tokens"]) == (
            turn["message"]["tokens_used"]["prompt_tokens"],
            turn["message"]["tokens_used"]["completion_tokens"],
        )
        assert not set(names) & set(root)


def test_only_the_failed_tool_is_an_error(conversation: Any) -> None:
    """A failed tool is an error with its type; the turn that went on without it is not."""
    failed = [(number, span) for number, spans in enumerate(conversation[1]) for span in spans if span.status_code == ERROR]
    ((number, span),) = failed
    assert (number, span.name, span.attributes["error.type"]) == (2, f"{TOOL} track_parcel", "ConnectionError")
    assert "parcel NO-5531-77" not in span.status_message, "the tool's words are content"


def test_turns_are_linked(conversation: Any) -> None:
    """Each root links to the root of the turn before; what the link means is lost in Badger, which keeps no attributes of links."""
    roots = [spans[0] for spans in conversation[1]]
    linked = [[(link.trace_id, link.span_id) for link in root.links] for root in roots]
    assert linked == [[], *([(root.trace_id, root.span_id)] for root in roots[:2])]


def test_the_conversation_can_be_searched(conversation: Any, stack: Stack) -> None:
    """Searching for the session id finds its three turns and no others."""
    turns, _ = conversation
    assert stack.search("holodeck", **{"gen_ai.conversation.id": turns[0]["session_id"]}) == {turn["trace_id"] for turn in turns}


def test_the_service_is_listed(conversation: Any, stack: Stack) -> None:
    """The service and its recent traces are in the newer query API, too."""
    turns, _ = conversation
    found = {span.trace_id for span in stack.recent("holodeck")}
    assert {turn["trace_id"] for turn in turns} <= found


def test_log_records_carry_the_turn(conversation: Any, stack: Stack) -> None:
    """The collector takes HoloDeck's log records, and the trace id of the turn with the failed tool leads to its record."""
    lines = stack.collector.directory / "data" / "logs.jsonl"
    turns = [f'"traceId":"{turn["trace_id"]}"' for turn in conversation[0]]
    wait(lambda: lines.exists() and turns[2] in lines.read_text(), "the record of the third turn")
    assert all(turn in lines.read_text() for turn in turns[:2])


def test_a_session_of_the_library(stack: Stack, tmp_path: Path) -> None:
    """A program that uses the library against an OpenAI-compatible server leaves the same tree, with ids and model names whole."""
    (tmp_path / "tools.py").write_text('def lookup(order: str) -> str:\n    """Look an order up."""\n    return f"{order}: shipped"\n')
    (tmp_path / "agent.yaml").write_text(
        "name: desk\nmodel: {provider: openai, name: gpt-4o-mini, endpoint: '${MODEL_URL}', api_key: '${KEY}'}\n"
        "tools: [{name: lookup, type: function, file: tools.py, function: lookup}]\n"
    )
    with ModelServer() as server:
        server.reply(
            Reply(tool_calls=[Call("lookup", {"order": "7"})], usage=Usage(31, 7, cached=16), id="chatcmpl-4111111111111111"),
            Reply("Shipped.", usage=Usage(44, 5, reasoning=2), id="chatcmpl-two"),
        )
        environ = {"PATH": "/usr/bin:/bin", "MODEL_URL": server.url, "KEY": "sk-abcdefghijklmnopqrstuvwx", **stack.environment()}

        async def talk() -> Any:
            agent = load_agent(tmp_path / "agent.yaml", observability=True, environ=environ)
            async with agent, Session(agent) as session:
                return await session.send("Where is order 7?")

        result = asyncio.run(talk())
    spans = sorted(stack.wait_for_trace(result.trace_id, 4), key=lambda span: span.start)
    assert tree_of(spans) == ("invoke_agent desk", [("chat gpt-4o-mini", []), ("execute_tool lookup", []), ("chat gpt-4o-mini", [])])
    requests = [span.attributes for span in spans if span.kind == CLIENT]
    assert [attributes["gen_ai.response.id"] for attributes in requests] == ["chatcmpl-4111111111111111", "chatcmpl-two"]
    assert [attributes["gen_ai.usage.input_tokens"] for attributes in requests] == [31, 44]
    assert requests[1]["gen_ai.usage.reasoning.output_tokens"] == 2
    assert "sk-abcdef" not in repr(spans)
