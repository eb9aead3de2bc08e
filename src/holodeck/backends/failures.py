"""What went wrong between HoloDeck and a model, as one line that says what to do.

Providers' clients are recognised by what their exceptions carry (a status code, a class name), so that none of them is imported here.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from holodeck.backends.places import place_of, server_of
from holodeck.backends.said import code_of, header_of, wait_of, words_of
from holodeck.backends.unreached import connection_error
from holodeck.errors import BackendError, HoloDeckError
from holodeck.models.llm import LLMConfig, Provider

__all__ = ["explain", "no_reply", "silent", "truncated"]

_KEYS: Final = {
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.AZURE_OPENAI: "AZURE_OPENAI_API_KEY",
    Provider.ANTHROPIC: "ANTHROPIC_API_KEY",
}
_REFUSED: Final = ("the provider refused the request", "check 'model' in the agent file")
_FAILED: Final = ("the provider failed", "wait{wait}, then send the message again")
_BUSY: Final = ("the provider is overloaded", "wait{wait}, then send the message again")
_LATER: Final = ("the provider failed", "send the message again later")
_UNPAID: Final = ("the quota is used up", "check the plan and the billing of the account")
_STATUS: Final = {
    401: ("the provider refused the key", "check {key} or 'model.api_key'"),
    402: _UNPAID,
    403: ("the provider denied access", "check that the key may use this model"),
    404: ("the provider does not know this model or address", "check 'model.name' and 'model.endpoint'{address}"),
    405: ("the server takes no chat at this address", "check 'model.endpoint'{address}"),
    407: ("the proxy wants a login", "check HTTP_PROXY and HTTPS_PROXY"),
    408: ("the provider gave up waiting", "send the message again"),
    409: _FAILED,
    413: ("the request is too large for the provider", "shorten the message, or start a new session"),
    424: _FAILED,
    425: _FAILED,
    429: ("the provider limits the rate, or the quota is used up", "wait{wait}, then send the message again"),
    499: _FAILED,
    503: _BUSY,
    529: _BUSY,
}
_OVERFLOW: Final = (
    "context_length",
    "context length",
    "context size",
    "context limit",
    "context window",
    "maximum context",
    "too many tokens",
    "too many input tokens",
    "input token count",
    "prompt is too long",
    "input is too long",
    "reduce the length of the messages",
    "max_new_tokens` must be",
)
_FILTERED: Final = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "content management policy")
_SPENT: Final = ("insufficient_quota", "billing_error", "exceeded your current quota", "credit balance is too low", "insufficient balance")


def explain(error: Exception, config: LLMConfig) -> BackendError:
    """``error`` from a provider's client, or from Semantic Kernel around it, as a :class:`BackendError`."""
    cause = _root(error)
    if isinstance(cause, BackendError):
        return cause
    status = getattr(cause, "status_code", None)
    if isinstance(status, int) and status >= 300:
        return _redirected(cause, status, config) or _known(cause, status, config) or _status_error(cause, status, config)
    if any("Timeout" in type(e).__name__ for e in (cause, cause.__cause__)):
        return silent(config)
    return connection_error(cause, config) or _stream_error(cause, config)


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
    return BackendError(
        f"{server_of(config)} did not answer with a chat completion: check 'model.endpoint'{_address(config)}",
        error_type="invalid_response",
        summary="the server did not answer with a chat completion",
    )


def _root(error: BaseException) -> BaseException:
    # Semantic Kernel wraps what its connectors raise; some of it carries the original as an argument only.
    while type(error).__module__.startswith("semantic_kernel.") or isinstance(error, BaseExceptionGroup):
        inner: BaseException | None
        if isinstance(error, BaseExceptionGroup):
            inner = error.exceptions[0]
        else:
            inner = error.__cause__ or next((a for a in error.args[1:] if isinstance(a, Exception)), None)
        if inner is None:
            break
        error = inner
    return error


def _redirected(cause: BaseException, status: int, config: LLMConfig) -> BackendError | None:
    if status >= 400:
        return None
    what = "the server sends the request elsewhere, and it is not followed"
    place = place_of(header_of(cause, "location"))
    to = f" (to {place})" if place else ""
    return BackendError(
        f"{server_of(config)}: HTTP {status}, {what}: set 'model.endpoint' to where the model is{to}",
        error_type=str(status),
        summary=f"HTTP {status}: {what}",
    )


def _known(cause: BaseException, status: int | None, config: LLMConfig) -> BackendError | None:
    """What providers report with different statuses, and in the middle of an answer: it is known by a code or by the words."""
    said = words_of(cause, config)
    text, quoted = f"{code_of(cause)} {said}".lower(), _quoted(said)
    if status != 429 and any(words in text for words in _OVERFLOW):
        return BackendError(
            f"the conversation no longer fits into {config.label}: start a new session, or shorten the message{quoted}",
            error_type="context_length_exceeded",
            summary="the conversation does not fit into the model's context",
        )
    if any(words in text for words in _FILTERED):
        return BackendError(
            f"the content filter of {config.label} refused the message: say it differently{quoted}",
            error_type="content_filter",
            summary="the provider's content filter refused the request",
        )
    return None


def _status_error(cause: BaseException, status: int, config: LLMConfig) -> BackendError:
    said = words_of(cause, config)
    spent = any(words in f"{code_of(cause)} {said}".lower() for words in _SPENT)
    what, fix = _UNPAID if spent else _STATUS.get(status, _REFUSED if status < 500 else _LATER)
    hint = fix.format(key=_KEYS.get(config.provider, "the key"), wait=wait_of(cause), address=_address(config))
    return BackendError(
        f"{config.label}: HTTP {status}, {what}: {hint}{_quoted(said)}", error_type=str(status), summary=f"HTTP {status}: {what}"
    )


def _quoted(said: str) -> str:
    return f" ({said})" if said else ""


def _stream_error(cause: BaseException, config: LLMConfig) -> BackendError:
    if isinstance(cause, HoloDeckError):
        return BackendError(cause.message, error_type=cause.error_type, summary=cause.summary)
    if type(cause).__name__ not in ("APIError", "APIStatusError", "ResponseError", "ReportedError"):
        # Whatever a client or a connector stumbles over while it reads an answer: its own words are about Python.
        return BackendError(
            f"{server_of(config)} sent something that is not a chat completion: check 'model.endpoint' ({type(cause).__name__})",
            error_type="invalid_response",
            summary="the server sent something that is not a chat completion",
        )
    if known := _known(cause, None, config):
        return known
    return BackendError(
        f"{config.label} reported an error: send the message again{_quoted(words_of(cause, config))}",
        error_type="provider_error",
        summary="the provider reported an error",
    )


def _address(config: LLMConfig) -> str:
    """What is probably wrong with an endpoint at which no chat is served; "" if nothing is known."""
    path = urlsplit(config.endpoint or "").path.rstrip("/")
    last = path.rpartition("/")[2]
    if not config.endpoint:
        return ""
    if last in ("completions", "messages", "chat"):
        return " (it is the base URL, without the path of the chat)"
    if config.provider is Provider.OPENAI:
        return "" if last == "v1" else " (an OpenAI-compatible one usually ends in /v1)"
    return " (without /v1 at its end)" if last == "v1" else ""
