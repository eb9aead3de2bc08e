"""Streams as servers really send them: each is an answer, or one line that says what is wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holodeck import Session, load_agent
from holodeck.backends import openai_stream
from holodeck.models.events import TurnResult
from support.agents import write_agent
from support.model_raw import RawServer, chunk, event, http, lines, sse
from support.model_server import Call, ModelServer, Reply
from support.net import HttpConnection

ARGUMENTS = '{"city": "Oslo"}'
BOTH = [("weather", {"city": "Oslo"}), ("lookup_order", {"order_id": "1"})]
ONE = BOTH[:1]


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A server that is told its bytes."""
    with RawServer() as server:
        yield server


def run(path: Path, server: RawServer, cases: dict[str, Any], last: bytes = b"") -> Iterator[tuple[str, TurnResult, list[Any]]]:
    """The result of a conversation's only turn for each case, and its requests; ``last`` answers what comes after tool calls."""

    async def talk() -> list[tuple[str, TurnResult, list[Any]]]:
        results = []
        async with load_agent(path, environ={}) as agent, Session(agent, max_messages=1000) as session:
            for name, answer in cases.items():
                server.seen.clear()
                server.answers.clear()
                server.answers.extend([answer, last])
                results.append((name, await session.send("hello"), list(server.seen)))
                session.reset()
        return results

    yield from asyncio.run(talk())


def text_of(result: TurnResult) -> str | None:
    """What was answered."""
    return result.message.content if result.message else None


GOOD = sse(
    chunk({"role": "assistant"}),
    chunk({"content": "Hé "}),
    chunk({"content": "you 🤔"}),
    chunk({}, "stop"),
    chunk(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 2}),
)
BODY = GOOD.partition(b"\r\n\r\n")[2]
PLAIN = BODY.decode()


def stream(body: str | bytes, **headers: str) -> bytes:
    """An event stream."""
    return http(body, content_type="text/event-stream", **headers)


FORMS = {
    "crlf": stream(PLAIN.replace("\n", "\r\n")),
    "comments": stream(": hi\n\n" + PLAIN.replace("data", ":x\n\ndata", 3)),
    "no space": stream(PLAIN.replace("data: ", "data:")),
    "byte order mark": stream("\ufeff" + PLAIN),
    "no [DONE]": stream(PLAIN.replace("data: [DONE]\n\n", "")),
    "after [DONE]": stream(PLAIN + PLAIN),
    "event names": stream(PLAIN.replace("data:", "event: chunk\nid: 1\nretry: 5\ndata:")),
    "empty data": stream("data:\n\n" + PLAIN),
    "null": stream("data: null\n\n" + PLAIN),
    "list": stream("data: []\n\n" + PLAIN),
    "ping as data": stream('event: ping\ndata: {"type": "ping"}\n\n' + PLAIN),
    "gzip": stream(gzip.compress(BODY), content_encoding="gzip"),
    "said to be JSON": http(BODY, content_type="application/json"),
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + BODY,
    "bit by bit": lambda connection: [connection.connection.sendall(GOOD[i : i + 5]) for i in range(0, len(GOOD), 5)],
    "one object": http(
        chunk(
            choices=[{"index": 0, "message": {"role": "assistant", "content": "Hé you 🤔"}, "finish_reason": "stop"}],
            usage={"prompt_tokens": 3, "completion_tokens": 2},
        )
    ),
}


def test_a_stream_may_have_any_form(server: RawServer, tmp_path: Path) -> None:
    """Line ends, comments, keep-alives, compression and framing make no difference to the answer and its usage."""
    for name, result, _ in run(write_agent(tmp_path, server), server, FORMS):  # type: ignore[arg-type]
        assert (name, text_of(result)) == (name, "Hé you 🤔")
        assert result.usage is not None, name
        assert (name, result.usage.prompt_tokens, result.usage.completion_tokens) == (name, 3, 2)


