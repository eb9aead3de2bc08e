"""Endpoints of models: as clients want them, and as people are told about them."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from holodeck.lib.validation import shorten, terminal_safe
from holodeck.models.llm import LLMConfig

__all__ = ["base_of", "place_of", "server_of"]

_LONGEST = 160


def base_of(url: str) -> tuple[str, dict[str, str]]:
    """An endpoint as clients want it: the URL that paths are added to, and the query that each request has."""
    parts = urlsplit(url)
    return parts._replace(query="", fragment="").geturl(), dict(parse_qsl(parts.query, keep_blank_values=True))


def place_of(url: str) -> str:
    """Scheme, host, port and path of ``url`` for people, without what may be secret in it; "" if it is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return shorten(terminal_safe(f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"), _LONGEST)


def server_of(config: LLMConfig) -> str:
    """The model and where it is, for people."""
    parts = urlsplit(config.endpoint or "")
    server = place_of(f"{parts.scheme}://{parts.netloc}")
    return f"{config.label} at {server}" if server else config.label
