"""Patterns that cannot hang whoever uses them: RE2's, whose time is linear in the text whatever the pattern."""

from __future__ import annotations

from typing import Any, Final

import re2

from holodeck.lib.validation import shorten

__all__ = ["compile_pattern"]

_LONGEST_PART: Final = 60


def compile_pattern(pattern: str) -> Any:
    """``pattern`` compiled by RE2.

    Raises:
        ValueError: It is none; says what RE2 does not have, and where in the pattern the fault is if that is known.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(f"not a pattern of RE2, which has no look-around and no back-references: {_fault(error, pattern)}") from error


def _fault(error: Exception, pattern: str) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"half a character at character {error.start + 1}"
    detail = error.args[0] if error.args else ""
    what, _, part = (detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)).partition(": ")
    if not part or part == pattern:
        return what
    place = f" at character {pattern.index(part) + 1}" if pattern.count(part) == 1 else ""
    return f"{what} '{shorten(part, _LONGEST_PART)}'{place}"
