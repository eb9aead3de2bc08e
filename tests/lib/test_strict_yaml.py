from __future__ import annotations

import math
import time

import pytest
import yaml

from holodeck.errors import AgentFileError
from holodeck.lib.strict_yaml import MAX_ALIASED_NODES, MAX_DEPTH, core_scalar, parse_yaml


@pytest.fixture(params=["libyaml", "pure Python"])
def loader(request: pytest.FixtureRequest) -> type:
    """Both parsers of PyYAML."""
    if request.param == "libyaml":
        return getattr(yaml, "CSafeLoader", None) or pytest.skip("PyYAML was built without libyaml")
    return yaml.SafeLoader


def refused(text: str, loader: type) -> AgentFileError:
    """The one-line error about ``text``."""
    with pytest.raises(AgentFileError) as caught:
        parse_yaml(text, "a.yaml", loader=loader)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "text", ["no", "No", "on", "off", "yes", "y", "12:30", "0123", "1_000", "2024-01-31", "0b1", "=", "1.2.3", "-", "nan", "inf"]
)
def test_what_yaml_1_1_turned_into_something_else_stays_text(text: str) -> None:
    """Scalars that only YAML 1.1 gives a meaning are text."""
    assert core_scalar(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-12", -12), ("+3", 3),
        ("0o17", 15), ("0x1F", 31), ("1.10", 1.1), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("-.inf", -math.inf), ("+.INF", math.inf),
    ],
)  # fmt: skip
def test_the_core_schema_reads_numbers_switches_and_nothing(text: str, value: object) -> None:
    """Scalars of the YAML 1.2 core schema have their value and its type."""
    assert core_scalar(text) == value
    assert type(core_scalar(text)) is type(value)


def test_not_a_number_is_recognised() -> None:
    """``.nan`` is a float, so that it can be refused as one."""
    assert math.isnan(core_scalar(".nan"))


def test_a_number_with_thousands_of_digits_is_no_number() -> None:
    """A number too long for Python becomes infinite, which every field refuses, in no time."""
    assert core_scalar("9" * 100_000) == math.inf


def test_every_key_and_entry_knows_its_line(loader: type) -> None:
    """Positions are kept for keys and list entries at every level."""
    document = parse_yaml("name: x\n# comment\ntools:\n  - name: a\n    args: [p,\n      q]\n", "a.yaml", loader=loader)
    assert document.data == {"name": "x", "tools": [{"name": "a", "args": ["p", "q"]}]}
    assert document.lines[("tools",)] == 3
    assert document.lines[("tools", 0, "args")] == 5
    assert document.lines[("tools", 0, "args", 1)] == 6


def test_quoted_scalars_are_text(loader: type) -> None:
    """Quoting keeps every scalar as it is written."""
    assert parse_yaml("a: \"1.10\"\nb: 'true'\nc: |\n  12\n", "a.yaml", loader=loader).data == {"a": "1.10", "b": "true", "c": "12\n"}


def test_duplicate_keys_are_refused_with_both_lines(loader: type) -> None:
    """A key that stands twice names both lines, also deep inside."""
    error = refused("name: a\nmodel:\n  name: x\n  provider: y\n  name: z\n", loader)
    assert (error.line, error.key) == (5, "model.name")
    assert "twice, in lines 3 and 5" in str(error)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "the file is empty"),
        ("# only a comment\n", None, "the file is empty"),
        ("- a\n- b\n", 1, "must be a mapping"),
        ("just text\n", 1, "must be a mapping"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: !!python/object:os.system x\n", 1, "the tag"),
        ("a: !!str 1.10\n", 1, "the tag"),
        ("a: !custom {b: 1}\n", 1, "the tag"),
        ("base: &b {x: 1}\na:\n  <<: *b\n", 3, "merge keys"),
        ("a: *nowhere\n", 1, "*nowhere"),
        ("a: &a [*a]\n", 1, "*a"),
        ("a: &a {b: {c: *a}}\n", 1, "*a"),
        ("? [a, b]\n: c\n", 1, "a key must be plain text"),
        ("a:\n\tb: 1\n", 2, "a tab"),
        ("a: b: c\n", 1, "quote a value that has ': ' in it"),
        ("a: @home\n", 1, "quote it"),
        ("a: 'open\n", None, "not valid YAML"),
        ("a:\n  - [1,\n  2\nb: 3\n", None, "not valid YAML"),
        ("m: {api_key: ${OPENAI_API_KEY}}\n", 1, 'has to be quoted: write "${VAR}"'),
        ("m:\n  args: [a, ${HOME}]\n", 2, 'has to be quoted: write "${VAR}"'),
    ],
)  # fmt: skip
def test_what_is_not_a_plain_agent_file_is_one_error_with_its_line(text: str, line: int | None, words: str, loader: type) -> None:
    """Each way of not being strict YAML is one error on one line that says where and why."""
    error = refused(text, loader)
    assert words in str(error)
    assert line is None or error.line == line


def test_a_small_alias_is_its_value_with_positions_of_its_own(loader: type) -> None:
    """Aliases work where they are few; what they stand for has key positions where it is used."""
    document = parse_yaml("a: &m {x: 1}\nb: *m\nc: &t text\nd: [*t, *t]\n", "a.yaml", loader=loader)
    assert document.data == {"a": {"x": 1}, "b": {"x": 1}, "c": "text", "d": ["text", "text"]}
    assert document.data["a"] is not document.data["b"]
    assert document.lines[("b",)] == 2
    assert document.lines[("b", "x")] == 1


def test_an_alias_bomb_is_refused_fast(loader: type) -> None:
    """Aliases that multiply are refused before they are laid out."""
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))
    started = time.process_time()
    error = refused(bomb, loader)
    assert f"more than {MAX_ALIASED_NODES:,} values" in str(error)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- "])
def test_runaway_nesting_is_refused_fast(bracket: str, loader: type) -> None:
    """Twenty thousand levels are one error, without RecursionError and without waiting."""
    started = time.process_time()
    error = refused("x:\n  " + bracket * 20_000, loader)
    assert "nested deeper than" in str(error)
    assert time.process_time() - started < 1


def test_aliases_cannot_nest_deeper_than_brackets(loader: type) -> None:
    """The depth limit counts what aliases stand for."""
    chain = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, MAX_DEPTH + 5))
    error = refused(chain, loader)
    assert "deeper" in str(error) or "values" in str(error)


def test_nesting_up_to_the_limit_is_read(loader: type) -> None:
    """The deepest allowed nesting is allowed."""
    inner = MAX_DEPTH - 1
    assert parse_yaml("a: " + "[" * inner + "]" * inner, "a.yaml", loader=loader).data["a"] is not None
