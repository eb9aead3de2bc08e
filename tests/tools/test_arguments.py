"""From what a model sends to arguments."""

from __future__ import annotations

import pytest

from holodeck.errors import ToolRefused
from holodeck.tools.arguments import parse_arguments, refusal


@pytest.mark.parametrize("nothing", [None, "", "  \n", "{}", {}])
def test_no_arguments_are_an_empty_object(nothing):
    """Models send nothing, blanks or an empty object for a tool without parameters; all mean the same."""
    assert parse_arguments(nothing) == {}


def test_json_and_mapping_mean_the_same():
    """Arguments may come as JSON text or parsed."""
    assert parse_arguments('{"a": [1, {"b": null}]}') == parse_arguments({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}


@pytest.mark.parametrize("text", ["{", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000, '{"a": 1' + "0" * 5000 + "}"])
def test_what_is_not_json_is_refused(text):
    """Malformed, unbounded or endless JSON is refused with a reason, whatever the parser makes of it."""
    with pytest.raises(ToolRefused, match=r"not valid JSON|nested too deeply"):
        parse_arguments(text)


@pytest.mark.parametrize(
    ("text", "named"), [("[]", "an array"), ('"x"', "a string"), ("1", "a number"), ("null", "null"), ("true", "a boolean")]
)
def test_what_is_not_an_object_is_refused(text, named):
    """The refusal says what came instead of an object."""
    with pytest.raises(ToolRefused, match=f"must be a JSON object.*not {named}"):
        parse_arguments(text)


def test_mapping_with_python_values_is_refused():
    """A parsed mapping has to be JSON all the same."""
    with pytest.raises(ToolRefused, match="not JSON serializable"):
        parse_arguments({"a": object()})


def test_lone_surrogates_are_replaced():
    """A lone surrogate in a string arrives as U+FFFD, because the tool could not encode it."""
    assert parse_arguments(r'{"\ud83e": ["x\ud83ey"]}') == {"\ufffd": ["x\ufffdy"]}


def test_refusal_names_faults_and_parameters():
    """The model is told what was wrong and what there is, in a bounded text."""
    error = refusal("t", [("a.0", "no\ud83e"), ("", "x" * 1000), *[("b", "bad")] * 9], ["a", "b"])
    assert error.message.startswith("The arguments do not fit t: a.0: no\ufffd; xxx")
    assert error.message.endswith("; and 6 more. Parameters: a, b.")
    assert len(error.message) < 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" stands twice'),
        ('{"a": 1' + "0" * 5000 + "}", "a number has 5,001 digits, and at most 1,000 are taken"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"a": ' + "[" * 150 + "]" * 150 + "}", "nested too deeply"),
    ],
)
def test_refusals_are_in_words_for_a_model(text, words):
    """What is wrong is said without a word of Python's."""
    with pytest.raises(ToolRefused) as caught:
        parse_arguments(text)
    assert words in caught.value.message
    assert "sys." not in caught.value.message


@pytest.mark.parametrize("text", ['"{\\"a\\": 1}"', '\ufeff{"a": 1}'])
def test_what_is_plainly_an_object_is_taken(text):
    """An object that was encoded twice, or begins with a byte order mark, is the object."""
    assert parse_arguments(text) == {"a": 1}
