"""Why a model's server could not be reached, or did not speak HTTP."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from holodeck.backends.places import place_of, server_of
from holodeck.errors import BackendError
from holodeck.models.llm import LLMConfig

__all__ = ["connection_error"]

_NAMES: Final = frozenset(
    {
        "APIConnectionError",
        "ConnectError",
        "ConnectionError",
        "ConnectionResetError",
        "DecodingError",
        "LocalProtocolError",
        "OverflowError",
        "ProxyError",
        "ReadError",
        "RemoteProtocolError",
        "WriteError",
    }
)
_NO_NAME: Final = ("name or service", "nodename", "getaddrinfo", "name resolution", "no address associated")
_HUNG_UP: Final = ("disconnected", "peer closed", "incomplete", "without sending")


def connection_error(cause: BaseException, config: LLMConfig) -> BackendError | None:
    """The failure of a connection as one line; None if ``cause`` is none."""
    chain = [e for e in (cause, cause.__cause__, cause.__context__) if e is not None]
    names = {type(e).__name__ for e in chain}
    if not names & _NAMES:
        return None
    what, error_type = _what(names, " ".join(map(str, chain)).lower(), _proxy(config))
    return BackendError(
        f"{server_of(config)} {what}",
        error_type=error_type,
        summary="the server does not speak HTTP as expected"
        if error_type == "invalid_response"
        else "the connection to the provider failed",
    )


def _what(names: set[str], text: str, proxy: str) -> tuple[str, str]:
    """The first that applies of what can be wrong, and its ``error.type``."""
    hung_up = any(words in text for words in _HUNG_UP)
    broken = names & {"RemoteProtocolError", "ReadError", "ConnectionResetError"} and "ConnectError" not in names
    cases = (
        ("certificate" in text, "has a certificate that is not trusted: name its authority's file in SSL_CERT_FILE", "tls_error"),
        ("ssl" in text, "cannot be reached with TLS: check the scheme of 'model.endpoint' (http or https)", "tls_error"),
        ("DecodingError" in names, "sent an answer that cannot be decoded: check 'model.endpoint'", "invalid_response"),
        ("RemoteProtocolError" in names and not hung_up, "does not speak HTTP as expected: check 'model.endpoint'", "invalid_response"),
        (broken, "broke the connection: send the message again", "connection_reset"),
        (proxy, f"cannot be reached through the proxy{proxy}: check it, or name the host in NO_PROXY", "connection_error"),
        (any(words in text for words in _NO_NAME), "has a host name that nobody knows: check 'model.endpoint'", "connection_error"),
        (True, "cannot be reached: check 'model.endpoint', and that the server is running", "connection_error"),
    )
    return next((what, error_type) for applies, what, error_type in cases if applies)


def _proxy(config: LLMConfig) -> str:
    """The proxy that requests to the model go through, as `` http://host:port``; "" if there is none."""
    from urllib.request import getproxies_environment, proxy_bypass  # noqa: PLC0415 - 6 ms that the prompt need not wait for

    parts = urlsplit(config.endpoint or "https://api")
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all", "")
    if not proxy or proxy_bypass(parts.netloc):
        return ""
    return f" {place_of(proxy if '://' in proxy else f'http://{proxy}') or 'of the environment'}"
