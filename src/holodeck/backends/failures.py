"""What went wrong between HoloDeck and a model, as one line that says what to do.

Providers' clients are recognised by what their exceptions carry (a status code, a class name), so that none of them is imported here.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from holodeck.errors import BackendError, HoloDeckError
from holodeck.lib.validation import shorten, terminal_safe
from holodeck.models.llm import LLMConfig, Provider

__all__ = ["explain", "no_reply", "silent", "truncated"]

_KEYS: Final = {
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.AZURE_OPENAI: "AZURE_OPENAI_API_KEY",
    Provider.ANTHROPIC: "ANTHROPIC_API_KEY",
}
_STATUS: Final = {
    400: ("the provider refused the request", "check 'model' in the agent file"),
    401: ("the provider refused the key", "check {key} or 'model.api_key'"),
    403: ("the provider denied access", "check that the key may use this model"),
    404: ("the provider does not know this model or address", "check 'model.name' and 'model.endpoint'"),
    408: ("the provider gave up waiting", "send the message again"),
    413: ("the request is too large for the provider", "shorten the message, or start a new session"),
    429: ("the provider limits the rate, or the quota is used up", "wait{wait}, then send the message again"),
}
_OVERFLOW: Final = (
    "context_length",
    "context length",
    "context size",
    "maximum context",
    "too many tokens",
    "prompt is too long",
    "context window",
)


def explain(error: Exception, config: LLMConfig) -> BackendError:
    """``error`` from a provider's client, or from Semantic Kernel around it, as a :class:`BackendError`."""
    cause = _root(error)
    if isinstance(cause, BackendError):
        return cause
    if (status := getattr(cause, "status_code", None)) and isinstance(status, int) and status >= 400:
        return _status_error(cause, status, config)
    return _connection_error(cause, config) or _stream_error(cause, config)


def silent(config: LLMConfig) -> BackendError:
    """No chunk arrived for longer than ``model.timeout``."""
    return BackendError(
        f"{config.label} was silent for {config.timeout:g} s: send the message again, or raise 'model.timeout'",
        error_type="timeout",
        summary="the model was silent for longer than model.timeout",
    )


def truncated(config: LLMConfig) -> BackendError:
    """The stream ended before the model said that it was finished."""
    return BackendError(
        f"the answer of {config.label} was cut off by the server: send the message again",
        error_type="truncated_stream",
        summary="the stream ended before its last chunk",
    )


def no_reply(config: LLMConfig) -> BackendError:
    """The server answered, but not with a chat completion."""
    hint = " (an OpenAI-compatible one usually ends in /v1)" if config.provider is Provider.OPENAI else ""
    return BackendError(
        f"{_where(config)} did not answer with a chat completion: check 'model.endpoint'{hint}",
        error_type="invalid_response",
        summary="the server did not answer with a chat completion",
    )


def _root(error: Exception) -> BaseException:
    # Semantic Kernel wraps what its connectors raise; some of it carries the original as an argument only.
    while type(error).__module__.startswith("semantic_kernel."):
        inner = error.__cause__ or next((a for a in error.args[1:] if isinstance(a, Exception)), None)
        if not isinstance(inner, Exception):
            break
        error = inner
    return error


def _status_error(cause: BaseException, status: int, config: LLMConfig) -> BackendError:
    said = _said(cause)
    if status in (400, 413) and any(words in (said + str(getattr(cause, "code", ""))).lower() for words in _OVERFLOW):
        return BackendError(
            f"the conversation no longer fits into {config.label}: start a new session, or shorten the message ({said})",
            error_type="context_length_exceeded",
            summary="the conversation does not fit into the model's context",
        )
    what, fix = _STATUS.get(status, ("the provider failed", "send the message again later"))
    hint = fix.format(key=_KEYS.get(config.provider, "the key"), wait=_wait(cause))
    quoted = f" ({said})" if said else ""
    return BackendError(f"{config.label}: HTTP {status}, {what}: {hint}{quoted}", error_type=str(status), summary=f"HTTP {status}: {what}")


def _wait(cause: BaseException) -> str:
    headers = getattr(getattr(cause, "response", None), "headers", None) or {}
    seconds = str(headers.get("retry-after", ""))
    return f" {seconds} s" if seconds.isdigit() else ""


def _said(cause: BaseException) -> str:
    """The provider's own words, short and safe; not markup, and not a repetition of the status."""
    body: Any = getattr(cause, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        text = inner.get("message", "") if isinstance(inner, dict) else inner
    else:
        text = getattr(cause, "message", None) or getattr(cause, "error", None) or str(cause)
    text = " ".join(terminal_safe(str(text or "")).split())
    return "" if text.startswith("<") else shorten(text, 160)


def _connection_error(cause: BaseException, config: LLMConfig) -> BackendError | None:
    chain = [cause, cause.__cause__, cause.__context__]
    names = {type(e).__name__ for e in chain if e is not None}
    text = " ".join(str(e) for e in chain if e is not None).lower()
    if any("Timeout" in name for name in names):
        return silent(config)
    if not names & {
        "APIConnectionError",
        "ConnectError",
        "ConnectionError",
        "ConnectionResetError",
        "ReadError",
        "RemoteProtocolError",
        "WriteError",
    }:
        return None
    if "certificate" in text or "ssl" in text:
        what, error_type = "TLS failed: check the scheme of 'model.endpoint' and the certificate", "tls_error"
    elif names & {"ConnectError"} or ("connect" in text.split("error")[0] and "refused" in text):
        what, error_type = "cannot be reached: check 'model.endpoint', and that the server is running", "connection_error"
    elif names & {"RemoteProtocolError", "ReadError", "ConnectionResetError"}:
        what, error_type = "broke the connection: send the message again", "connection_reset"
    else:
        what, error_type = "cannot be reached: check 'model.endpoint', and that the server is running", "connection_error"
    return BackendError(f"{_where(config)} {what}", error_type=error_type, summary="the connection to the provider failed")


def _stream_error(cause: BaseException, config: LLMConfig) -> BackendError:
    if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError) or "JSON" in str(cause) or "ValidationError" in type(cause).__name__:
        return BackendError(
            f"{_where(config)} sent something that is not a chat completion: check 'model.endpoint'",
            error_type="invalid_response",
            summary="the server sent something that is not a chat completion",
        )
    if isinstance(cause, HoloDeckError):
        return BackendError(cause.message, error_type=cause.error_type, summary=cause.summary)
    said = _said(cause)
    quoted = f": {said}" if said else ""
    known = type(cause).__name__ in ("APIError", "APIStatusError", "ResponseError")
    error_type = "provider_error" if known else type(cause).__name__
    return BackendError(f"{config.label} reported an error{quoted}", error_type=error_type, summary="the provider reported an error")


def _where(config: LLMConfig) -> str:
    if not config.endpoint:
        return config.label
    url = urlsplit(config.endpoint)
    return f"{config.label} at {url.scheme}://{url.hostname}" + (f":{url.port}" if url.port else "")
