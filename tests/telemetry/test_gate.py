"""The one gate that every string passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
