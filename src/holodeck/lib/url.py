"""What an ``http://`` or ``https://`` URL of a server is: one rule, so that a bad one is found when it is read, not when it is used."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from holodeck.lib.problems import one_line

__all__ = ["has_scheme", "split_url"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\]|\s")
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](?::\d*)?")
_IPV4: Final = re.compile(r"\d+(?:\.\d+){3}")
_LONGEST_HOST: Final = 253
"""Characters that the name of a host may have (RFC 1035)."""


def has_scheme(text: str) -> bool:
    """Whether ``text`` begins with a scheme and ``://``, whichever it is."""
    return _SCHEME.match(text) is not None


def split_url(text: str) -> SplitResult:
    """The parts of a URL that a client can use.

    Raises:
        ValueError: It is none: no scheme or another one than http and https, white space or controls in it, no host, one that cannot be
            looked up, or a bad port. The message says what to write, and leaves out ``text``: it may hold a password.
    """
    found = _SCHEME.match(text)
    if found is None:
        raise ValueError("needs a scheme: write http://… or https://…")
    if found.group(1).lower() not in ("http", "https"):
        raise ValueError(f"the scheme {one_line(found.group(1), 20)}:// is not supported: use http:// or https://, whatever the protocol")
    if _UNSAFE.search(text):
        raise ValueError("has white space or controls in it: remove them")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL, or its port is not a number from 1 to 65535: write http://host:port") from None
    if not parts.hostname or port == 0:
        raise ValueError("has no host, or the port 0: write http://host:port")
    if not _can_be_looked_up(parts.netloc.rpartition("@")[2], parts.hostname):
        raise ValueError("has a host that cannot be looked up: write a name or an address, as in http://host:port")
    return parts


def _can_be_looked_up(place: str, host: str) -> bool:
    try:
        if "[" in place:
            return (found := _BRACKETED.fullmatch(place)) is not None and bool(IPv6Address(found.group(1)))
        if _IPV4.fullmatch(host):
            return bool(IPv4Address(host))
        name = _as_ascii(host).removesuffix(".")
    except ValueError:
        return False
    return len(name) <= _LONGEST_HOST and all(map(_LABEL.fullmatch, name.split(".")))


def _as_ascii(host: str) -> str:
    """A name with letters beyond ASCII as it is looked up."""
    if host.isascii():
        return host
    import idna  # noqa: PLC0415 - for few hosts only; the rule is the HTTP client's

    return idna.encode(host.lower()).decode("ascii")
