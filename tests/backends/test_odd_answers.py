"""What comes of a request that is refused, sent elsewhere or never answered: one line that says what to do, and no secret in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from holodeck import Session, load_agent
from holodeck.errors import ConfigError
from holodeck.models.events import TurnError
from support.agents import write_agent
from support.model_raw import RawServer, http
from support.model_server import ModelServer, Reply
from support.net import unused_port
from support.scripts import talk
from support.strangers import TlsPage, certificate

PROVIDERS = ["openai", "azure_openai", "anthropic", "ollama"]


@pytest.fixture
def server() -> Iterator[RawServer]:
    """A server that is told its bytes."""
    with RawServer() as server:
        yield server


def errors(path: Path, server: RawServer, answers: Mapping[str, bytes]) -> dict[str, TurnError]:
    """The failure that comes of each answer."""

    async def ask() -> dict[str, TurnError]:
        found = {}
        async with load_agent(path, environ={}) as agent, Session(agent, max_messages=1000) as session:
            for name, answer in answers.items():
                server.answers.append(answer)
                result = await session.send("hello")
                assert result.error is not None, name
                assert "\n" not in result.error.message, name
                found[name] = result.error
        return found

    return asyncio.run(ask())


def error_at(path: Path, **environ: str) -> TurnError:
    """The failure of a turn."""

    async def ask() -> TurnError | None:
        async with load_agent(path, environ=environ) as agent, Session(agent) as session:
            return (await session.send("hello")).error

    error = asyncio.run(ask())
    assert error is not None
    return error


def said(message: str, status: str = "400 Bad Request", **more: Any) -> bytes:
    """An error in the form that most providers share."""
    return http({"error": {"message": message, **more}}, status)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_redirect_is_not_followed(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Neither key nor conversation go where a server points; the line says where that is, without what may be secret in it."""
    with RawServer() as other:
        place = f"http://user:pass@localhost:{other.port}/v1?token=secret"
        path = write_agent(tmp_path, server, provider=provider)
        found = errors(path, server, {str(s): http("", f"{s} Moved", location=place) for s in (301, 302, 303, 307, 308)})
        assert {name: error.error_type for name, error in found.items()} == {name: name for name in found}
        assert all(f"(to http://localhost:{other.port}/v1)" in error.message for error in found.values())
        assert other.seen == []


