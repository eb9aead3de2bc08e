"""Python signatures as JSON Schemas."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Self, TypedDict

import pytest
from pydantic import BaseModel, Field, ValidationError

from holodeck.tools.signature import Docs, Signature, SignatureError, faults_of


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Item(BaseModel):
    title: str
    count: int = 1


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """What the model is offered."""
    return Signature(function).schema(Docs.of(function))


def order(  # noqa: D417 - a docstring that does not describe everything
    self: int,
    kernel: list[str],
    item: Item,
    size: Size = Size.SMALL,
    when: Optional[dt.date] = None,  # noqa: UP045 - both ways to write it have to work
    kind: Literal["a", "b"] = "a",
    *,
    settings: dict[str, int] | None = None,
    ratio: Annotated[float, Field(ge=0, description="From the annotation.")] = 0.5,
) -> None:
    """Orders something.

    At once.

    Args:
        self: Who.
        kernel: Of the
            matter.
        ratio: From the docstring.

    Returns:
        Nothing.
    """


def test_a_signature_becomes_a_schema():
    """Names, types, defaults, and descriptions from annotation or docstring are what the model is offered."""
    schema = schema_of(order)
    assert schema["required"] == ["self", "kernel", "item"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "self": {"type": "integer", "description": "Who."},
        "kernel": {"type": "array", "items": {"type": "string"}, "description": "Of the\nmatter."},
        "item": {"$ref": "#/$defs/Item"},
        "size": {"$ref": "#/$defs/Size", "default": "small"},
        "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"], "type": "string", "default": "a"},
        "settings": {"anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "null"}], "default": None},
        "ratio": {"type": "number", "minimum": 0, "description": "From the annotation.", "default": 0.5},
    }
    assert schema["$defs"]["Item"]["properties"]["title"] == {"type": "string"}


def test_arguments_arrive_as_annotated():
    """Enums, dates and models are what the function gets; what is absent stays absent."""
    text = json.dumps({"self": "3", "kernel": [], "item": {"title": "x"}, "size": "large", "when": "2026-01-02"})
    assert Signature(order).convert(text) == {
        "self": 3,
        "kernel": [],
        "item": Item(title="x"),
        "size": Size.LARGE,
        "when": dt.date(2026, 1, 2),
    }


def test_faults_of_arguments_are_named():
    """Missing, unknown and wrongly typed arguments are told apart, each with its place."""
    with pytest.raises(ValidationError) as caught:
        Signature(order).convert(json.dumps(arguments := {"self": "abc", "item": {}, "extra": 1}))
    assert faults_of(caught.value, arguments) == [
        ("self", "Input should be a valid integer, unable to parse string as an integer"),
        ("kernel", "is missing"),
        ("item.title", "is missing"),
        ("extra", "is not a parameter"),
    ]


def test_positional_only_parameters_are_passed_by_position():
    """A gap before a positional-only argument is filled with the default."""

    def function(a: int = 1, b: int = 2, /, c: int = 3) -> None: ...

    signature = Signature(function)
    assert signature.bind({"b": 5, "c": 6}) == ([1, 5], {"c": 6})
    assert signature.bind({"a": 5}) == ([5], {})
    assert signature.bind({}) == ([], {})


def test_what_a_partial_binds_is_not_offered():
    """A bound argument, a secret perhaps, is neither shown nor can it be changed; the docstring is the function's."""

    def function(city: str, key: str, days: int = 1) -> None:
        """Weather."""

    bound = functools.partial(function, key="secret")
    assert list(schema_of(bound)["properties"]) == ["city", "days"]
    assert "secret" not in json.dumps(schema_of(bound))
    assert Docs.of(bound).description == "Weather."


def test_instances_and_decorated_functions_are_read_through():
    """``__call__`` of an instance, and what ``functools.wraps`` wraps, say the parameters."""

    class Tool:
        """About the class."""

        def __call__(self, city: str) -> None: ...

    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @decorated
    def wrapped(city: str) -> None:
        """About the function."""

    for function, words in ((Tool(), "About the class."), (wrapped, "About the function.")):
        assert list(schema_of(function)["properties"]) == ["city"]
        assert Docs.of(function).description == words


def test_unannotated_parameters_take_anything_or_the_type_of_their_default():
    """Without annotations a plain default tells the type."""

    def function(anything, count=3, flag=False, other=None): ...

    properties = schema_of(function)["properties"]
    assert properties["anything"] == {}
    assert (properties["count"]["type"], properties["flag"]["type"]) == ("integer", "boolean")
    assert "type" not in properties["other"]


def test_a_pydantic_field_as_default_is_filled_in():
    """``x: int = Field(5)`` passes 5 to the function, not the field itself."""

    def function(x: int = Field(5, ge=0, description="d"), y: Annotated[str, Field(max_length=3)] = Field("z")) -> None: ...

    schema = schema_of(function)
    assert schema["properties"]["x"] == {"type": "integer", "minimum": 0, "default": 5, "description": "d"}
    assert "required" not in schema
    assert Signature(function).convert("{}") == {"x": 5, "y": "z"}


class Client:
    """Nothing that JSON can carry."""


