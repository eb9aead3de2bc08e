"""Whether a model's server answers, without spending a token: it is asked which models it has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from holodeck.backends.places import base_of
from holodeck.lib.validation import shorten, terminal_safe
from holodeck.models.llm import LLMConfig, Provider
from holodeck.version import __version__

__all__ = ["Reached", "reach"]

_BASES: Final = {
    Provider.OPENAI: "https://api.openai.com/v1",
    Provider.ANTHROPIC: "https://api.anthropic.com",
    Provider.OLLAMA: "http://localhost:11434",
}
_PATHS: Final = {
    Provider.OPENAI: "/models",
    Provider.ANTHROPIC: "/v1/models",
    Provider.OLLAMA: "/api/tags",
    Provider.AZURE_OPENAI: "/openai/models",
}
_ANTHROPIC_VERSION: Final = "2023-06-01"
_AZURE_VERSION: Final = "2024-10-21"
_MOST_LISTED: Final = 5_000_000
"""Bytes of a list of models that are read."""


@dataclass(frozen=True)
class Reached:
    """What a server answered.

    Attributes:
        server: Scheme, host and port.
        status: HTTP status; 0 if nobody answered.
        by: Its ``Server`` header, or "".
        refuses_key: It answered, and does not accept the key.
        lists_model: Whether the model is in its list; None where it has no list that could say so.
        reason: Why nobody answered, in a few words; "" if somebody did.
    """

    server: str
    status: int = 0
    by: str = ""
    refuses_key: bool = False
    lists_model: bool | None = None
    reason: str = ""


def reach(config: LLMConfig, seconds: float) -> Reached | None:
    """Ask the model's server for its models; None for a model that has no server. Never raises.

    Args:
        config: The model, with key and endpoint.
        seconds: Longest wait for each step.
    """
    if config.provider not in _PATHS:
        return None
    base = config.endpoint or _BASES.get(config.provider, "")
    base, query = base_of(base.rstrip("/"))
    parts = urlsplit(base)
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    import httpx  # noqa: PLC0415 - only if used

    try:
        with (
            httpx.Client(timeout=seconds, headers=_headers(config)) as client,
            client.stream("GET", base.rstrip("/") + _PATHS[config.provider], params=query | _parameters(config)) as answer,
        ):
            return _reached(server, answer, config)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, ImportError) as error:
        return Reached(server, reason=_reason(error))


def _headers(config: LLMConfig) -> dict[str, str]:
    key = config.api_key.get_secret_value() if config.api_key else ""
    agent = {"user-agent": f"holodeck/{__version__}"}
    if not key:
        return agent
    return agent | {
        Provider.ANTHROPIC: {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION},
        Provider.AZURE_OPENAI: {"api-key": key},
    }.get(config.provider, {"authorization": f"Bearer {key}"})


def _parameters(config: LLMConfig) -> dict[str, str]:
    return {"api-version": config.api_version or _AZURE_VERSION} if config.provider is Provider.AZURE_OPENAI else {}


def _reached(server: str, answer: Any, config: LLMConfig) -> Reached:
    by = shorten(" ".join(terminal_safe(answer.headers.get("server", "")).split()), 60)
    listed = _listed(answer) if answer.status_code == 200 else set()
    known = None if not listed or config.provider is Provider.AZURE_OPENAI else config.name in listed or f"{config.name}:latest" in listed
    return Reached(server, answer.status_code, by, refuses_key=answer.status_code in (401, 403), lists_model=known)


def _listed(answer: Any) -> set[str]:
    """The names of the models that the server lists; empty if it has no list that can be read."""
    body = b""
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > _MOST_LISTED:
            return set()
    try:
        data = json.loads(body)
        entries = data.get("data") or data.get("models") or []
        return {str(entry.get("id") or entry.get("name")) for entry in entries}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return set()


def _reason(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".lower()
    words = {
        "name or service": "the host name is unknown",
        "getaddrinfo": "the host name is unknown",
        "nodename": "the host name is unknown",
        "refused": "nobody listens there",
        "certificate": "its certificate is not trusted",
        "ssl": "TLS failed: check the scheme (http or https)",
        "timeout": "no answer in time",
        "proxy": "the proxy did not let it through",
    }
    return next((said for mark, said in words.items() if mark in text), f"the connection failed ({type(error).__name__})")
