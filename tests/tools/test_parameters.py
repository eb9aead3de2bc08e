"""``parameters`` of an agent file."""

from __future__ import annotations

import datetime as dt

import pytest

from holodeck.errors import AgentFileError, ToolRefused
from holodeck.tools.parameters import Parameters
from holodeck.tools.tool import Place

PLACE = Place("a.yaml", "tools[0].parameters")


def test_the_short_form_is_an_object_schema():
    """Each name is a property; it is required unless it says otherwise, has a default, or has one in Python."""
    written = {"a": {"type": "string"}, "b": {"type": "integer", "default": 2}, "c": {"required": False}, "d": {}, "type": {"enum": [1]}}
    assert Parameters(written, PLACE, optional=frozenset("d")).schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 2}, "c": {}, "d": {}, "type": {"enum": [1]}},
        "required": ["a", "type"],
        "additionalProperties": False,
    }


def test_a_full_schema_stays_as_it_is():
    """A JSON Schema is offered as written; it is closed unless it says that it is open."""
    full = {"type": "object", "properties": {"a": {"type": "object", "required": ["x"]}}, "required": ["a"], "$defs": {}}
    assert Parameters(full, PLACE).schema == full | {"additionalProperties": False}
    assert Parameters(full | {"additionalProperties": True}, PLACE).schema["additionalProperties"] is True
    assert Parameters({"properties": {"a": {}}}, PLACE).schema["type"] == "object"
    assert Parameters({"type": "object"}, PLACE).schema["properties"] == {}


def test_defaults_are_filled_in_and_arguments_checked():
    """What the model leaves out comes from the file; what does not fit is refused with its place."""
    parameters = Parameters({"a": {"type": "string"}, "b": {"type": "integer", "default": 2}}, PLACE)
    assert parameters.complete("t", {"a": "x"}) == {"a": "x", "b": 2}
    for wrong, words in (
        ({"a": 1}, "a: must be a string, not an integer"),
        ({}, "'a' is a required property"),
        ({"a": "", "z": 1}, "z: is not allowed"),
    ):
        with pytest.raises(ToolRefused, match=words):
            parameters.complete("t", wrong)


@pytest.mark.parametrize(
    ("written", "key", "words"),
    [
        ({"a": {"type": "str"}}, "a.type", "write 'string'"),
        ({"a": "string"}, "a", "needs a mapping"),
        ({"a": {"descripton": "x"}}, "a.descripton", "no keyword"),
        ({"a": {"type": "integer", "default": "x"}}, "a", "the default does not fit"),
        ({"a": {"default": dt.date(2026, 1, 1)}}, "", "JSON has not"),
        ({"a": {"default": float("nan")}}, "", "JSON has not"),
        ({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, "properties.a", "the default does not fit"),
        ({"type": "object", "properties": {"a": {"minimum": "x"}}}, "properties.a.minimum", "not of type 'number'"),
    ],
)
def test_faults_name_their_key(written, key, words):
    """What is wrong is told before the first prompt, with the key where it stands."""
    with pytest.raises(AgentFileError) as caught:
        Parameters(written, PLACE)
    assert caught.value.key == "tools[0].parameters" + (f".{key}" if key else "")
    assert words in caught.value.message


def test_what_is_plainly_meant_fits():
    """A number in text is the number, null is the default, and a default inside of a list has its place in the message."""
    parameters = Parameters({"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}}, PLACE)
    assert parameters.complete("t", {"a": "5", "b": None}) == {"a": 5, "b": 2}
    with pytest.raises(AgentFileError, match=r"a\.1: must be an integer, not a string"):
        Parameters({"a": {"type": "array", "items": {"type": "integer"}, "default": [1, "x"]}}, PLACE)