def test_a_parameter_that_json_cannot_express_needs_a_default():
    """With a default it is not offered; without one the message names it."""

    def good(city: str, client: Client = Client()) -> None: ...  # noqa: B008 - the point

    def bad(client: Client) -> None: ...

    assert list(schema_of(good)["properties"]) == ["city"]
    with pytest.raises(SignatureError, match="parameter 'client'"):
        Signature(bad)
    assert Signature(bad, lenient=True).convert('{"client": 1}') == {"client": 1}


def test_annotations_that_cannot_be_evaluated_are_a_fault():
    """An unknown name in an annotation is told, not ignored."""

    def function(x: Unknown) -> None: ...  # noqa: F821 - the point

    with pytest.raises(SignatureError, match=r"NameError.*Unknown"):
        Signature(function)


def test_starred_parameters_are_not_offered():
    """``*args`` and ``**kwargs`` are nothing that a model can fill; the latter is told by ``open``."""

    def function(a: int, *args: int, **kwargs: int) -> None: ...

    signature = Signature(function)
    assert signature.names == ["a"]
    assert signature.open
    with pytest.raises(ValidationError):
        signature.convert('{"a": 1, "kwargs": 2}')


@pytest.mark.parametrize(
    "docstring",
    [
        "Does it.\n\nArgs:\n    a: The a.\n",
        "Does it.\n\nParameters\n----------\na : int\n    The a.\n",
        "Does it.\n\n:param a: The a.\n:returns: nothing\n",
    ],
)
def test_docstring_styles(docstring):
    """Google, NumPy and reST docstrings describe parameters; their sections are not part of the description."""

    def function(a: int) -> None: ...

    function.__doc__ = docstring
    assert Docs.of(function) == Docs("Does it.", {"a": "The a."})


def test_a_default_of_none_takes_none():
    """``x: str = None`` is as good as ``x: str | None = None``; what is not annotated takes anything anyway."""

    def function(a: str = None, b=None, c: list[int] = None): ...  # noqa: RUF013 - as people write it

    properties = schema_of(function)["properties"]
    assert properties["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert properties["b"] == {"default": None}
    assert Signature(function).convert('{"a": null, "c": null}') == {"a": None, "c": None}


def test_what_a_function_returns_may_be_unknown():
    """Only parameters have to be known, and a parameter that is not is named with its annotation."""

    def function(a: int) -> Unheard: ...  # noqa: F821 - that is the point

    def other(a: Unheard): ...  # noqa: F821 - as above

    assert schema_of(function)["required"] == ["a"]
    with pytest.raises(SignatureError, match="parameter 'a': its annotation 'Unheard' cannot be evaluated"):
        Signature(other)
    assert Signature(other, lenient=True).names == ["a"]


def test_forms_that_json_has_not_are_refused_at_load():
    """A class, the function itself, and a bound that is no number are refused; a TypedDict of old says where to import it."""

    def takes_class(a: type[int]): ...

    def takes_itself(a: Self): ...

    def takes_nan(a: Annotated[float, Field(le=float("nan"))]): ...

    def takes_typed(a: Old): ...

    for function in (takes_class, takes_itself, takes_nan):
        with pytest.raises(SignatureError, match="parameter 'a': JSON has no form"):
            Signature(function)
    if sys.version_info < (3, 12):
        with pytest.raises(SignatureError, match="imported from typing_extensions"):
            Signature(takes_typed)


class Old(TypedDict):
    a: int


def test_schemas_can_be_sent():
    """A default that JSON or UTF-8 cannot carry does not spoil the request that offers the tool."""

    def function(a: float = float("nan"), b: str = "\ud83e", c: float = float("inf")): ...

    assert schema_of(function)["properties"] == {
        "a": {"type": "number"},
        "b": {"type": "string", "default": "\ufffd"},
        "c": {"type": "number"},
    }


def test_a_parameter_with_an_alias_is_offered_under_its_name():
    """The model fills what Python calls it."""

    def function(a: Annotated[int, Field(alias="id")]): ...

    assert list(schema_of(function)["properties"]) == ["a"]
    assert Signature(function).convert('{"a": 1}') == {"a": 1}
    with pytest.raises(ValidationError) as caught:
        Signature(function).convert("{}")
    assert faults_of(caught.value, {}) == [("a", "is missing")]


def test_faults_in_unions_are_told_once():
    """A value that fits no member is one fault at its own place, whatever pydantic calls the members."""

    def function(a: int | list[int] = 1, b: Item | None = None): ...

    arguments = {"a": "x", "b": {"count": "y"}}
    with pytest.raises(ValidationError) as caught:
        Signature(function).convert(json.dumps(arguments))
    found = dict(faults_of(caught.value, arguments))
    assert set(found) == {"a", "b.title", "b.count"}
    assert "valid integer" in found["a"]
    assert ", or Input should be a valid array" in found["a"]


def test_docstrings_are_the_users_own():
    """What a base class says of itself, and the signature that a dataclass gets as its docstring, are no description."""

    @dataclass
    class Ticket:
        number: int

    assert Docs.of(Ticket).description == Docs.of(Item).description == ""
