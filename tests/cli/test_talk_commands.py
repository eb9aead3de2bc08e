"""How the arguments of /call are read."""

from __future__ import annotations

import pytest

from holodeck.cli.commands.talk import parse_call
from holodeck.models.tool_execution import ToolSpec

_SPEC = ToolSpec(name="t", parameters={"properties": {"text": {"type": "string"}, "n": {"type": "integer"}, "any": True}})


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("", {}),
        ("text=12 n=12", {"text": "12", "n": 12}),
        ('text="a b=c" any=[1,2]', {"text": "a b=c", "any": [1, 2]}),
        ("any=plain other=true", {"any": "plain", "other": True}),
        ("text=", {"text": ""}),
        ('{"n": 1}', {"n": 1}),
        ('any={"a": [1, "x y"]} other=["b"] n=3', {"any": {"a": [1, "x y"]}, "other": ["b"], "n": 3}),
        ('text={"a": 1} n="2"', {"text": '{"a": 1}', "n": 2}),
        ("text=C:\\temp\\new any='say \"hi\"'", {"text": r"C:\temp\new", "any": 'say "hi"'}),
        (r'text="say \"hi\" to C:\temp" any=a"b c"d', {"text": r'say "hi" to C:\temp', "any": "ab cd"}),
        ("any=[1,2 text='x\ny'", {"any": "[1,2", "text": "x\ny"}),
    ],
)
def test_arguments(typed, arguments):
    """Text where the tool wants text, JSON elsewhere, or a whole object."""
    assert parse_call(_SPEC, typed) == arguments


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("word", "key=value"),
        ("=1", "key=value"),
        ('a="b', "cannot be read"),
        ("a=it's", "cannot be read"),
        ("a=1 b=2 a=3", "a is given twice"),
        ("{a", "not JSON"),
        ("{}x", "not JSON"),
        ("a=" + "[" * 5000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read(typed, words):
    """The message says how to write it."""
    with pytest.raises(ValueError, match=words):
        parse_call(_SPEC, typed)
