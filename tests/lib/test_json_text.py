"""JSON as models write it."""

from __future__ import annotations

import pytest

from holodeck.lib.json_text import read_json, unwrapped


@pytest.mark.parametrize("text", ["", "{", "NaN", "-Infinity", "1e999", "1" * 1001, '{"a": 1, "a": 1}', "{'a': 1}"])
def test_what_is_ambiguous_or_no_json_is_refused(text: str) -> None:
    """Nothing is read that two readers would read differently."""
    with pytest.raises(ValueError, match=r"\w"):
        read_json(text)


def test_json_is_read() -> None:
    """Everything else is what it says."""
    assert read_json('{"a": [1, -2.5e3, true, null, "x"], "b": {}}') == {"a": [1, -2500.0, True, None, "x"], "b": {}}
    assert read_json("1" * 1000) == int("1" * 1000)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('\ufeff{"a": 1}', '{"a": 1}'),
        (' "{\\"a\\": 1}"', '{"a": 1}'),
        ('\ufeff"{}"', "{}"),
        ('"text"', '"text"'),
        ('"[1]"', '"[1]"'),
        ('"{', '"{'),
        ("{}", "{}"),
        ("", ""),
    ],
)
def test_only_objects_are_unwrapped(text: str, meant: str) -> None:
    """A byte order mark goes; a string that holds an object is the object; anything else stays."""
    assert unwrapped(text) == meant
