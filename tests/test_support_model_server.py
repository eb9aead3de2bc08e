"""The model server, asked by the client libraries of the providers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import anthropic
import httpx
import ollama
import openai
import pytest

from support.model_server import Call, Fault, ModelServer, Reply, Usage

HELLO = [{"role": "user", "content": "Where is order 1042?"}]
CALLS = [Call("lookup_order", {"order_id": "1042", "filter": {}}, id="call_1"), Call("weather", raw='{"city": "Par')]


@pytest.fixture
def server():
    """A running server that was asked for all that it was told to answer."""
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(server):
    """The real OpenAI client, without retries."""
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0, timeout=5) as real:
        yield real


def streamed(client, **more):
    """The chunks of a streamed completion."""
    with client.chat.completions.create(
        model="m", messages=HELLO, stream=True, **{"stream_options": {"include_usage": True}, **more}
    ) as stream:
        return list(stream)


def text_of(chunks):
    """The text of streamed chunks."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_an_openai_stream_has_text_finish_reason_and_usage(server, client):
    """A reply is cut into as many chunks as told, and its usage comes last."""
    server.reply(Reply("It was shipped yesterday.", chunks=20, usage=Usage(100, 20, 90, 5), id="r1", model="m-2"))
    chunks = streamed(client)
    assert text_of(chunks) == "It was shipped yesterday."
    assert len(chunks) == 1 + 20 + 2
    assert chunks[-2].choices[0].finish_reason == "stop"
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 20, 120)
    assert (usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens) == (90, 5)
    assert {(chunk.id, chunk.model) for chunk in chunks} == {("r1", "m-2")}


def test_usage_comes_only_to_those_who_ask_for_it(server, client):
    """Without ``include_usage`` a stream tells nothing about tokens."""
    assert [chunk.usage for chunk in streamed(client, stream_options={})] == [None] * 6


def test_openai_tool_calls_are_streamed_in_pieces_side_by_side_with_text(server, client):
    """Text stands before parallel calls, ``{}`` is a piece of its own, and malformed arguments stay malformed."""
    server.reply(Reply("One moment.", tool_calls=CALLS))
    chunks = streamed(client)
    deltas = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    texts = ["".join(delta.function.arguments for delta in deltas if delta.index == index) for index in (0, 1)]
    assert text_of(chunks) == "One moment."
    assert json.loads(texts[0]) == {"order_id": "1042", "filter": {}}
    assert texts[1] == '{"city": "Par'
    assert "{}" in [delta.function.arguments for delta in deltas]
    assert [(delta.id, delta.function.name) for delta in deltas if delta.id] == [("call_1", "lookup_order"), ("call_1_2", "weather")]
    assert chunks[-2].choices[0].finish_reason == "tool_calls"


def test_an_openai_answer_can_come_at_once_and_be_absent_in_parts(server, client):
    """Without a stream the whole completion comes back; None leaves a field out."""
    server.reply(Reply("Fine.", tool_calls=CALLS[:1], usage=(3, 4)), Reply("Fine.", usage=None, id=None, model=None, finish_reason=None))
    first, second = (client.chat.completions.create(model="m", messages=HELLO) for _ in range(2))
    assert first.choices[0].message.tool_calls[0].function.arguments == '{"order_id": "1042", "filter": {}}'
    assert first.usage.total_tokens == 7
    assert (second.choices[0].message.content, second.usage, second.id, second.model) == ("Fine.", None, None, None)


def test_an_empty_queue_echoes_and_a_hook_decides_by_request(server, client):
    """The default reply is the user's own message; ``respond`` takes its place; both come after queued answers."""
    assert text_of(streamed(client)) == "Where is order 1042?"
    server.respond = lambda request: Reply(f"You asked {request.body['model']}.")
    server.reply(Reply("Queued."))
    assert [text_of(streamed(client)) for _ in range(2)] == ["Queued.", "You asked m."]
    assert server.unused == 0