def test_keep_alives_are_silence(server: RawServer, tmp_path: Path) -> None:
    """A server that only ever sends pings is silent for model.timeout."""

    def ping(connection: HttpConnection) -> None:
        with suppress(ConnectionError):
            connection.connection.sendall(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            while True:
                connection.pause(0.05)
                connection.connection.sendall(b': ping\n\ndata:\n\ndata: {"type": "ping"}\n\n')

    ((_, result, _),) = run(write_agent(tmp_path, server, model={"timeout": 0.5}), server, {"pings": ping})  # type: ignore[arg-type]
    assert result.error is not None
    assert result.error.error_type == "timeout"


def usage(**counts: Any) -> bytes:
    """A good answer with a usage."""
    return sse(chunk({"content": "x"}), chunk({}, "stop", usage={"prompt_tokens": 7, "completion_tokens": 2} | counts))


CHUNKS = {
    "choices null": sse(chunk(choices=None), chunk({"content": "x"}, "stop")),
    "choices missing": sse({"id": "c"}, chunk({"content": "x"}, "stop")),
    "choices of null": sse(chunk(choices=[None]), chunk({"content": "x"}, "stop")),
    "second choice": sse(chunk({"content": "x"}), chunk(choices=[{"index": 1, "delta": {"content": "no"}}]), chunk({}, "stop")),
    "no index": sse(chunk(choices=[{"delta": {"content": "x"}, "finish_reason": "stop"}])),
    "delta null": sse(chunk(choices=[{"index": 0, "delta": None}]), chunk({"content": "x"}, "stop")),
    "delta text": sse(chunk("?"), chunk({"content": "x"}, "stop")),
    "parts": sse(chunk({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "x"}]}, "stop")),
    "refusal": sse(chunk({"refusal": "x"}), chunk({}, "stop")),
    "reasoning": sse(chunk({"reasoning_content": "hm"}), chunk({"content": "x"}, "stop")),
    "unknown role": sse(chunk({"role": "model", "content": "x"}, "stop")),
    "odd reason": sse(chunk({"content": "x"}, 3)),
    "odd id and model": sse(chunk({"content": "x"}, "stop", id=5, model={"a": 1}, created="now", object=None)),
    "usage with the end": usage(),
    "usage in each chunk": sse(
        *(chunk({"content": c}, usage={"prompt_tokens": 7, "completion_tokens": n}) for n, c in ((1, "x"), (2, ""))), chunk({}, "stop")
    ),
    "usage as text": usage(prompt_tokens="many"),
    "usage details": usage(prompt_tokens_details=[], completion_tokens_details="?"),
    "error null": sse(chunk({"content": "x"}, "stop", error=None)),
}


def test_chunks_of_compatible_servers_are_read(server: RawServer, tmp_path: Path) -> None:
    """What a server leaves out, adds, or writes otherwise than OpenAI does not spoil its answer."""
    for name, result, _ in run(write_agent(tmp_path, server), server, CHUNKS):
        assert (name, text_of(result)) == (name, "x")
        counts = (result.usage.prompt_tokens, result.usage.completion_tokens) if result.usage else None
        expected = name.startswith("usage") and name != "usage as text"
        assert (name, counts) == (name, (7, 2) if expected else None)


def calls(*deltas: dict[str, Any]) -> bytes:
    """A stream of tool call deltas, one a chunk."""
    return sse(*(chunk({"tool_calls": [delta]}) for delta in deltas), chunk({}, "tool_calls"))


def delta(arguments: Any = "", name: str | None = None, **more: Any) -> dict[str, Any]:
    """A tool call delta."""
    return {"function": {"arguments": arguments} | ({"name": name} if name else {})} | more


