"""Every provider's real client, through Semantic Kernel, against a real HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from holodeck import Session, load_agent
from holodeck.models.events import TurnResult
from holodeck.models.token_usage import TokenUsage
from support.agents import write_agent
from support.command import run
from support.model_server import Call, Fault, ModelServer, Reply, Usage
from support.otlp_receiver import OtlpReceiver

PROVIDERS = ["openai", "azure_openai", "anthropic", "ollama"]
KEYS = {"OPENAI_API_KEY": "key-1", "AZURE_OPENAI_API_KEY": "key-1", "ANTHROPIC_API_KEY": "key-1", "PATH": "/usr/bin:/bin"}


def talk(path: Path, body: Callable[[Session], Awaitable[Any]]) -> Any:
    """Run ``body`` with an open session on the agent file."""

    async def run() -> Any:
        async with load_agent(path, environ=KEYS) as agent, Session(agent, max_messages=500) as session:
            return await body(session)

    return asyncio.run(run())


def send(path: Path, *texts: str) -> list[TurnResult]:
    """The results of one turn a text."""

    async def body(session: Session) -> list[TurnResult]:
        return [await session.send(text) for text in texts]

    results: list[TurnResult] = talk(path, body)
    return results


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_turn_with_parallel_tools_and_usage(provider: str, tmp_path: Path) -> None:
    """Text beside two tool calls is kept, results go back in call order, usage of both requests is added up."""
    with ModelServer() as server:
        calls = [Call("lookup_order", {"order_id": "1042"}, id="call_1"), Call("weather", {"city": "Oslo"}, id="call_2")]
        server.reply(Reply(text="Let me see.", tool_calls=calls, usage=Usage(100, 10)))
        server.reply(Reply(text="It shipped.", usage=Usage(200, 20, cached=150)))
        (result,) = send(write_agent(tmp_path, server, provider=provider), "Where is it?")
        assert result.error is None
        assert result.message is not None
        assert result.message.content == "Let me see.\n\nIt shipped."
        assert [(t.tool_name, t.status.value) for t in result.tool_calls] == [("lookup_order", "success"), ("weather", "success")]
        assert result.usage is not None
        assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (300, 30)
        assert result.usage.cached_tokens == (None if provider == "ollama" else 150)
        second = str(server.requests[1].body["messages"])
        assert second.index("Let me see.") < second.index("shipped") < second.index("sunny")


FAULTS = {
    "401": (Fault(status=401), "401", "key"),
    "404": (Fault(status=404), "404", "model.name"),
    "429": (Fault(status=429, headers={"retry-after": "3"}), "429", "wait"),
    "500": (Fault(status=500), "500", "later"),
    "html": (Fault.html(), "invalid_response", "model.endpoint"),
    "reset before": (Fault.reset_before(), "connection_reset", "again"),
    "reset inside": (Fault.reset_after(2), "connection_reset", "again"),
    "truncated": (Fault.truncate_after(2), "truncated_stream", "cut off"),
    "body cut": (Fault.cut_after(2), "connection_reset", "again"),
    "silence": (Fault.silence(), "timeout", "model.timeout"),
    "silence inside": (Fault.silence_after(2), "timeout", "model.timeout"),
    "error event": (Fault.error_event(after=2), "provider_error", "reported an error"),
    "garbage": (Fault.garbage_chunk(after=2), "invalid_response", "model.endpoint"),
    "empty": (Fault.empty(), "empty_answer", "no answer"),
    "overflow": (Fault.context_length(), "context_length_exceeded", "new session"),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_fault_is_one_line_and_the_session_goes_on(provider: str, tmp_path: Path) -> None:
    """Each fault of a provider fails its turn with an error type and one line that says what to do; the next turn's request is valid."""
    with ModelServer() as server:
        path = write_agent(tmp_path, server, provider=provider, model={"timeout": 1.0})

        async def body(session: Session) -> None:
            for name, (fault, error_type, words) in FAULTS.items():
                server.reply(fault)
                result = await session.send("hello")
                assert result.error is not None, name
                assert (name, result.error.error_type) == (name, error_type)
                assert words in result.error.message, name
                assert "\n" not in result.error.message, name
                assert len(session.chat.history.messages) == 1, name
            assert session.chat.message_count == 0
            assert (await session.send("still there?")).error is None

        talk(path, body)
        assert [m["role"] for m in server.requests[-1].body["messages"] if m["role"] != "system"] == ["user"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_without_usage_is_unknown_and_not_zero(provider: str, tmp_path: Path) -> None:
    """Where the provider does not say, usage is None."""
    with ModelServer() as server:
        server.reply(Fault.no_usage())
        (result,) = send(write_agent(tmp_path, server, provider=provider), "hello")
        assert result.error is None
        assert result.usage is None
        assert result.message is not None
        assert result.message.tokens_used is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_parameters_and_key_reach_the_provider(provider: str, tmp_path: Path) -> None:
    """temperature, top_p, max_tokens, the model's name and the key are in the request; nothing of telemetry is."""
    with ModelServer() as server:
        model = {"temperature": 0.25, "top_p": 0.5, "max_tokens": 77, "name": "some-model", "api_key": None}
        send(write_agent(tmp_path, server, provider=provider, model=model), "hello")
        request = server.requests[0]
        sent = request.body.get("options", request.body)
        assert (sent["temperature"], sent["top_p"]) == (0.25, 0.5)
        assert 77 in (sent.get("max_tokens"), sent.get("num_predict"))
        assert "some-model" in request.path or request.body["model"] == "some-model"
        if provider != "ollama":
            assert "key-1" in (
                request.headers.get("authorization", "") + request.headers.get("x-api-key", "") + request.headers.get("api-key", "")
            )
        assert not {"traceparent", "tracestate", "baggage"} & request.headers.keys()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tools_own_schema_reaches_the_model(provider: str, tmp_path: Path) -> None:
    """What stands beside the properties of a schema is not lost on the way."""
    tool = {
        "name": "odd-name",
        "type": "function",
        "file": "tools.py",
        "function": "lookup_order",
        "description": "Looks up",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"$ref": "#/$defs/Id"}},
            "required": ["order_id"],
            "$defs": {"Id": {"type": "string"}},
        },
    }
    with ModelServer() as server:
        path = write_agent(tmp_path, server, provider=provider)
        text = path.read_text(encoding="utf-8")
        agent = yaml.safe_load(text)
        agent["tools"] = [tool]
        path.write_text(yaml.safe_dump(agent), encoding="utf-8")
        server.reply(Reply(tool_calls=[Call("odd-name", {"order_id": "7"}, id="c")]), Reply(text="done"))
        (result,) = send(path, "hello")
        assert [t.status.value for t in result.tool_calls] == ["success"]
        (offered,) = server.requests[0].body["tools"]
        offered = offered.get("function", offered)
        assert offered["name"] == "odd-name"
        schema = offered.get("parameters") or offered.get("input_schema")
        if provider == "ollama":  # its client knows no references
            assert schema["properties"]["order_id"] == {"type": "string"}
        else:
            assert (schema["properties"]["order_id"], schema["$defs"]) == ({"$ref": "#/$defs/Id"}, {"Id": {"type": "string"}})


