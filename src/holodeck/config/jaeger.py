"""Where Jaeger's web pages are, so that a turn can be opened there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from holodeck.config.endpoint import parse_endpoint
from holodeck.config.environment import setting_error
from holodeck.config.problems import KeyedError

if TYPE_CHECKING:
    from holodeck.config.environment import Environment, Precedence
    from holodeck.errors import ConfigError
    from holodeck.models.observability import OtlpTarget

__all__ = ["resolve_jaeger"]

_FILE: Final = "agent file"
_VARIABLE: Final = "HOLODECK_JAEGER_URL"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_BESIDE: Final = "http://localhost:16686"


def resolve_jaeger(written: str | None, traces: OtlpTarget | None, environment: Environment, precedence: Precedence) -> str | None:
    """Base URL of Jaeger's pages: ``HOLODECK_JAEGER_URL``, then ``observability.jaeger_url``; ``none`` says that there are none.

    By default ``http://localhost:16686`` where spans go to a collector on this machine: the page of a remote one cannot be guessed.

    Args:
        written: What the agent file says.
        traces: Where spans go; None where they are not sent, and then nothing is shown in Jaeger.
        environment: The environment.
        precedence: Keeps who decided, as ``jaeger_url``.

    Raises:
        SettingError: The variable is not a URL.
        KeyedError: The same of the agent file.
    """
    source, said = environment.text(_VARIABLE)
    beside = _BESIDE if traces is not None and urlsplit(traces.url).hostname in _LOOPBACK else "none"
    url = precedence.pick("jaeger_url", (source, said), (_FILE, (written or "").strip() or None), default=beside)
    if url.lower() == "none":
        return None
    origin = precedence.sources["jaeger_url"]
    endpoint = parse_endpoint(url, lambda message: _error(origin, message))
    if endpoint.credentials:
        raise _error(origin, "has a user name and a password in it, and would be shown: leave them out")
    if not url.isascii():
        raise _error(origin, "has characters beyond ASCII in it: write the host in Punycode, the path with %XX")
    return replace(endpoint, query="").url.rstrip("/") if traces is not None else None


def _error(origin: str, message: str) -> ConfigError:
    return KeyedError(("observability", "jaeger_url"), message) if origin == _FILE else setting_error(f"env {_VARIABLE}", message)
