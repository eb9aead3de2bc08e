from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holodeck.config.substitute import expand, substitute
from holodeck.errors import AgentFileError
from holodeck.lib.strict_yaml import parse_yaml

if TYPE_CHECKING:
    from holodeck.lib.document import Document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "one"),
        ("x${A}y${A}z", "xoneyonez"),
        ("${NO:-}", ""),
        ("${NO:-a:-b $ { 'x' # y}", "a:-b $ { 'x' # y"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$A costs 5$", "$A costs 5$"),
        ("${MULTI:-a\nb}", "a\nb"),
        ("${NESTED}", "${A}"),
    ],
)
def test_references_are_replaced_once(text: str, value: str) -> None:
    """Variables, defaults and the escape mean what a shell user expects, and what is put in is not read again."""
    assert expand(text, {"A": "one", "EMPTY": "", "NESTED": "${A}"}) == value


@pytest.mark.parametrize("text", ["${", "${A", "${}", "${1A}", "${A-x}", "${A B}", "${A:x}", "${:-x}"])
def test_malformed_references_are_refused(text: str) -> None:
    """What looks like a reference and is none says how to write one, and how to write a plain dollar."""
    with pytest.raises(ValueError, match=r"write \$\{VAR\} or \$\{VAR:-default\}, or \$\$"):
        expand(text, {"A": "one"})


def test_a_variable_that_is_not_text_is_refused() -> None:
    """Bytes of the environment that are not UTF-8 get no further."""
    with pytest.raises(ValueError, match="A is not valid UTF-8"):
        expand("${A}", {"A": "\udcff"})


def parsed(text: str) -> Document:
    """``text`` as a document."""
    return parse_yaml(text, "a.yaml")


def test_only_values_are_replaced() -> None:
    """Keys and comments keep their dollars."""
    document = substitute(parsed("a: ['${A}', {b: '${A}'}] # ${UNSET}\n'${A}': 1\n"), {"A": "one"})
    assert document.data == {"a": ["one", {"b": "one"}], "${A}": 1}


def test_what_is_put_in_stays_text() -> None:
    """A substituted value is never read as YAML, whatever it looks like."""
    document = substitute(parsed("a: ${A}\nb: ${B}\n"), {"A": "[1, 2]", "B": "x: y # z"})
    assert document.data == {"a": "[1, 2]", "b": "x: y # z"}


def test_an_unset_variable_names_file_line_key_and_fix() -> None:
    """The error for a variable that is not set says all there is to know."""
    with pytest.raises(AgentFileError) as caught:
        substitute(parsed("a: 1\ntools:\n  - url: ${URL}\n"), {})
    assert str(caught.value) == "a.yaml:3: tools[0].url: the environment variable URL is not set: set it, or write ${URL:-default}"


@pytest.mark.parametrize("number", [".nan", "-.inf", "1e999", "18446744073709551616", "9" * 5000])
def test_numbers_that_nothing_can_carry_are_refused(number: str) -> None:
    """NaN, infinity and integers over 64 bits are refused wherever they stand, with their line."""
    with pytest.raises(AgentFileError, match="quote it if it is text") as caught:
        substitute(parsed(f"a: 1\nparameters: {{x: {{default: {number}}}}}\n"), {})
    assert (caught.value.line, caught.value.key) == (2, "parameters.x.default")


def test_a_secret_number_is_not_shown() -> None:
    """Even a refused number does not show what stands under a secret key."""
    with pytest.raises(AgentFileError) as caught:
        substitute(parsed("headers: {x: 123456789123456789123456789}\n"), {})
    assert "123456789" not in str(caught.value)


@pytest.mark.parametrize("text", ["${NO:-${A}}", "${A:-${A}}", "${NO:-x${A}y}"])
def test_a_default_holds_no_reference(text: str) -> None:
    """It would end at the first brace: that is said, not done."""
    with pytest.raises(ValueError, match=r"the default of \w+ cannot hold another"):
        expand(text, {"A": "one"})