def test_requests_are_recorded_as_they_came_over_one_connection(server, client):
    """Path, headers, body and time are kept, and a connection lives on between requests."""
    before = time.time()
    for _ in range(3):
        client.chat.completions.create(model="m", messages=HELLO)
    request = server.requests[2]
    assert (request.number, request.method, request.path) == (3, "POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer k"
    assert request.body["messages"] == HELLO == json.loads(request.raw)["messages"]
    assert before <= request.time <= time.time()
    assert server.connections == 1


def test_azure_deployments_need_their_api_version(server):
    """The Azure client finds its path; its first chunk has no choice; without a version there is nothing."""
    with openai.AzureOpenAI(azure_endpoint=server.base_url, azure_deployment="d", api_key="k", api_version="2024-10-21") as client:
        chunks = streamed(client)
    assert chunks[0].choices == []
    assert text_of(chunks) == "Where is order 1042?"
    assert server.requests[0].path == "/openai/deployments/d/chat/completions"
    assert server.requests[0].query == {"api-version": "2024-10-21"}
    assert httpx.post(f"{server.base_url}/openai/deployments/d/chat/completions", json={}).status_code == 404


def test_anthropic_streams_text_tool_use_and_cache_tokens(server):
    """The Anthropic client puts the blocks together again."""
    server.reply(
        Reply("One moment.", tool_calls=CALLS[:1], usage=Usage(100, 20, cached=60, cache_write=10)), Reply("Done."), Fault(status=529)
    )
    with anthropic.Anthropic(base_url=server.base_url, api_key="k", max_retries=0) as client:
        with client.messages.stream(model="claude", max_tokens=9, messages=HELLO) as stream:
            kinds = [event.type for event in stream]
            message = stream.get_final_message()
        assert client.messages.create(model="claude", max_tokens=9, messages=HELLO).content[0].text == "Done."
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            client.messages.create(model="claude", max_tokens=9, messages=HELLO)
    assert message.content[0].text == "One moment."
    assert (message.content[1].id, message.content[1].input) == ("call_1", {"order_id": "1042", "filter": {}})
    assert message.stop_reason == "tool_use"
    usage = message.usage
    assert (usage.input_tokens, usage.output_tokens) == (30, 20)
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (60, 10)
    assert {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"} <= set(
        kinds
    )


def test_ollama_streams_lines_with_tool_calls_and_counts(server):
    """The Ollama client reads text, calls, counts and the reason for the end; an error line raises."""
    server.reply(Reply("One moment.", tool_calls=CALLS[:1], usage=(30, 20)), Fault.error_event(after=1), Fault(status=404))

    async def ask():
        async with ollama.AsyncClient(host=server.base_url) as client:
            parts = [part async for part in await client.chat("m", HELLO, stream=True)]
            with pytest.raises(ollama.ResponseError, match="terminated"):
                [part async for part in await client.chat("m", HELLO, stream=True)]
            with pytest.raises(ollama.ResponseError, match="404"):
                await client.chat("m", HELLO)
        return parts

    parts = asyncio.run(ask())
    assert "".join(part.message.content for part in parts) == "One moment."
    assert parts[2].message.tool_calls[0].function.arguments == {"order_id": "1042", "filter": {}}
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count, parts[-1].done_reason) == (30, 20, "stop")


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault(status=401), openai.AuthenticationError, "invalid_api_key"),
        (Fault(status=404), openai.NotFoundError, "model_not_found"),
        (Fault(status=429, headers={"retry-after": "1"}), openai.RateLimitError, "rate_limit"),
        (Fault(status=500, body="boom"), openai.InternalServerError, "boom"),
        (Fault(status=503), openai.InternalServerError, "server_error"),
        (Fault.context_length(), openai.BadRequestError, "context_length_exceeded"),
        (Fault.reset_before(), openai.APIConnectionError, "reset by peer"),
        (Fault.reset_after(2), openai.APIConnectionError, "reset by peer"),
        (Fault.cut_after(2), openai.APIConnectionError, "incomplete chunked read"),
        (Fault.error_event(after=1), openai.APIError, "while it answered"),
        (Fault.garbage_chunk(after=1), json.JSONDecodeError, ""),
    ],
)
def test_a_fault_reaches_the_openai_client(server, client, fault, error, words):
    """Each fault is the error that the client has for it, and the next request is answered well."""
    server.reply(fault)
    with pytest.raises(error) as caught:
        streamed(client)
    failure = caught.value
    assert words in (failure.response.text if isinstance(failure, openai.APIStatusError) else f"{failure} {failure.__cause__}")
    assert text_of(streamed(client)) == "Where is order 1042?"