def test_cached_and_reasoning_tokens_are_kept_apart(tmp_path: Path) -> None:
    """Cached and reasoning counts are parts of prompt and completion, never added to the total."""
    with ModelServer() as server:
        server.reply(Reply(text="x", usage=Usage(1000, 100, cached=900, reasoning=60)))
        (result,) = send(write_agent(tmp_path, server), "hello")
        assert result.usage == TokenUsage.of(1000, 100, cached_tokens=900, reasoning_tokens=60)


_HUGE = {
    "prompt": Usage(2**63, 5),
    "completion": Usage(5, 2**70),
    "both together": Usage(2**62, 2**62),
}


@pytest.mark.parametrize("usage", _HUGE.values(), ids=_HUGE)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_counts_over_64_bits_are_unknown_and_the_answer_is_kept(provider: str, usage: Usage, tmp_path: Path) -> None:
    """A provider's absurd number costs the number, not the turn."""
    with ModelServer() as server:
        server.reply(Reply(text="It shipped.", usage=usage))
        (result,) = send(write_agent(tmp_path, server, provider=provider), "hello")
        assert (result.error, result.usage, result.cost_usd) == (None, None, None)
        assert result.message is not None
        assert (result.message.content, result.message.tokens_used) == ("It shipped.", None)


@pytest.mark.parametrize("count", [12.5, float("inf"), -1, 2**63])
@pytest.mark.parametrize("provider", ["openai", "azure_openai", "anthropic"])
def test_counts_that_are_no_counts_do_not_fail_a_good_answer(provider: str, count: float, tmp_path: Path) -> None:
    """Fractions, infinity and negative numbers are unknown; Ollama's own client refuses a reply with fractions as a whole."""
    with ModelServer() as server:
        server.reply(Reply(text="fine", usage=Usage(count, 5)))  # type: ignore[arg-type]
        (result,) = send(write_agent(tmp_path, server, provider=provider), "hello")
        assert (result.error, result.usage) == (None, None)


