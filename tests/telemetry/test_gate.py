"""The one gate that every string passes."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holodeck.lib.redaction import Redactor
from holodeck.lib.validation import shorten
from holodeck.telemetry import Gate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


def test_shut_it_lets_no_content_through() -> None:
    """While it is shut, content is None, whatever it is."""
    gate = Gate()
    assert gate.text("hello") is None
    assert gate.structure({"a": 1}) is None


def test_labels_pass_redacted_and_short() -> None:
    """A name passes while the gate is shut, without the secret in it and without its excess."""
    assert Gate().label("agent of a@b.example") == "agent of [redacted]"
    assert len(Gate().label("x" * 5000)) == 1024


def test_identifiers_pass_whole() -> None:
    """An id is never redacted: it has to match the provider's."""
    assert Gate().identifier("sk-1234567890abcdefghij") == "sk-1234567890abcdefghij"


def test_a_lone_surrogate_becomes_exportable() -> None:
    """A lone surrogate, which would cost the whole batch, becomes U+FFFD."""
    gate = Gate(capture_content=True)
    assert gate.label("a\ud83eb") == "a\ufffdb"
    assert gate.text("a\ud83eb") == "a\ufffdb"
    assert json.loads(gate.structure(["\ud83e"]) or "") == ["\ufffd"]


def test_a_value_is_cut_with_a_marker_and_its_length() -> None:
    """5,000,000 characters become at most the limit, and say how many they were."""
    gate = Gate(capture_content=True, limit=65_536)
    text = gate.text("x" * 5_000_000) or ""
    assert len(text) == 65_536
    assert text.endswith("[cut: 5000000 characters]")
    assert len(gate.structure([{"content": "x" * 5_000_000}] * 3) or "") <= 65_536


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "hunter2"}, {"password": "[redacted]"}),
        ({"user": {"api_key": "abc", "n": 1}}, {"user": {"api_key": "[redacted]", "n": 1}}),
        ({"pin_secret": 1234}, {"pin_secret": "[redacted]"}),
        ([{"deep": [{"mail": "a@b.example"}]}], [{"deep": [{"mail": "[redacted]"}]}]),
        ({"n": 2**70, "x": float("nan")}, {"n": str(2**70), "x": "nan"}),
    ],
)
def test_nested_secrets_are_found(value: Any, expected: Any) -> None:
    """Secrets in nested values are hidden, by their look and by their name; what JSON cannot carry becomes text."""
    assert json.loads(Gate(capture_content=True).structure(value) or "") == expected


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_any_structure_becomes_json_within_the_limit(value: Any) -> None:
    """Whatever a tool or a model returns becomes valid JSON that UTF-8 can carry and that is not longer than the limit."""
    encoded = Gate(capture_content=True, limit=500).structure(value)
    assert encoded is not None
    assert len(encoded) <= 500
    json.loads(encoded.encode("utf-8"))


def test_a_structure_deeper_than_the_stack_does_no_harm() -> None:
    """Nesting that a recursion cannot follow is cut."""
    value: Any = "x"
    for _ in range(10_000):
        value = [value]
    assert "too deep" in (Gate(capture_content=True).structure(value) or "")


@pytest.mark.parametrize("limit", [0, 1, 10, 64, 65])
def test_a_tiny_limit_is_a_limit(limit: int) -> None:
    """However small the limit is, a structure is cut to it and nothing fails."""
    assert len(Gate(capture_content=True, limit=limit).structure([{"content": "x" * 500}]) or "") <= limit


SECRET = "sk-proj-abcdefgh0123456789abcdef"


@pytest.mark.parametrize("limit", range(60, 110))
def test_no_cut_leaves_half_a_secret(limit: int) -> None:
    """Wherever the limit falls, nothing of the secret is left: in labels, in texts and in structures."""
    gate = Gate(capture_content=True, limit=limit)
    text = "x" * 30 + " " + SECRET + " " + "y" * 200
    for found in (gate.label(text), gate.text(text), gate.structure({"a": text}), gate.structure([text, text])):
        assert found is not None
        assert len(found) <= limit
        assert "sk-" not in found
        assert "abcdefgh" not in found


@pytest.mark.parametrize(
    "secret",
    [SECRET, "someone.else@mail.example.org", "4111 1111 1111 1111", "postgres://user:pa55word@db.example", 'password: "hunter2 22"'],
)
@pytest.mark.parametrize("kept", range(4, 40))
def test_a_secret_that_was_cut_before_it_came_here_goes_too(secret: str, kept: int) -> None:
    """Tools' results are cut by the model of them: the last word before such a cut may be half a secret."""
    gate = Gate(capture_content=True)
    before = "x" * 100 + " "
    cut = shorten(before + secret + " " + "y" * 100, len(before) + kept + len("… [cut: 240 characters]"))
    for found in (gate.text(cut) or "", gate.structure({"result": cut}) or ""):
        rest = found.partition("x" * 100)[2].partition("… [cut")[0]
        assert not any(part in rest for part in ("abcd", "someone", "4111 1", "pa55", "hunter"))


@pytest.mark.parametrize("hidden_by", ["\x1b[0m", "\u202e", "\u200b", "\x00", "\x1b]0;x\x07", "\u2066"])
def test_what_is_taken_out_does_not_hide_a_secret(hidden_by: str) -> None:
    """A secret that is torn apart by something that nobody sees is found all the same."""
    gate = Gate(capture_content=True)
    torn = SECRET[:12] + hidden_by + SECRET[12:]
    for found in (gate.label(torn), gate.text(torn), gate.structure([torn])):
        assert "efgh" not in (found or "")


class _Rude:
    def __str__(self) -> str:
        return SECRET


@pytest.mark.parametrize("value", [SECRET.encode(), _Rude(), {SECRET: 1}, {1: SECRET}, (SECRET,), json.dumps(json.dumps({"a": SECRET}))])
def test_values_of_every_kind_are_searched(value: Any) -> None:
    """Bytes, objects, keys and JSON inside of JSON are redacted like text."""
    assert "abcdefgh" not in (Gate(capture_content=True).structure(value) or "")


def test_what_holds_itself_takes_no_time() -> None:
    """A value that branches without end is searched no further than the limit."""
    knot: list[Any] = []
    knot += [knot, knot]
    started = process_time()
    assert "too deep" in (Gate(capture_content=True).structure({"knot": knot}) or "")
    assert process_time() - started < 2


def test_hundred_megabytes_take_little_time() -> None:
    """Only what may go out is searched."""
    gate = Gate(capture_content=True)
    text = "a@b.example " * 800_000
    started = process_time()
    assert len(gate.text(text) or "") <= 65_536
    assert len(gate.structure({"a": text}) or "") <= 65_536
    assert process_time() - started < 3


def test_it_fails_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the search for secrets fails, whatever the reason, nothing of the value gets out."""

    def broken(*_: Any) -> Any:
        raise RuntimeError("no")

    gate = Gate(capture_content=True)
    monkeypatch.setattr(Redactor, "_spans", broken)
    for found in (gate.label("word"), gate.text("word"), gate.structure({"word": "word"})):
        assert "word" not in (found or "")
        assert "could not be checked" in (found or "")