ORDER = '{"order_id": "1"}'
CALLS: dict[str, tuple[bytes, Any]] = {
    "no index": (calls(delta("", "weather", id="a"), delta('{"city": '), delta('"Oslo"}')), ONE),
    "no index, no id": (calls(delta(ARGUMENTS, "weather"), delta(ORDER, "lookup_order")), BOTH),
    "one index": (
        calls(
            delta("", "weather", id="a", index=0),
            delta(ARGUMENTS, index=0),
            delta("", "lookup_order", id="b", index=0),
            delta(ORDER, index=0),
        ),
        BOTH,
    ),
    "one index, no id": (calls(delta(ARGUMENTS, "weather", index=0), delta(ORDER, "lookup_order", index=0)), BOTH),
    "all repeated": (calls(delta('{"city": ', "weather", id="a", index=0), delta('"Oslo"}', "weather", id="a", index=0)), ONE),
    "name repeated": (calls(delta(ARGUMENTS, "weather", index=0), delta("", "weather", index=0)), ONE),
    "name repeated, white space": (
        calls(delta('{"city":', "weather", index=0), delta('"Oslo"}', "weather", index=0), delta("\n", "weather", index=0)),
        ONE,
    ),
    "name repeated, two calls": (calls(delta(ARGUMENTS, "weather", index=0), delta(" "), delta(ARGUMENTS, "weather", index=0)), ONE * 2),
    "encoded twice": (calls(delta(json.dumps(ARGUMENTS), "weather", id="a", index=0)), ONE),
    "object": (calls(delta({"city": "Oslo"}, "weather", id="a", index=0)), ONE),
    "name in two": (calls(delta("", "wea", id="a", index=0), delta(ARGUMENTS, "ther", index=0)), ONE),
    "number for an id": (calls(delta(ARGUMENTS, "weather", id=7, index=0)), ONE),
    "one id": (calls(delta(ARGUMENTS, "weather", id="a", index=0), delta(ORDER, "lookup_order", id="a", index=1)), BOTH),
    "a function call": (sse(chunk({"function_call": {"name": "weather", "arguments": ARGUMENTS}}), chunk({}, "function_call")), ONE),
    "with the end": (sse(chunk({"tool_calls": [delta(ARGUMENTS, "weather", id="a", index=0)]}, "stop")), ONE),
    "null arguments": (calls(delta(None, "fails", id="a", index=0)), [("fails", {})]),
    "no object": (calls(delta([1], "fails", id="a", index=0)), [("fails", {"arguments": [1]})]),
    "odd name": (calls(delta(ARGUMENTS, "get weather.now", id="a", index=0)), [("get weather.now", {"city": "Oslo"})]),
    "no name": (calls(delta(ARGUMENTS, id="a", index=0)), [("(no name)", {"city": "Oslo"})]),
}


def test_tool_calls_are_told_apart_however_they_are_numbered(server: RawServer, tmp_path: Path) -> None:
    """Each call arrives once and whole, and goes back with a valid name, valid arguments and an id of its own."""
    cases = {name: answer for name, (answer, _) in CALLS.items()}
    for name, result, seen in run(write_agent(tmp_path, server), server, cases, last=GOOD):
        assert (name, [(c.tool_name, dict(c.parameters)) for c in result.tool_calls]) == (name, CALLS[name][1])
        assert (name, text_of(result)) == (name, "Hé you 🤔")
        said, *answers = [m for m in seen[1][2]["messages"] if m["role"] in ("assistant", "tool")]
        sent = said["tool_calls"]
        assert [m["tool_call_id"] for m in answers] == list(dict.fromkeys(call["id"] for call in sent)), name
        assert all(re.fullmatch("[A-Za-z0-9_-]+", call["function"]["name"]) for call in sent), name
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in sent), name
        if name == "encoded twice":  # the model is told what it was taken to mean
            assert sent[0]["function"]["arguments"] == ARGUMENTS


def test_a_name_that_comes_with_each_of_many_parts_costs_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments so far are not read again with every part."""
    read: list[int] = []
    monkeypatch.setattr(openai_stream.json, "loads", lambda text: read.append(len(text)) or json.JSONDecoder().decode(text))
    reader = openai_stream.ChunkReader("m")
    parts = ['{"text": "', *["word }"] * 500, *[" {word"] * 500, '"}']
    for arguments in parts:
        entry = {"index": 0, "function": {"name": "f", "arguments": arguments}}
        (content,) = reader.read({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}) or []
        assert content.items[0].index == 0
    assert len(read) <= 1


REPORTED = {
    "object": {"error": {"message": "it broke", "type": "x"}},
    "text": {"error": "it broke"},
    "nested": {"error": {"error": {"message": "it broke"}}},
    "list": [{"error": {"code": 400, "message": "it broke"}}],
    "detail": {"detail": "it broke"},
    "an error object": {"object": "error", "message": "it broke", "code": 400},
}


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "anthropic", "ollama"])
def test_an_error_with_status_200_is_shown(provider: str, server: RawServer, tmp_path: Path) -> None:
    """An error that comes in place of an answer is quoted, whatever its form."""
    known = REPORTED if "openai" in provider else {name: REPORTED[name] for name in ("object", "text", "nested")}
    cases = {name: http(body) for name, body in known.items()}
    if "openai" in provider:
        cases |= {f"{name} in a stream": sse(body) for name, body in known.items()} | {"event": stream("event: error\ndata: it broke\n\n")}
    for name, result, _ in run(write_agent(tmp_path, server, provider=provider), server, cases):
        assert result.error is not None, name
        assert (name, result.error.error_type) == (name, "provider_error")
        assert result.error.message.endswith("reported an error: send the message again (it broke)"), name


USAGE = {"input_tokens": 5, "output_tokens": 1}
START = event("message_start", message={"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": USAGE})


def block(kind: dict[str, Any], *deltas: dict[str, Any], index: int = 0) -> str:
    """A content block of Anthropic's."""
    inner = "".join(event("content_block_delta", index=index, delta=d) for d in deltas)
    return event("content_block_start", index=index, content_block=kind) + inner + event("content_block_stop", index=index)


