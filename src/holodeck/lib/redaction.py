"""What must not be kept or sent: keys, tokens, passwords, e-mail addresses, card numbers, and the user's own patterns.

Patterns run on RE2, which cannot backtrack: the time is linear in the text whatever the pattern. A text that cannot be checked is
hidden whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

import re2

__all__ = ["REDACTED", "Redactor", "compile_pattern"]

REDACTED: Final = "[redacted]"
_FAILED: Final = "[redacted: could not be checked]"

_NAMES: Final = (
    "password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|authorization|credential|"
    "(?:access|auth|refresh|bearer|session|id)[_-]?token"
)
_VALUE: Final = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&}\]]+)"

# One alternation, so that a text is read once. `keep` groups stay: the name in front of a secret says what was there.
_BUILT_IN: Final = "|".join(
    (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",  # JWT
        r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}",  # OpenAI, Anthropic, Stripe
        r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}",  # Slack
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}|\bhf_[A-Za-z0-9]{20,}|\bnpm_[A-Za-z0-9]{20,}",
        r"(?P<scheme>(?i:\b(?:bearer|basic)\s+))[A-Za-z0-9._~+/=-]{8,}",
        r"(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{0,20}://)[^\s/@:]{0,200}:[^\s/@]{1,200}@",
        rf"(?P<name>(?i:\b[A-Za-z0-9_.-]{{0,40}}(?:{_NAMES})s?[\"']?\s*[:=]\s*))(?:(?i:bearer|basic|token)\s+)?{_VALUE}",
        r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b",  # e-mail
        r"(?P<card>\b(?:[0-9][ -]?){12,18}[0-9]\b)",
    )
)
_KEPT: Final = ("scheme", "url", "name")


def compile_pattern(pattern: str) -> Any:
    """``pattern`` compiled by RE2.

    Raises:
        ValueError: It is not a pattern, or needs back-references or look-around, which RE2 does not have.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        detail = error.args[0] if error.args else ""
        raise ValueError(detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)) from error


def _luhn(number: str) -> bool:
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [d * 2 - 9 * (d > 4) for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _replacement(match: Any) -> str:
    groups = match.groupdict()
    if (card := groups.get("card")) and not _luhn(card):
        return str(card)
    kept = next((str(groups[k]) for k in _KEPT if groups.get(k)), "")
    return f"{kept}{REDACTED}@" if groups.get("url") else kept + REDACTED


@functools.cache
def _built_in() -> Any:
    return compile_pattern(_BUILT_IN)


class Redactor:
    """Hides secrets in text.

    Args:
        patterns: RE2 patterns of the user, applied after the built-in ones; a match is replaced whole.

    Raises:
        ValueError: A pattern cannot be compiled.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._own = [compile_pattern(p) for p in patterns]

    def __call__(self, text: str) -> str:
        """``text`` with every secret replaced by ``[redacted]``; hidden whole if it cannot be checked."""
        try:
            clean = _built_in().sub(_replacement, text)
            for pattern in self._own:
                clean = pattern.sub(REDACTED, clean)
        except Exception:  # noqa: BLE001 - fails closed: whatever went wrong, the text does not get out
            return _FAILED
        return str(clean)

    def names_secret(self, name: str) -> bool:
        """Whether a value under this name is a secret whatever it looks like (``password``, ``api_key``, …)."""
        return self(f"{name}=1") != f"{name}=1"
