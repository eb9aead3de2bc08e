"""OTLP endpoints: URLs taken apart, checked, and put together again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holodeck.lib.problems import one_line
from holodeck.lib.url import has_scheme, split_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from holodeck.errors import ConfigError

__all__ = ["Endpoint", "parse_endpoint"]

_SIGNAL_PATH: Final = re.compile(r"/v1/(?:traces|metrics|logs)/*$")


@dataclass(frozen=True)
class Endpoint:
    """A URL of a collector.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Name or address; an IPv6 address in brackets.
        port: Port, or None where the URL names none.
        path: Path without a slash at its end.
        query: Query with its ``?``, or "".
        credentials: ``user:password`` of the URL, still percent-encoded; secret.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    query: str
    credentials: str

    @property
    def insecure(self) -> bool:
        """Without TLS."""
        return self.scheme == "http"

    @property
    def url(self) -> str:
        """The URL without credentials."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}{self.query}"

    @property
    def grpc_url(self) -> str:
        """Scheme, host and port; the scheme's port where the URL names none."""
        return f"{self.scheme}://{self.host}:{self.port or (80 if self.insecure else 443)}"

    def with_path_of(self, signal: str) -> Endpoint:
        """This base URL with the path of ``signal``, once; in place of the path of another signal."""
        base = _SIGNAL_PATH.sub("", self.path).rstrip("/")
        return replace(self, path=f"{base}/v1/{signal}")

    def as_it_is(self) -> Endpoint:
        """This URL; ``/`` where it has no path."""
        return replace(self, path=self.path or "/")


def parse_endpoint(text: str, error: Callable[[str], ConfigError]) -> Endpoint:
    """The endpoint that ``text`` is.

    Args:
        text: ``http://host:4318`` or the like.
        error: Makes the error that is raised.

    Raises:
        ConfigError: It is no URL that a client can use, see :func:`~holodeck.lib.url.split_url`. Credentials are never in the message.
    """
    if not has_scheme(text):
        if text.lower().startswith("unix:"):
            raise error("sockets (unix:) are not supported: use http://host:port or https://host:port")
        raise error(f"has no scheme: write http://{_shown(text)} (or https://…)")
    try:
        parts = split_url(text)
    except ValueError as cause:
        raise error(str(cause)) from cause
    port = parts.port
    credentials, _, host = parts.netloc.rpartition("@")
    host = host if port is None else host.rpartition(":")[0]
    query = f"?{parts.query}" if parts.query else ""
    return Endpoint(parts.scheme.lower(), host.removesuffix(":"), port, parts.path, query, credentials)


def _shown(text: str) -> str:
    """``text`` without what may be a user name and a password."""
    return one_line(text.rpartition("@")[2], 100)