def test_requests_whose_sum_is_over_64_bits_make_a_turn_without_a_total(tmp_path: Path) -> None:
    """Each request keeps its own counts; the turn's are unknown."""
    with ModelServer() as server:
        usage = Usage(2**62, 2**61)
        server.reply(Reply(tool_calls=[Call("lookup_order", {"order_id": "1"})], usage=usage), Reply(text="Shipped.", usage=usage))
        (result,) = send(write_agent(tmp_path, server), "hello")
        assert (result.error, result.usage) == (None, None)
        assert [request.usage for request in result.requests] == [TokenUsage.of(2**62, 2**61)] * 2


@pytest.mark.parametrize("provider", PROVIDERS)
def test_spans_with_absurd_counts_still_arrive(provider: str, tmp_path: Path) -> None:
    """Over OTLP to a real receiver: each span of the turn is there, without the counts and marked so, and so are the largest that fit."""
    with ModelServer() as server, OtlpReceiver() as receiver:
        server.reply(Reply(text="one", usage=Usage(2**63, 5)), Reply(text="two", usage=Usage(2**63 - 6, 5)))
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        path = write_agent(tmp_path, server, provider=provider)
        done = run(["chat", path, "--observability", "-m", "hello", "-m", "again"], env=environment)
        assert (done.code, done.out) == (0, "one\ntwo\n")
        chats = sorted((span for span in receiver.spans if span.name.startswith("chat ")), key=lambda span: span.start)
        assert sorted(span.name for span in receiver.spans if span not in chats) == ["invoke_agent support"] * 2
        assert chats[0].attributes["holodeck.usage.unavailable"] is True
        assert "gen_ai.usage.input_tokens" not in chats[0].attributes
        assert (chats[1].attributes["gen_ai.usage.input_tokens"], chats[1].attributes["gen_ai.usage.output_tokens"]) == (2**63 - 6, 5)
        assert "holodeck.usage.unavailable" not in chats[1].attributes


@pytest.mark.parametrize(
    ("usage", "key", "said"),
    [
        (
            f"{{prompt_tokens: {2**63}, completion_tokens: 1}}",
            "replies[0].usage.prompt_tokens",
            "must be at most 9,223,372,036,854,775,807",
        ),
        (f"{{prompt_tokens: 1, completion_tokens: 1, cached_tokens: {2**64}}}", "replies[0].usage.cached_tokens", "must be at most"),
        (f"{{prompt_tokens: {2**62}, completion_tokens: {2**62}}}", "replies[0].usage", "together must be at most"),
    ],
)
def test_a_script_with_counts_over_64_bits_is_refused(usage: str, key: str, said: str, tmp_path: Path) -> None:
    """Its line and its key are named before anything is asked."""
    (tmp_path / "s.yaml").write_text(f"replies:\n  - text: hi\n    usage: {usage}\n", encoding="utf-8")
    (tmp_path / "agent.yaml").write_text("name: a\nmodel: {provider: scripted, script: s.yaml}\n", encoding="utf-8")
    done = run(["chat", tmp_path / "agent.yaml", "-m", "hello"])
    assert (done.code, done.out) == (2, "")
    assert f"s.yaml:3: {key}: " in done.err
    assert said in done.err
    assert done.err.count("\n") == 1


def test_nobody_listens(tmp_path: Path) -> None:
    """A server that is not there is one line with its address."""
    with ModelServer() as server:
        path = write_agent(tmp_path, server)
        address = server.base_url
    (result,) = send(path, "hello")
    assert result.error is not None
    assert result.error.error_type == "connection_error"
    assert address in result.error.message


@pytest.mark.parametrize("reason", ["eos", "", "length"])
def test_finish_reasons_that_nobody_knows_do_no_harm(reason: str, tmp_path: Path) -> None:
    """A compatible server's own finish reason is taken as an end."""
    with ModelServer() as server:
        server.reply(Reply(text="fine", finish_reason=reason))
        (result,) = send(write_agent(tmp_path, server), "hello")
        assert result.error is None
        assert result.message is not None
        assert result.message.content == "fine"


def test_a_dot_env_file_in_the_working_directory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, models and telemetry switches in .env change nothing."""
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=stolen\nOPENAI_CHAT_MODEL_ID=other\nSEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    with ModelServer() as server:
        send(write_agent(tmp_path, server), "hello")
        assert "stolen" not in str(server.requests[0].headers)
        assert server.requests[0].body["model"] != "other"


def test_references_are_inlined_and_end_where_they_repeat() -> None:
    """A schema that contains itself is cut, not followed for ever."""
    from holodeck.backends import kernel

    inlined = kernel.load("holodeck.backends.connectors").inlined
    schema = {
        "properties": {"x": {"$ref": "#/$defs/Node", "description": "d"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    assert inlined(schema) == {"properties": {"x": {"type": "object", "description": "d", "properties": {"next": {"type": "object"}}}}}