STATUSES = {
    400: "check 'model'",
    402: "billing",
    403: "key may use",
    405: "model.endpoint",
    407: "HTTP_PROXY",
    409: "wait",
    413: "shorten",
    415: "check 'model'",
    422: "check 'model'",
    429: "wait",
    500: "later",
    502: "later",
    503: "overloaded",
    529: "overloaded",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_status_says_what_to_do(provider: str, server: RawServer, tmp_path: Path) -> None:
    """A status is its own error type, and its line has a way out; the status is not said twice."""
    found = errors(write_agent(tmp_path, server, provider=provider), server, {str(s): http("", f"{s} X") for s in STATUSES})
    for status, words in STATUSES.items():
        error = found[str(status)]
        assert (error.error_type, words in error.message) == (str(status), True), error.message
        assert error.message.count(str(status)) == 1


BODIES: dict[str, bytes] = {
    "object": said("it broke"),
    "text": http({"error": "it broke"}, "400 X"),
    "plain": http("it broke", "400 X"),
    "list": http([{"error": {"message": "it broke"}}], "400 X"),
    "detail": http({"detail": [{"loc": ["x"], "msg": "it broke"}]}, "400 X"),
    "errors": http({"errors": [{"message": "it broke"}]}, "400 X"),
    "wrapped": said('{"error": {"message": "it broke"}}'),
    "controls": said("it \x1b[31mbroke\x1b[0m\x1b]0;title\x07\r\n\u202e"),
    "html": http("\n <!doctype html><h1>Bad</h1>", "400 X", content_type="text/html"),
    "nothing": http({"error": {"message": None}}, "400 X"),
    "half": http('{"error": {"mess', "400 X", content_type="application/json"),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_providers_words_are_found_in_any_body(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Whatever the vendor calls its message, it is quoted, safe for a terminal; markup is not."""
    for name, error in errors(write_agent(tmp_path, server, provider=provider), server, BODIES).items():
        if name in ("html", "nothing"):
            assert error.message.endswith("check 'model' in the agent file"), name
        elif name != "half":
            assert error.message.endswith("(it broke)"), error.message
        assert error.message.isprintable(), name


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_huge_error_is_cut(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Ten million characters of error are one short line."""
    (error,) = errors(write_agent(tmp_path, server, provider=provider), server, {"": said("x" * 10_000_000, "500 X")}).values()
    assert len(error.message) < 300


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_that_the_provider_repeats_is_not_shown(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Neither the configured key nor what looks like one is in the result or on a span."""
    path = write_agent(tmp_path, server, provider=provider, model={"api_key": "canary-7f3a"})

    async def body(session: Session, memory: Any) -> str:
        shown = ""
        for text in ("Incorrect API key: canary-7f3a.", "Incorrect API key: sk-abcdefghijklmnop1234."):
            server.answers.append(said(text, "401 X"))
            result = await session.send("hello")
            assert result.error is not None
            assert "Incorrect API key: [redacted]" in result.error.message
            shown += result.model_dump_json()
        return shown + "".join(str(span.to_json()) for span in memory.spans)

    shown = talk(path, body)
    assert "canary-7f3a" not in shown
    assert "sk-abc" not in shown


def test_the_wait_is_said_in_any_form(server: RawServer, tmp_path: Path) -> None:
    """Retry-After may be seconds, a fraction or a date; what makes no sense is left out."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    waits = {"12": "wait 12 s,", "0.2": "wait 1 s,", date: "wait 10 min,", "-5": "wait,", "9" * 400: "wait,", "²": "wait,", "soon": "wait,"}
    answers = {text: http("", "429 X", retry_after=text) for text in waits if text != "²"}
    for text, error in errors(write_agent(tmp_path, server), server, answers).items():
        assert waits[text] in error.message, text


OVERFLOWS = [
    said("Requested too much", code="context_length_exceeded"),
    said("prompt is too long: 210000 tokens > 200000 maximum"),
    said("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    said("the request exceeds the available context size (4096), try increasing it"),
    said("Please reduce the length of the messages or completion."),
    said("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    said("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", "422 X"),
    said("Context size has been exceeded.", "500 X"),
    said("Too many input tokens", "413 X"),
]
FILTERED = [
    said("The response was filtered", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
    said("Your request was rejected", code="content_policy_violation"),
    said("triggering Azure OpenAI's content management policy"),
]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_overflow_and_content_filter_are_known_by_their_words(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Whatever a vendor calls it, a full context and a filtered message have a type of their own, and a way out."""
    answers = {f"{kind} {n}": answer for kind, group in (("o", OVERFLOWS), ("f", FILTERED)) for n, answer in enumerate(group)}
    known = {name: answer for name, answer in answers.items() if provider != "ollama" or name not in ("o 0", "f 0", "f 1")}
    for name, error in errors(write_agent(tmp_path, server, provider=provider), server, known).items():
        expected = ("context_length_exceeded", "new session") if name[0] == "o" else ("content_filter", "differently")
        assert (name, error.error_type, expected[1] in error.message) == (name, expected[0], True)


def test_a_used_up_quota_is_no_rate(server: RawServer, tmp_path: Path) -> None:
    """Waiting does not help an account that cannot pay."""
    answers = {
        "429": said("You exceeded your current quota", "429 X", code="insufficient_quota"),
        "400": said("Your credit balance is too low"),
    }
    for name, error in errors(write_agent(tmp_path, server), server, answers).items():
        assert (error.error_type, "billing" in error.message, "wait" in error.message) == (name, True, False)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_no_http_is_said_to_be_none(provider: str, server: RawServer, tmp_path: Path) -> None:
    """Garbage in place of HTTP leads to the endpoint; a connection that is closed, to another try."""
    garbage = {
        "status": b"GARBAGE\r\n\r\n",
        "header": b"HTTP/1.1 200 OK\r\nbad\x00: x\r\n\r\n",
        "http2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    }
    gzip = {"gzip": http("no gzip", content_encoding="gzip"), "204": b"HTTP/1.1 204 No Content\r\n\r\n"}
    closed = {"closed": b"", "short": b"HTTP/1.1 500 X\r\ncontent-length: 500\r\n\r\n{}"}
    for name, error in errors(write_agent(tmp_path, server, provider=provider), server, garbage | gzip | closed).items():
        expected = ("connection_reset", "again") if name in closed else ("invalid_response", "model.endpoint")
        assert (name, error.error_type, expected[1] in error.message) == (name, expected[0], True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_way_to_the_server_is_explained(provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that nobody knows, an IPv6 address, TLS where there is none, and a dead proxy are told apart."""
    suffix = "/v1" if provider == "openai" else ""
    port = unused_port()
    with ModelServer() as server:

        def failure(endpoint: str) -> tuple[str, str]:
            error = error_at(write_agent(tmp_path, provider=provider, model={"endpoint": f"{endpoint}{suffix}"}))
            return error.error_type, error.message

        kind, message = failure("http://nonexistent.invalid")
        assert (kind, "nobody knows" in message) == ("connection_error", True)
        kind, message = failure(f"http://[::1]:{port}")
        assert (kind, f"http://[::1]:{port} cannot be reached" in message) == ("connection_error", True)
        kind, message = failure(f"https://127.0.0.1:{server.port}")
        assert (kind, "http or https" in message) == ("tls_error", True)
        monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{port}")
        kind, message = failure(server.base_url)
        assert (kind, f"through the proxy http://127.0.0.1:{port}:" in message) == ("connection_error", True)
        assert "secret" not in message


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_certificate_that_nobody_knows_is_refused(provider: str, tmp_path: Path) -> None:
    """A self-signed server is not talked to, and the line names the way to trust it."""
    with TlsPage(certificate(tmp_path)) as server:
        endpoint = f"https://127.0.0.1:{server.port}"
        error = error_at(write_agent(tmp_path, provider=provider, model={"endpoint": endpoint}))
        assert (error.error_type, "SSL_CERT_FILE" in error.message) == ("tls_error", True)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ALL_PROXY", "gopher://user:secret@x", "proxy"),
        ("ALL_PROXY", "socks5://x:1", "socksio"),
        ("SSL_CERT_FILE", "/nowhere", "SSL_CERT_FILE"),
    ],
)
def test_an_environment_that_no_client_can_use_is_a_configuration_error(
    provider: str, variable: str, value: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad proxy and missing certificates stop the agent with one line, and no password in it."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        error_at(write_agent(tmp_path, provider=provider))
    assert words in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_endpoint_may_have_a_login_and_a_query(provider: str, tmp_path: Path) -> None:
    """Both reach the server with each request; neither is part of the path, and a slash at the end changes nothing."""
    with ModelServer() as server:
        suffix = "/v1/" if provider == "openai" else "/"
        place = server.base_url.replace("//", "//user:p%40ss@")
        path = write_agent(tmp_path, provider=provider, model={"endpoint": f"{place}{suffix}?gateway=7", "api_key": None})
        talk_once(path, {"ANTHROPIC_API_KEY": "key-1", "AZURE_OPENAI_API_KEY": "key-1"})
        (request,) = server.requests
        assert request.query["gateway"] == "7"
        assert request.headers["authorization"] == "Basic dXNlcjpwQHNz"


def talk_once(path: Path, environ: dict[str, str]) -> None:
    """A turn that succeeds."""

    async def ask() -> None:
        async with load_agent(path, environ=environ) as agent, Session(agent) as session:
            assert (await session.send("hello")).error is None

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("provider", "endpoint", "hint"),
    [
        ("openai", "", "/v1)"),
        ("openai", "/v1/chat/completions", "base URL"),
        ("anthropic", "/v1", "without /v1"),
        ("ollama", "/v1", "without /v1"),
        ("azure_openai", "/openai/deployments/x/chat/completions", "base URL"),
    ],
)
def test_a_wrong_path_is_explained(provider: str, endpoint: str, hint: str, tmp_path: Path) -> None:
    """The usual mistakes in an endpoint are named."""
    with ModelServer() as server:
        error = error_at(write_agent(tmp_path, provider=provider, model={"endpoint": server.base_url + endpoint}))
        assert (error.error_type, hint in error.message) == ("404", True), error.message


def test_ollama_is_sent_the_key_that_it_was_given_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the agent file, or of the environment that the agent was given; never one of the process."""
    monkeypatch.setenv("OLLAMA_API_KEY", "of-the-process")
    for key, environ, sent in (("of-the-file", {}, "of-the-file"), (None, {"OLLAMA_API_KEY": "given"}, "given"), (None, {}, None)):
        with ModelServer() as server:
            talk_once(write_agent(tmp_path, server, provider="ollama", model={"api_key": key}), environ)
            assert server.requests[0].headers.get("authorization") == (f"Bearer {sent}" if sent else None)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_many_conversations_share_a_client(provider: str, tmp_path: Path) -> None:
    """Fifty turns at once each get their own answer, and nothing of telemetry or of other programs is sent along."""
    with ModelServer() as server:
        server.respond = lambda request: Reply(text=str(request.body["messages"][-1]["content"]), delay=0.05)
        path = write_agent(tmp_path, server, provider=provider)

        async def ask() -> list[str | None]:
            async with load_agent(path, environ={}) as agent:
                sessions = [Session(agent) for _ in range(50)]
                for session in sessions:
                    await session.open()
                results = await asyncio.gather(*(session.send(f"n{number}") for number, session in enumerate(sessions)))
                return [result.message.content if result.message else None for result in results]

        answers = asyncio.run(ask())
        assert [f"n{number}" in str(answer) for number, answer in enumerate(answers)] == [True] * 50
        names = {name for request in server.requests for name in request.headers}
        assert not names & {"traceparent", "tracestate", "baggage"}
        assert {request.headers["user-agent"].partition("/")[0] for request in server.requests} == {"holodeck"}
