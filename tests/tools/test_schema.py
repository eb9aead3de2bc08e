"""JSON Schemas and what fits them."""

from __future__ import annotations

import time

import pytest

from holodeck.tools.schema import SchemaCheck, UnusableSchemaError


def test_faults_say_where_and_what():
    """Each fault has a dotted place and a reason."""
    check = SchemaCheck({"type": "object", "properties": {"a": {"items": {"type": "integer"}}}, "required": ["b"]})
    assert check.faults({"a": [1, "x"]}) == [("a.1", "must be an integer, not a string"), ("", "'b' is a required property")]


@pytest.mark.parametrize(
    ("schema", "path", "what"),
    [
        ({"properties": {"a": {"type": "int"}}}, "properties.a.type", "write 'integer'"),
        ({"properties": {"a": {"type": "strnig"}}}, "properties.a.type", "strnig"),
        ({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern", "regex"),
        ({"required": "a"}, "required", "not of type 'array'"),
        ({"$ref": "#/$defs/missing"}, "", "does not lead anywhere"),
        ({"properties": {"a": {"$dynamicRef": "http://127.0.0.1:1/x#n"}}}, "", "does not lead anywhere"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:1/schema.json"}}}, "", "does not lead anywhere"),
    ],
)
def test_a_faulty_schema_is_refused(schema, path, what):
    """A schema is checked before it is used, references and regular expressions included; nothing is fetched."""
    with pytest.raises(UnusableSchemaError) as caught:
        SchemaCheck(schema)
    assert caught.value.path == path
    assert what in caught.value.reason


def test_the_dialect_is_the_schemas_own():
    """A schema that names its dialect is read in it."""
    check = SchemaCheck(
        {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}
    )
    assert check.faults({"a": 1})


def test_references_inside_the_schema_work():
    """Definitions are found by their pointer, with and without an id."""
    for extra in ({}, {"$id": "http://example.invalid/s"}):
        check = SchemaCheck({**extra, "$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}})
        assert check.faults({"a": "x"})


def test_dynamic_references_work():
    """A tree that refers to its own anchor is checked to its leaves."""
    node = {"$dynamicAnchor": "node", "properties": {"n": {"type": "integer"}, "next": {"$dynamicRef": "#node"}}}
    check = SchemaCheck({"properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert check.faults({"a": {"n": 1, "next": {"next": {"n": "x"}}}}) == [("a.next.next.n", "must be an integer, not a string")]


def test_a_reference_that_leads_nowhere_from_where_it_stands_refuses():
    """What the whole schema has is not there for a part with an $id of its own: the call is refused, and nothing else happens."""
    part = {"$id": "http://example.com/part", "$ref": "#/$defs/n"}
    check = SchemaCheck({"properties": {"a": part}, "$defs": {"n": {"type": "integer"}}})
    assert check.faults({"a": 1}) == [("", "the schema cannot be applied: it refers to what is not in it")]


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", [1], {"a": 1}, None], True),
        ([1, 1.0], False),
        ([0, False], True),
        ([{"a": [1, {"b": 2}]}, {"a": [1, {"b": 2.0}]}], False),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([{"a": 1}, {"a": True}], True),
        ("aa", True),
    ],
)
def test_items_are_unique_as_json_has_it(items, unique):
    """Numbers are equal by value, booleans are no numbers, and the order of keys is of no interest."""
    found = SchemaCheck({"properties": {"a": {"uniqueItems": True}, "b": {"uniqueItems": False}}}).faults({"a": items, "b": items})
    assert [where for where, _ in found] == ([] if unique else ["a"])
    assert unique or found[0][1].endswith("has non-unique elements")


def test_an_endless_schema_refuses():
    """A schema that refers to itself without end is a refusal, not a crash."""
    assert "refers to itself" in SchemaCheck({"properties": {"a": {"$ref": "#/properties/a"}}}).faults({"a": 1})[0][1]


def test_faults_are_in_the_words_of_json():
    """No word of Python's reaches the model: null is not None, true is not True."""
    check = SchemaCheck(
        {
            "properties": {
                "a": {"type": ["string", "null"]},
                "b": {"enum": [None, True, "x"]},
                "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "d": {"const": True},
                "e": {"minItems": 1},
            },
            "additionalProperties": False,
        }
    )
    assert check.faults({"a": True, "b": 1, "c": "x", "d": None, "e": [], "f": 1}) == [
        ("a", "must be a string or null, not a boolean"),
        ("b", 'must be null, true or "x"'),
        ("c", "must be an integer or null, not a string"),
        ("d", "must be true"),
        ("e", "[] should be non-empty"),
        ("f", "is not allowed"),
    ]


def test_no_schema_takes_long():
    """A pattern that backtracks, references that double, and thousands of objects that have to be unique end at once."""
    doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {}}
    started = time.process_time()
    assert SchemaCheck({"properties": {"a": {"pattern": "^(a+)+$"}}}).faults({"a": "a" * 50 + "!"})[0][0] == "a"
    assert "too often" in SchemaCheck({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": doubling}).faults({"a": 1})[0][1]
    assert SchemaCheck({"properties": {"a": {"uniqueItems": True}}}).faults({"a": [{"n": n} for n in range(5000)]}) == []
    foreign = {"properties": {"a": {"pattern": "^(?=a)(a+)+$"}, "b": {"pattern": r"^\p{L}+$"}, "c": {"pattern": "(?<x>"}}}
    assert SchemaCheck(foreign, is_foreign=True).faults({"a": "a" * 50 + "!", "b": "é", "c": ""}) == []
    with pytest.raises(UnusableSchemaError) as caught:
        SchemaCheck({"patternProperties": {"^(a+)+$": {}}}, is_foreign=True)
    assert caught.value.is_valid
    assert time.process_time() - started < 3


def test_a_pattern_of_the_users_own_may_look_around():
    """What RE2 cannot read is Python's matter."""
    check = SchemaCheck({"properties": {"a": {"pattern": "^(?!x)"}}})
    assert [bool(check.faults({"a": text})) for text in ("x", "y")] == [True, False]
