from __future__ import annotations

import pytest

from holodeck.config.environment import Environment, Precedence, split_pairs
from holodeck.errors import SettingError


def test_the_first_variable_that_is_set_counts() -> None:
    """Names are tried in order, empty and blank ones are unset, white space around a value is dropped."""
    environment = Environment({"A": " ", "B": "", "C": " x\n", "D": "y"})
    assert environment.text("A", "B", "C", "D") == ("env C", "x")
    assert environment.text("A", "B") == ("env A", None)


def test_bytes_that_are_no_text_become_exportable() -> None:
    """A lone surrogate of the environment cannot reach an exporter."""
    assert Environment({"A": "x\udcff"}).text("A") == ("env A", "x\ufffd")


@pytest.mark.parametrize("value", ["-1", "0", "1.5", "x", "٣", "1e3", "9" * 30, "0x10"])
def test_a_whole_number_is_nothing_else(value: str) -> None:
    """Garbage is refused, naming variable and value."""
    with pytest.raises(SettingError, match=rf"^N: '{value}' is not a whole number of at least 1"):
        Environment({"N": value}).integer("N")


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "1.01", "x"])
def test_a_number_is_finite_and_in_range(value: str) -> None:
    """NaN, infinity and values out of range are refused."""
    with pytest.raises(SettingError, match=r"^N: .* is not a number from 0 to 1"):
        Environment({"N": value}).number("N", low=0, high=1)


def test_choices_are_found_in_any_case() -> None:
    """Enumerations are case-insensitive; what is none of them lists all."""
    assert Environment({"C": "OTLP"}).choice("C", known=("otlp", "none")) == ("env C", "otlp")
    with pytest.raises(SettingError, match=r"^C: 'zipkin' is unknown: use otlp or none"):
        Environment({"C": "zipkin"}).choice("C", known=("otlp", "none"))


def test_what_others_support_is_said() -> None:
    """A value of the specification that is not supported here is told from a typing error."""
    with pytest.raises(SettingError, match=r"^C: 'Zipkin' is not supported by HoloDeck: use otlp or none"):
        Environment({"C": "Zipkin"}).choice("C", known=("otlp", "none"), elsewhere=("zipkin",))


def test_where_nothing_depends_on_it_garbage_is_a_line() -> None:
    """The value counts as unset, and each complaint is made once."""
    doubts: list[str] = []
    environment = Environment({"N": "x", "F": "nan", "C": "zipkin", "P": "a"}).doubting(doubts)
    assert [environment.integer("N"), environment.integer("N")] == [("env N", None)] * 2
    assert environment.number("F", low=0) == ("env F", None)
    assert environment.choice("C", known=("otlp",)) == ("env C", None)
    assert environment.pairs("P") == ("env P", None)
    assert [line.partition(":")[0] for line in doubts] == ["N", "F", "C", "P"]
    assert all(line.endswith("(now it counts as unset)") for line in doubts)


def test_a_whole_number_may_have_an_upper_limit() -> None:
    """The limit itself is allowed, what is above it is not."""
    assert Environment({"N": "1000"}).integer("N", high=1000) == ("env N", 1000)
    with pytest.raises(SettingError, match=r"^N: '1001' is not a whole number from 1 to 1,000"):
        Environment({"N": "1001"}).integer("N", high=1000)


def test_pairs_are_percent_decoded() -> None:
    """Values are decoded, ``+`` stays, white space is dropped, ``=`` may be in a value, empty entries do not count."""
    assert split_pairs("env H", " a = b%20c , d=e+f=,, g=%C3%A9,") == [("a", "b c"), ("d", "e+f="), ("g", "é")]


@pytest.mark.parametrize("text", ["secret", "a=b,secret", "=secret"])
def test_an_entry_that_is_no_pair_is_not_shown(text: str) -> None:
    """The message counts entries, because what stands there may be secret."""
    with pytest.raises(SettingError, match=r"^H: entry [12] is not name=value") as caught:
        split_pairs("env H", text)
    assert "secret" not in str(caught.value)


def test_precedence_keeps_who_decided() -> None:
    """The first that says something wins, ``False`` and 0 included, and its name is kept."""
    precedence = Precedence()
    assert precedence.pick("a", ("flag", None), ("env A", False), ("agent file", True), default=True) is False
    assert precedence.pick("b", ("flag", None), default=3) == 3
    assert precedence.sources == {"a": "env A", "b": "default"}
