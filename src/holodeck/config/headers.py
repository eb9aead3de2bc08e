"""Headers of OTLP exports. Their values are secret: no message ever has one in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holodeck.errors import ConfigError

__all__ = ["clean_headers"]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 7230, section 3.2.6
_GRPC_NAME: Final = re.compile(r"[0-9a-z_.-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")


def clean_headers(pairs: Iterable[tuple[str, str]], protocol: str, error: Callable[[str], ConfigError]) -> dict[str, str]:
    """Header names and values as they are sent; names are in lower case for gRPC.

    Args:
        pairs: Names and values; white space around them (the newline at the end of a secret file) is dropped.
        protocol: ``grpc`` or ``http/protobuf``.
        error: Makes the error that is raised.

    Raises:
        ConfigError: A name is not a header name, or a value has controls, line ends or characters beyond ASCII in it.
    """
    headers = {}
    for number, (name, value) in enumerate(pairs, start=1):
        headers[_name(name.strip(), number, protocol, error)] = clean = value.strip()
        if not _VALUE.fullmatch(clean):
            raise error(f"the value of header {number} has a line end, a control or a character beyond ASCII in it")
    return headers


def _name(name: str, number: int, protocol: str, error: Callable[[str], ConfigError]) -> str:
    # A name is not shown either: in 'Bearer abc,def=' the name is a part of the secret.
    if not _TOKEN.fullmatch(name):
        raise error(f"the name of header {number} is not a header name: use letters, digits and '-'")
    if protocol != "grpc":
        return name
    name = name.lower()
    if not _GRPC_NAME.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
        raise error(f"the name of header {number} cannot be sent with gRPC: use letters, digits, '-', '_' and '.'")
    return name
