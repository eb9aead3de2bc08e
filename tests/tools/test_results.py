"""What tools return and raise, as text."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import itertools
import json
import types
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from holodeck.errors import ToolError
from holodeck.tools.results import as_text, failure


class Colour(str, enum.Enum):
    RED = "red"


class Order(BaseModel):
    number: int
    at: dt.date


@dataclass
class Point:
    x: float
    labels: set[str]


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain \x1b[2J text", "plain \x1b[2J text"),
        (None, ""),
        ("a\ud83eb", "a\ufffdb"),
        (Colour.RED, "red"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        (True, "true"),
        (2**70, "1180591620717411303424"),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        (Order(number=1, at=dt.date(2026, 1, 2)), '{"number":1,"at":"2026-01-02"}'),
        (Point(1.5, {"a"}), '{"x":1.5,"labels":["a"]}'),
        (decimal.Decimal("1.10"), '"1.10"'),
        ((i for i in range(3)), "[0,1,2]"),
    ],
)
def test_values_become_text(value, text):
    """Text stays, None is nothing, bytes are read as UTF-8, the rest is JSON."""
    assert as_text(value) == text


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        {"a": b"\xff"},
        ["\ud83e"],
        {"\ud83e": {1, 2}},
        [Hostile(), "\ud83e"],
        {(1, 2): b"\xff"},
        Hostile(),
        object,
    ],
)
def test_anything_becomes_json_that_utf8_can_carry(value):
    """No value breaks the call, whatever JSON or UTF-8 think of it."""
    json.loads(as_text(value).encode("utf-8"), parse_constant=pytest.fail)


def test_neighbours_of_a_bad_value_survive():
    """Bytes that are not UTF-8 do not take the values beside them along."""
    assert json.loads(as_text({"bad": b"\xff", "at": dt.date(2026, 1, 2), "n": [1.5]})) == {
        "bad": "\ufffd",
        "at": "2026-01-02",
        "n": [1.5],
    }


def test_a_circle_becomes_text():
    """A list that holds itself is shown as Python shows it."""
    circle: list = [1]
    circle.append(circle)
    assert as_text(circle) == "[1, [...]]"


@pytest.mark.parametrize(
    ("exc", "message", "kind"),
    [
        (ValueError("bad \ud83e"), "ValueError: bad \ufffd", "ValueError"),
        (KeyError(), "KeyError", "KeyError"),
        (ValueError(Hostile()), "ValueError: <ValueError>", "ValueError"),
        (SystemExit(3), "SystemExit: 3", "SystemExit"),
    ],
)
def test_exceptions_become_tool_errors(exc, message, kind):
    """A failure carries the exception's class as its low-cardinality type."""
    error = failure(exc)
    assert (error.message, error.error_type) == (message, kind)


class Leaving:
    def __str__(self):
        raise SystemExit(3)


def test_a_text_that_ends_the_program_does_not():
    """A ``__str__`` that raises SystemExit is as good as one that raises anything else."""
    assert as_text([Leaving(), 1]) == '["<Leaving>",1]'
    assert failure(ValueError(Leaving())).message == "ValueError: <ValueError>"


def test_the_type_of_an_error_is_short_and_plain():
    """The class's name is on spans: no controls, no lines, no length; the message has a limit, too."""
    error = failure(type("Bad\n\x1b[31mName" + "x" * 1000, (Exception,), {})("y" * 1_000_000))
    assert error.error_type.startswith("Bad Namexxx")
    assert len(error.error_type) <= 100
    assert len(error.message) < 51_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (collections.deque([1]), "[1]"),
        (range(3), "[0,1,2]"),
        ({"a": {1: 2}.values()}, '{"a":[2]}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        (map(str, [1]), '["1"]'),
        ({"a": (n for n in range(2))}, '{"a":[0,1]}'),
    ],
)
def test_collections_of_every_kind_are_lists(value, text):
    """Whatever holds items is a list of them, and whatever holds keys a mapping."""
    assert as_text(value) == text


def failing():
    """A generator that breaks off."""
    yield 1
    raise ValueError("halfway")


def test_a_generator_that_fails_has_failed():
    """What it gave before is not passed off as the whole result, wherever it stands."""
    with pytest.raises(ValueError, match="halfway"):
        as_text(failing())
    with pytest.raises(ValueError, match="halfway"):
        as_text({"rows": failing()})
    assert as_text([(n for n in range(2)), b"\xff"]) == '[[0, 1], "\ufffd"]'


def test_a_generator_without_end_is_stopped():
    """It would fill the memory, in a thread that nobody can stop."""
    with pytest.raises(ToolError, match="more than 100,000 items"):
        as_text(itertools.count())
    with pytest.raises(ToolError, match="more than 100,000 items"):
        as_text({"rows": [(n for n in itertools.count())]})