def test_a_refusal_carries_its_headers(server, client):
    """``retry-after`` is there for the client to read."""
    server.reply(Fault(status=429, headers={"retry-after": "1"}))
    with pytest.raises(openai.RateLimitError) as caught:
        streamed(client)
    assert caught.value.response.headers["retry-after"] == "1"


def test_a_truncated_stream_ends_quietly(server, client):
    """What was sent before the cut arrives, and no finish reason does."""
    server.reply(Fault.truncate_after(3, Reply("one two three four")))
    chunks = streamed(client)
    assert text_of(chunks) == "one two three"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 4


def test_html_empty_answers_and_unknown_usage_are_answers_too(server, client):
    """A proxy's page, an answer that says nothing, and one without usage come with status 200."""
    server.reply(Fault.html(), Fault.empty(), Fault.no_usage("Fine."))
    with client.chat.completions.with_streaming_response.create(model="m", messages=HELLO, stream=True) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/html")
    empty, fine = streamed(client), streamed(client)
    assert (text_of(empty), empty[-2].choices[0].finish_reason) == ("", "stop")
    assert (text_of(fine), fine[-1].usage) == ("Fine.", None)


@pytest.mark.parametrize("fault", [Fault.silence(), Fault.silence_after(1)])
def test_stopping_the_server_ends_a_silence_at_once(fault):
    """A client that waits for a silent server is released when the server stops; that is no disconnect."""
    errors = []
    with ModelServer() as server:
        server.reply(fault)

        def ask():
            with pytest.raises(httpx.HTTPError) as caught:
                httpx.post(f"{server.url}/chat/completions", json={"model": "m", "stream": True})
            errors.append(caught.value)

        thread = threading.Thread(target=ask)
        thread.start()
        server.wait_until(lambda: len(server.requests) == 1)
        started = time.monotonic()
    thread.join()
    assert time.monotonic() - started < 1
    assert len(errors) == 1
    assert server.disconnects == 0


@pytest.mark.parametrize("answer", [Fault.silence_after(1), Reply("a b c", chunk_delay=30), Reply("late", delay=30)])
def test_a_client_that_hangs_up_is_noticed(server, client, answer):
    """Whether it is silent or merely slow, the server counts the client that did not wait."""
    server.reply(answer)
    with pytest.raises((openai.APITimeoutError, httpx.ReadTimeout)):
        streamed(client, timeout=0.05)
    server.wait_until(lambda: server.disconnects == 1)


def test_a_wait_that_fails_says_what_was_seen(server, client):
    """The message names the requests."""
    streamed(client)
    with pytest.raises(AssertionError, match="/v1/chat/completions"):
        server.wait_until(lambda: False, timeout=0.01)


def test_many_clients_are_served_at_once(server):
    """Twenty requests that take 0.1 s each are done together."""
    server.respond = lambda request: Reply(request.body["messages"][0]["content"], delay=0.1)

    async def ask(client, number):
        messages = [{"role": "user", "content": f"number {number}"}]
        return (await client.chat.completions.create(model="m", messages=messages)).choices[0].message.content

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(20)))

    started = time.monotonic()
    assert asyncio.run(ask_all()) == [f"number {number}" for number in range(20)]
    assert time.monotonic() - started < 1.5


def test_it_runs_as_a_process_of_its_own(tmp_path):
    """The module prints its URL, gives the replies of a file over and over, and ends on SIGTERM."""
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps([{"text": "one"}, {"tool_calls": [{"name": "weather", "raw": "{"}], "usage": None}]), encoding="utf-8")
    command = [sys.executable, "-m", "support.model_server", "--port", "0", "--replies", str(replies)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        url = process.stdout.readline().strip()
        answers = [httpx.post(f"{url}/chat/completions", json={"model": "m"}).json() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    assert [answer["choices"][0]["message"]["content"] for answer in answers] == ["one", None, "one"]
    assert "usage" not in answers[1]
