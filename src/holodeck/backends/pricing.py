"""What requests to models cost: by the agent file's own prices, else by the price list of ``genai-prices``.

The list is the one that comes with the installed version of that library; nothing is fetched. What a model on this machine, an unknown
model or a server that is none of the known providers' costs is not known, and said to be so.
"""

from __future__ import annotations

import logging
import sys
import threading
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from holodeck.models.cost import RequestUsage
from holodeck.models.exchange import ModelEndpoint, ModelReply
from holodeck.models.token_usage import TokenUsage

__all__ = ["cost_of", "is_priced", "prepare", "usage_of"]

_log = logging.getLogger(__name__)
_AZURE: Final = "azure.ai.openai"
_URLS: Final = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}
"""Where a provider is if nothing else is said; known before a client is there that could be asked."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def usage_of(endpoint: ModelEndpoint, reply: ModelReply, tool: str | None, *, answered: bool) -> RequestUsage:
    """What a request took.

    Args:
        endpoint: The model that was asked.
        reply: What came back, whole or in part.
        tool: The prompt tool that asked; None where the agent itself did.
        answered: The reply came to its end.
    """
    return RequestUsage(
        provider=endpoint.provider,
        model=reply.response_model or endpoint.model,
        tool=tool,
        usage=reply.usage,
        cost_usd=None if reply.usage is None else cost_of(endpoint, reply.response_model, reply.usage),
        answered=answered,
    )


def cost_of(endpoint: ModelEndpoint, model: str | None, usage: TokenUsage) -> float | None:
    """US dollars for one request; None if the price is not known.

    Args:
        endpoint: The model that was asked.
        model: The model that says that it answered.
        usage: Of this one request: prices may depend on its length.
    """
    if endpoint.config.price is not None:
        return endpoint.config.price.cost_of(usage)
    if not _may_be_listed(endpoint):
        return None
    cost = _listed(endpoint, model, usage) if model else None
    # The name of a deployment is free: what it is called says nothing about what it is.
    return cost if cost is not None or endpoint.provider == _AZURE else _listed(endpoint, endpoint.model, usage)


def is_priced(endpoint: ModelEndpoint) -> bool | None:
    """Whether the price of the model is known; None where that shows only when it answers."""
    if cost_of(endpoint, None, TokenUsage.of(1, 1)) is not None:
        return True
    return None if endpoint.provider == _AZURE else False


def prepare(endpoint: ModelEndpoint) -> None:
    """Begin to load the price list, if this model's price may stand in it: that takes a third of a second, while the model thinks."""
    if endpoint.config.price is None and "genai_prices" not in sys.modules and _may_be_listed(endpoint):
        threading.Thread(target=_snapshot, name="price list", daemon=True).start()


def _may_be_listed(endpoint: ModelEndpoint) -> bool:
    host = urlsplit(_url(endpoint)).hostname
    return bool(host) and host not in _LOOPBACK


def _url(endpoint: ModelEndpoint) -> str:
    return endpoint.config.endpoint or (f"https://{endpoint.address}" if endpoint.address else _URLS.get(endpoint.provider, ""))


def _listed(endpoint: ModelEndpoint, model: str, usage: TokenUsage) -> float | None:
    snapshot = _snapshot()
    if snapshot is None:
        return None
    by_name = endpoint.provider == _AZURE  # behind any address
    try:
        price = snapshot.calc(_as_listed(usage), model, "azure" if by_name else None, None if by_name else _url(endpoint), None)
    except (LookupError, ValueError):  # not in the list; counts that do not add up
        return None
    prices = price.model_price
    return None if prices.input_mtok is None and prices.output_mtok is None else float(price.total_price)


def _as_listed(usage: TokenUsage) -> Any:
    from genai_prices import Usage  # noqa: PLC0415 - loaded by now

    # Cached tokens are a part of the input here and there: each is priced once.
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )


@cache
def _snapshot() -> Any:
    """The list that is installed; None if it cannot be read: then no cost is known."""
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a third of a second, only where a price may be in it

        return get_snapshot()
    except Exception:  # noqa: BLE001 - a broken installation of it must not hurt the chat
        _log.warning("the price list cannot be read: costs are not known", exc_info=True)
        return None
