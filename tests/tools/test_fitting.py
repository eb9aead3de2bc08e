"""What a model plainly means, in the types of a schema."""

from __future__ import annotations

import time

import pytest

from holodeck.tools.fitting import fitted, stray_booleans

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"type": "boolean"},
        "s": {"type": "string"},
        "list": {"type": "array", "items": {"type": "integer"}},
        "maybe": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "deep": {"$ref": "#/$defs/Deep"},
        "free": {},
        "size": {"enum": [1, 2]},
    },
    "required": ["s"],
    "$defs": {"Deep": {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/Deep"}}}},
}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"n": "5", "x": "1.5", "b": "true"}, {"n": 5, "x": 1.5, "b": True}),
        ({"n": 5.0, "x": 5.0}, {"n": 5, "x": 5.0}),
        ({"n": "5.0", "size": "2"}, {"n": 5, "size": 2}),
        ({"list": "[1, 2.0]", "maybe": '["3"]'}, {"list": [1, 2], "maybe": [3]}),
        ({"deep": '{"n": "1", "next": {"n": 2.0, "next": null}}'}, {"deep": {"n": 1, "next": {"n": 2}}}),
        ({"n": None, "maybe": None, "free": None, "s": None}, {"maybe": None, "free": None, "s": None}),
    ],
)
def test_what_is_plain_is_taken(given, meant):
    """Text that is the JSON of what is wanted, whole numbers, and null for what may be left out."""
    result = fitted(given, SCHEMA)
    assert result == meant
    assert [type(value) for value in result.values()] == [type(value) for value in meant.values()]


@pytest.mark.parametrize(
    "given",
    [
        {"n": "five"},
        {"n": "NaN"},
        {"x": "1e999"},
        {"deep": '{"n": 1, "n": 2}'},
        {"n": "[1]"},
        {"n": 5.5},
        {"n": True},
        {"s": 5},
        {"s": "5"},
        {"either": "5"},
        {"b": "yes"},
        {"b": 1},
        {"list": 5},
        {"free": "5"},
        {"unknown": None},
        {"n": "[" * 100_000},
    ],
)
def test_what_is_not_plain_stays(given):
    """Whatever has no single meaning is left for the check that follows."""
    assert repr(fitted(given, SCHEMA)) == repr(given)


def test_a_schema_that_multiplies_costs_nothing():
    """Alternatives that refer to alternatives are looked at once each; circles and references that lead nowhere end."""
    definitions = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 50} for i in range(15)}
    definitions |= {"d15": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}, "self": {"anyOf": [{"$ref": "#/$defs/self"}]}}
    names = {"d0": "5", "loop": "5", "self": "5", "far": "5", "lost": "5"}
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in ("d0", "loop", "self", "lost")} | {"far": {"$ref": "http://example.com/"}}
    started = time.process_time()
    assert fitted(names, {"type": "object", "properties": properties, "$defs": definitions}) == names | {"d0": 5}
    assert time.process_time() - started < 1


def test_booleans_that_stand_for_numbers_are_found():
    """True is no 1: Python would take it for one."""
    found = stray_booleans({"n": True, "b": True, "free": True, "size": False, "s": True}, SCHEMA)
    assert [where for where, _ in found] == ["n", "size"]


def test_booleans_inside_are_found():
    """They are found at any depth, where the schema says what stands there."""
    inside = {"list": [1, True], "deep": {"n": 1, "next": {"n": False, "other": True}}, "free": [True], "maybe": None}
    assert [where for where, _ in stray_booleans(inside, SCHEMA)] == ["list.1", "deep.next.n"]
