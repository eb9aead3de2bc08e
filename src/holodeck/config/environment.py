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

__all__ = ["Environment", "Precedence", "split_pairs"]

T = TypeVar("T")
Named = tuple[str, T | None]
"""Where a value may come from, and the value; None if it is not said there."""


class Environment:
    """Environment variables; one that is empty counts as unset (OpenTelemetry specification, *Parsing empty value*).

    Every method takes names in order of precedence and returns the source (``env NAME``) of the first that is set, with its value.

    Args:
        variables: The environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, *names: str) -> Named[str]:
        """The text without white space around it."""
        for name in names:
            if value := exportable(self._variables.get(name, "")).strip():
                return f"env {name}", value
        return f"env {names[0]}", None

    def choice(self, *names: str, known: Sequence[str]) -> Named[str]:
        """One of ``known``, in any case."""
        source, value = self.text(*names)
        if value is not None and value.lower() not in known:
            raise setting_error(source, f"{_shown(value)} is unknown: use {choices(known)}")
        return source, None if value is None else value.lower()

    def integer(self, *names: str, low: int = 1) -> Named[int]:
        """A whole number of at least ``low``."""
        source, value = self.text(*names)
        if value is None:
            return source, None
        if not (value.isascii() and value.isdigit()) or len(value) > 18 or int(value) < low:
            raise setting_error(source, f"{_shown(value)} is not a whole number of at least {low}")
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
            wanted = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
            raise setting_error(source, f"{_shown(value)} is not a number {wanted}{unit}")
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