def end(reason: Any = "end_turn", **more: Any) -> str:
    """The end of a message."""
    return event("message_delta", **({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}} | more)) + event("message_stop")


TEXT = block({"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}, index=1)
NAMELESS = "".join(f"{line}\n" for line in (START + TEXT + end()).split("\n") if not line.startswith("event"))
SERVER_TOOL = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
BLOCKS = {
    "thinking": START + block({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "hm"}) + TEXT + end(),
    "redacted": START + block({"type": "redacted_thinking", "data": "?"}) + TEXT + end(),
    "a tool of the server": START + block(SERVER_TOOL, {"type": "input_json_delta", "partial_json": '{"q": 1}'}) + TEXT + end(),
    "unknown": START + event("new", x=1) + block({"type": "hologram"}, {"type": "hologram_delta", "x": 1}) + TEXT + end(),
    "nothing": START + block(None) + "event: content_block_delta\ndata: null\n\nevent: ping\ndata:\n\n" + TEXT + end(),  # type: ignore[arg-type]
    "text at the start": START + block({"type": "text", "text": "x"}) + end(),
    "no names": NAMELESS,
    "pause": START + TEXT + end("pause_turn"),
    "refusal": START + TEXT + end("refusal"),
    "new reason": START + TEXT + end(5),
    "no usage": START + TEXT + end(usage=None),
    "odd ids": START.replace('"id": "m"', '"id": 5').replace('"model": "c"', '"model": 7') + TEXT + end(),
    "no start": TEXT + end(),
    "one object": {"type": "message", "id": "m", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": USAGE},
}


def test_anthropic_events_that_are_new_do_no_harm(server: RawServer, tmp_path: Path) -> None:
    """Blocks, events and reasons that nobody knows are passed over; text is text wherever it stands."""
    cases = {name: stream(body) if isinstance(body, str) else http(body) for name, body in BLOCKS.items()}
    for name, result, _ in run(write_agent(tmp_path, server, provider="anthropic"), server, cases):
        assert (name, text_of(result), result.tool_calls) == (name, "x", [])


@pytest.mark.parametrize("given", [{"city": "Oslo"}, {}])
def test_anthropic_arguments_come_in_parts_or_at_once(given: dict[str, Any], server: RawServer, tmp_path: Path) -> None:
    """Arguments in the start of a block count where no parts follow, and two calls under one index are two."""
    first = block({"type": "tool_use", "id": "a", "name": "weather", "input": given}, *([] if given else [partial(ARGUMENTS)]))
    second = block({"type": "tool_use", "id": "b", "name": "lookup_order", "input": {"x": 1}}, partial(""), partial(ORDER))
    cases = {"calls": stream(START + first + second + end("tool_use"))}
    path = write_agent(tmp_path, server, provider="anthropic")
    ((_, result, _),) = run(path, server, cases, last=stream(START + TEXT + end()))
    assert [(c.tool_name, dict(c.parameters)) for c in result.tool_calls] == BOTH
    assert text_of(result) == "x"


def partial(text: str) -> dict[str, Any]:
    """A part of arguments."""
    return {"type": "input_json_delta", "partial_json": text}


def part(content: Any = "", *, done: bool = False, **more: Any) -> dict[str, Any]:
    """A line of Ollama's."""
    finish = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2} if done else {}
    return {"model": "m", "message": {"role": "assistant", "content": content}, "done": done} | finish | more


LAST = part(done=True)
LINES = {
    "blank lines": lines("", part("x"), "", "", LAST),
    "byte order mark": lines("\ufeff" + json.dumps(part("x")), LAST),
    "no last line end": lines(part("x"), LAST)[:-1].replace(b"content-length: ", b"x: "),
    "thinking": lines(part(message={"role": "assistant", "thinking": "hm"}), part("x"), LAST),
    "odd fields": lines(part("x", created_at=5, model=7), LAST | {"created_at": None, "message": None}),
    "no role": lines(part(message={"content": "x", "images": ["?"]}), LAST),
    "no prompt count": lines(part("x"), LAST | {"prompt_eval_count": 0}),
    "odd count": lines(part("x"), LAST | {"prompt_eval_count": 3.5}),
    "one object": http(part("x", done=True)),
}


def test_lines_of_ollama_are_read(server: RawServer, tmp_path: Path) -> None:
    """Empty lines and odd fields do no harm; a character that ends lines elsewhere ends none here."""
    separators = lines(json.dumps(part("a\u2028b\u0085c"), ensure_ascii=False), LAST)
    path = write_agent(tmp_path, server, provider="ollama")
    for name, result, _ in run(path, server, LINES | {"separators": separators}):
        assert (name, text_of(result)) == (name, "a\u2028b\u0085c" if name == "separators" else "x")
        counts = (result.usage.prompt_tokens, result.usage.completion_tokens) if result.usage else None
        assert (name, counts) == (name, {"odd count": None, "no prompt count": (0, 2)}.get(name, (3, 2)))


def test_ollama_is_told_which_call_a_result_answers(server: RawServer, tmp_path: Path) -> None:
    """Arguments may be text or missing, and each result names its tool: Ollama's calls have no ids."""
    functions = [{"name": "weather", "arguments": ARGUMENTS}, {"name": "fails"}]
    answer = lines(part(message={"role": "assistant", "tool_calls": [{"function": f} for f in functions]}), LAST)
    ((_, result, seen),) = run(write_agent(tmp_path, server, provider="ollama"), server, {"": answer}, last=lines(part("x"), LAST))
    assert [(c.tool_name, dict(c.parameters)) for c in result.tool_calls] == [*ONE, ("fails", {})]
    assert [m.get("tool_name") for m in seen[1][2]["messages"][-2:]] == ["weather", "fails"]


@pytest.mark.parametrize("provider", ["openai", "azure_openai", "anthropic", "ollama"])
def test_what_is_empty_is_not_sent_back(provider: str, tmp_path: Path) -> None:
    """White space beside a call and an empty last reply are in no later request: providers refuse empty texts and messages."""
    with ModelServer() as server:
        call = Call("lookup_order", {"order_id": "1"})
        server.reply(Reply(text="I look.", tool_calls=[call]), Reply(text="\n\n", tool_calls=[call]), Reply(text=" "), Reply(text="Fine."))

        async def talk() -> None:
            async with load_agent(write_agent(tmp_path, server, provider=provider), environ={}) as agent, Session(agent) as session:
                assert text_of(await session.send("hello")) == "I look."
                assert text_of(await session.send("and now?")) == "Fine."

        asyncio.run(talk())
        *_, first, answer, second, last_answer, user = server.requests[-1].body["messages"]
        assert [m["role"] for m in (first, second, user)] == ["assistant", "assistant", "user"]
        assert "I look." in str(first)
        assert "\\n" not in str(second)
        assert all("1" in str(m) for m in (answer, last_answer))


def test_a_limit_that_leaves_no_answer_is_named(server: RawServer, tmp_path: Path) -> None:
    """A model that thinks until its tokens are used up is no reason to send the message again."""
    cases = {"": sse(chunk({"reasoning_content": "hm"}), chunk({}, "length"))}
    ((_, result, _),) = run(write_agent(tmp_path, server), server, cases)
    assert result.error is not None
    assert (result.error.error_type, "model.max_tokens" in result.error.message) == ("empty_answer", True)
