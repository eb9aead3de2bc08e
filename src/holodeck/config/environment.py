"""Typed reading of environment variables, and the one place where precedence is applied."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from holodeck.errors import SettingError
from holodeck.lib.problems import choices, one_line
from holodeck.lib.validation import exportable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Environment", "Named", "Precedence", "setting_error", "split_pairs"]

T = TypeVar("T")
Named = tuple[str, T | None]
"""Where a value may come from, and the value; None if it is not said there."""


class Environment:
    """Environment variables; one that is empty counts as unset (OpenTelemetry specification, *Parsing empty value*).

    Every method takes names in order of precedence and returns the source (``env NAME``) of the first that is set, with its value. A value
    that means nothing is an error where it matters: a typing error must not lose data silently. Where it does not, it counts as unset.

    Args:
        variables: The environment.
        doubts: Gets one line for each value that means nothing, instead of an error.
    """

    def __init__(self, variables: Mapping[str, str], doubts: list[str] | None = None) -> None:
        self._variables, self._doubts = variables, doubts

    def doubting(self, doubts: list[str]) -> Environment:
        """The same variables, none of which matters enough for an error: ``doubts`` gets a line instead."""
        return Environment(self._variables, doubts)

    def refuse(self, source: str, message: str) -> None:
        """The variable in ``source`` means nothing: from here on it counts as unset.

        Raises:
            SettingError: That matters.
        """
        error = setting_error(source, message)
        if self._doubts is None:
            raise error
        line = f"{error.message} (now it counts as unset)"
        if line not in self._doubts:
            self._doubts.append(line)

    def is_there(self, name: str) -> bool:
        """Whether there is such a variable, an empty one included."""
        return name in self._variables

    def text(self, *names: str) -> Named[str]:
        """The text without white space around it."""
        for name in names:
            if value := exportable(self._variables.get(name, "")).strip():
                return f"env {name}", value
        return f"env {names[0]}", None

    def choice(self, *names: str, known: Sequence[str], elsewhere: Sequence[str] = ()) -> Named[str]:
        """One of ``known``, in any case; ``elsewhere`` are values of the specification that HoloDeck does not support."""
        source, value = self.text(*names)
        word = None if value is None else value.lower()
        if value is None or word in known:
            return source, word
        self.refuse(source, f"{_shown(value)} is {'not supported by HoloDeck' if word in elsewhere else 'unknown'}: use {choices(known)}")
        return source, None

    def pairs(self, *names: str) -> Named[list[tuple[str, str]]]:
        """Pairs, as :func:`split_pairs` reads them; all or none."""
        source, value = self.text(*names)
        try:
            return source, None if value is None else split_pairs(source, value)
        except SettingError as error:
            self.refuse(source, error.message.removeprefix(f"{source.removeprefix('env ')}: "))
            return source, None

    def integer(self, *names: str, low: int = 1, high: int | None = None) -> Named[int]:
        """A whole number of at least ``low`` and at most ``high``."""
        source, value = self.text(*names)
        if value is None:
            return source, None
        is_whole = value.isascii() and value.isdigit() and len(value) <= 18
        if not is_whole or int(value) < low or (high is not None and int(value) > high):
            wanted = f"of at least {low}" if high is None else f"from {low} to {high:,}"
            self.refuse(source, f"{_shown(value)} is not a whole number {wanted}")
            return source, None
        return source, int(value)

    def number(self, *names: str, low: float, high: float = math.inf, unit: str = "") -> Named[float]:
        """A finite number from ``low`` to ``high``."""
        source, value = self.text(*names)
        if value is None:
            return source, None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and low <= number <= high):
            wanted = f"from {low:g} to {high:,.10g}" if math.isfinite(high) else f"of at least {low:g}"
            self.refuse(source, f"{_shown(value)} is not a number {wanted}{unit}")
            return source, None
        return source, number


def setting_error(source: str, message: str) -> SettingError:
    """The error that ``message`` is about the variable in ``source`` (``env NAME``)."""
    return SettingError(f"{source.removeprefix('env ')}: {message}")


def _shown(value: str) -> str:
    return f"'{one_line(value, 60)}'"


def split_pairs(source: str, text: str) -> list[tuple[str, str]]:
    """``name=value,name=value`` with values percent-decoded (``+`` stays), as the specification writes lists of pairs.

    Raises:
        SettingError: An entry is no pair; says which by its number, because what stands there may be secret.
    """
    pairs = []
    for number, entry in enumerate(text.split(","), start=1):
        name, equals, value = entry.partition("=")
        if not entry.strip():
            continue
        if not equals or not name.strip():
            raise setting_error(source, f"entry {number} is not name=value (a comma inside a value is written %2C)")
        pairs.append((name.strip(), unquote(value.strip())))
    return pairs


class Precedence:
    """Picks the first source that says something, and keeps which one it was.

    Attributes:
        sources: Setting → where its value came from.
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def pick(self, setting: str, *said: Named[T], default: T) -> T:
        """The value of the first of ``said`` that has one, else ``default``."""
        source, value = next(((s, v) for s, v in said if v is not None), ("default", default))
        self.sources[setting] = source
        return value
