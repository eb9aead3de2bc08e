"""The collector's redaction: secrets that other programs send are hidden, and nothing else is touched."""

from __future__ import annotations

from uuid import uuid4

import pytest

from integration.otlp_requests import ERROR, log_request, post, span, spans_request
from integration.stack import Stack, wait

KEY, BEARER, CARD = "sk-proj-abcdefghijklmnopqrstuvwx0123456789", "Bearer abc.def-ghi_jkl", "4111 1111 1111 1111"
SECRETS = {
    "a provider's key": (f"the key is {KEY}.", "the key is ****."),
    "a bearer token": (f"authorization: {BEARER}", "authorization: ****"),
    "a card": (f"card {CARD}, thanks", "card ****, thanks"),
    "a card in one run": ("5555555555554444", "****"),
    "an Amex card": ("3782 822463 10005", "****"),
    "a web token": ("eyJhbGciOiJI.eyJzdWIiOiIx.abc-def", "****"),
    "a GitHub token": ("ghp_abcdefghijklmnopqrstuvwxyz0123", "****"),
    "an AWS key": ("AKIAIOSFODNN7EXAMPLE", "****"),
}
PLAIN = {
    "gen_ai.usage.input_tokens": 4111111111111111,
    "gen_ai.usage.output_tokens": 26,
    "gen_ai.response.id": "chatcmpl-4111111111111111",
    "gen_ai.conversation.id": "41111111-1111-4111-8111-111111111111",
    "gen_ai.request.model": "gpt-4o-mini-2024-07-18",
    "holodeck.tool.execution_time": 0.25,
    "gen_ai.token.type": "input",
    "text": "order 1042, parcel NO-5531-77, call 555-0100, at 1796123226238427136 ns",
    "uuid": "4d3a1f60-4111-1111-1111-111111111111",
    "hash": "sha256:5f2b4111111111111111a9",
}


@pytest.mark.parametrize("what", SECRETS)
def test_a_secret_is_hidden_wherever_it_stands(stack: Stack, what: str) -> None:
    """A secret is cut out of attributes, events, names, status text and the resource; the words around it stay."""
    secret, hidden = SECRETS[what]
    trace = uuid4().int
    sent = span(
        trace, 1, name=f"turn {secret}", status=ERROR, message=f"failed: {secret}", attributes={"text": secret},
        events={"exception": {"exception.message": secret}},
    )  # fmt: skip
    assert post(stack.collector.url("HTTP"), spans_request("net", [sent], note=secret))
    (found,) = stack.wait_for_trace(f"{trace:032x}", 1)
    assert (found.name, found.status_message, found.status_code) == (f"turn {hidden}", f"failed: {hidden}", ERROR)
    assert (found.attributes, found.events[0].attributes) == ({"text": hidden}, {"exception.message": hidden})
    assert found.resource["note"] == hidden


@pytest.mark.parametrize("key", ["api_key", "db.password", "http.request.header.authorization", "access_token", "client-secret", "Cookie"])
def test_a_key_that_names_a_secret_hides_its_value(stack: Stack, key: str) -> None:
    """What stands under a name for secrets is hidden whatever it looks like."""
    trace = uuid4().int
    assert post(stack.collector.url("HTTP"), spans_request("net", [span(trace, 1, attributes={key: "swordfish"})]))
    (found,) = stack.wait_for_trace(f"{trace:032x}", 1)
    assert found.attributes == {key: "****"}


def test_everything_else_stays_as_it_is(stack: Stack) -> None:
    """Usage stays an integer, ids and ordinary numbers stay whole, and nothing is added."""
    trace = uuid4().int
    sent = span(trace, 1, name="chat gpt-4o-mini", status=ERROR, message="the model did not answer in 60 s", attributes=PLAIN)
    assert post(stack.collector.url("HTTP"), spans_request("net", [sent], **{"service.instance.id": "4111111111111111"}))
    (found,) = stack.wait_for_trace(f"{trace:032x}", 1)
    assert found.attributes == PLAIN
    assert {key: type(value) for key, value in found.attributes.items()} == {key: type(value) for key, value in PLAIN.items()}
    assert (found.name, found.status_message) == ("chat gpt-4o-mini", "the model did not answer in 60 s")
    assert found.resource == {"service.name": "net", "service.instance.id": "4111111111111111"}


def test_log_records_are_redacted_too(stack: Stack) -> None:
    """A log record's text and attributes go through the same rules."""
    mark = uuid4().hex
    assert post(stack.collector.url("HTTP"), log_request("net", f"{mark} used {KEY}", note=CARD))
    lines = stack.collector.directory / "data" / "logs.jsonl"
    line = wait(lambda: lines.exists() and next((x for x in lines.read_text().splitlines() if mark in x), None), "the log record")
    assert f"{mark} used ****" in line
    assert KEY not in line
    assert CARD not in line
