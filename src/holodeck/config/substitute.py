"""``${VAR}``, ``${VAR:-default}`` and ``$$`` in the text values of a parsed file; never in keys, never in comments."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from holodeck.lib.problems import KeyPath, is_secret, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holodeck.lib.document import Document

__all__ = ["expand", "substitute"]

_REFERENCE: Final = re.compile(r"\$\$|\$\{([^}]*)(\}?)")
_INSIDE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


def expand(text: str, environ: Mapping[str, str]) -> str:
    """``text`` with its references replaced; a variable that is set but empty takes the default, if there is one.

    Raises:
        ValueError: A variable is not set and has no default, is not text, or the reference is malformed; says what to do.
    """
    return _REFERENCE.sub(lambda found: _value(found, environ), text)


def _value(found: re.Match[str], environ: Mapping[str, str]) -> str:
    if found.group() == "$$":
        return "$"
    inside = _INSIDE.fullmatch(found.group(1))
    if inside is None or not found.group(2):
        raise ValueError("write ${VAR} or ${VAR:-default}, or $${…} if no variable is meant")
    name, default = inside.groups()
    if default and "${" in default:
        raise ValueError(f"the default of {name} cannot hold another ${{…}}: write text there, or $${{…}} if no variable is meant")
    value = environ.get(name)
    if value is None and default is None:
        raise ValueError(f"the environment variable {name} is not set: set it, or write ${{{name}:-default}}")
    return _as_text(name, value or default or "")


def _as_text(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the environment variable {name} is not valid UTF-8 text") from error
    return value


def substitute(document: Document, environ: Mapping[str, str]) -> Document:
    """``document`` with every reference replaced. What is put in is not read as YAML again.

    Raises:
        AgentFileError: A reference cannot be replaced, or a number is not finite or over 64 bits.
    """
    return replace(document, data=_walk(document, (), document.data, environ))


def _walk(document: Document, path: KeyPath, value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _walk(document, (*path, key), item, environ) for key, item in value.items()}
    if isinstance(value, list):
        return [_walk(document, (*path, index), item, environ) for index, item in enumerate(value)]
    if isinstance(value, str):
        try:
            return expand(value, environ)
        except ValueError as error:
            raise document.at(path, str(error)) from error
    return _number(document, path, value)


def _number(document: Document, path: KeyPath, value: Any) -> Any:
    finite = not isinstance(value, float) or math.isfinite(value)
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    if finite and fits:
        return value
    written = one_line(document.written.get(document.original(path), str(value)), 40)
    shown = "the value" if is_secret(path) else written
    what = "over 64 bits" if not fits else "not a finite number"
    raise document.at(path, f"{shown} is {what}: write a number, or quote it if it is text")
