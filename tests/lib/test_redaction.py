"""What is hidden, what is not, and that hiding takes linear time."""

from __future__ import annotations

from time import process_time

import pytest

from holodeck.lib.redaction import Redactor, compile_pattern

SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "sk-ant-api03-abcdefghijklmnop",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
    "Bearer abcdefgh12345678",
    "password=hunter2hunter2",
    "passwd: hunter2",
    '"api_key": "qwertyuiop"',
    "Authorization: Basic dXNlcjpwYXNz",
    "refresh_token=abc123abc",
    "someone.else+tag@mail.example.org",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "postgres://user:pa55word@db.example/x",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_hidden_wherever_they_stand(secret: str) -> None:
    """A key, token, password, e-mail address or card number is replaced inside any text."""
    clean = Redactor()(f"before {secret} after")
    assert "[redacted]" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    hidden = secret.replace('"', "").split("=")[-1].split(": ")[-1].split("//")[-1].partition("@db")[0]
    assert hidden not in clean


@pytest.mark.parametrize(
    "text",
    [
        "total_tokens: 5",
        "gen_ai.usage.input_tokens=42",
        "chatcmpl-AbCdEf0123456789abcdef",
        "order 1234567890123456",
        "00000000-0000-4000-8000-000000000001",
        "2026-11-24T10:00:00Z",
        "lookup_order(order_id=1042)",
        "gpt-4o-mini-2024-07-18",
        "https://example.org/a:b",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Token counts, ids, dates, numbers that are no card and model names are left alone."""
    assert Redactor()(text) == text


def test_a_pattern_of_the_user_hides_its_match() -> None:
    """The user's patterns are applied, in the syntax of RE2."""
    assert Redactor([r"ORD-[0-9]+"])("order ORD-12 of ORDER") == "order [redacted] of ORDER"


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "[z-a]"])
def test_a_pattern_that_cannot_run_is_refused_with_words(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A pattern that RE2 does not know is a ValueError, and nothing is written to the terminal behind our back."""
    with pytest.raises(ValueError, match=r".+"):
        compile_pattern(pattern)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("text", ["a" * 200_000 + "b", "x@" * 100_000, "1 " * 100_000, "_password" * 20_000, "a:" * 100_000])
def test_no_text_and_no_pattern_can_stall(text: str) -> None:
    """Patterns that would make a backtracking engine run for ever take a fraction of a second."""
    start = process_time()
    Redactor([r"(a+)+$", r"(x+x+)+y", r"(.*a){12}"])(text)
    assert process_time() - start < 2


def test_it_fails_closed() -> None:
    """A text that cannot be checked is hidden whole."""
    assert "\ud83e" not in Redactor()("secret \ud83e")
    assert "secret" not in Redactor()("secret \ud83e")


@pytest.mark.parametrize(
    ("name", "secret"), [("password", True), ("api_key", True), ("x-api-key", True), ("order_id", False), ("tokens", False)]
)
def test_names_tell_secrets(name: str, *, secret: bool) -> None:
    """A value is a secret because of its name, too."""
    assert Redactor().names_secret(name) is secret
