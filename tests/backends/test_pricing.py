"""What requests to models cost."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from holodeck.backends.pricing import cost_of, is_priced, usage_of
from holodeck.lib.money import format_usd
from holodeck.models.cost import Price, total_cost
from holodeck.models.exchange import ModelEndpoint, ModelReply
from holodeck.models.llm import LLMConfig
from holodeck.models.token_usage import TokenUsage

_MILLION = TokenUsage.of(1_000_000, 1_000_000)


def _endpoint(
    provider: str = "openai", model: str = "gpt-4o-mini", address: str | None = "api.openai.com", **config: object
) -> ModelEndpoint:
    kinds = {"azure.ai.openai": "azure_openai", "llama_cpp": "local"}
    values = {"provider": kinds.get(provider, provider), "name": model, "api_key": "k" if provider != "llama_cpp" else None, **config}
    return ModelEndpoint(provider=provider, model=model, address=address, config=LLMConfig(**values))


def test_the_list_prices_a_known_model():
    """Input and output have prices of their own."""
    assert cost_of(_endpoint(), None, _MILLION) == pytest.approx(0.15 + 0.60)


def test_cached_tokens_are_priced_once():
    """Those that were read from a cache have their own price in place of the full one, not on top of it."""
    cached = TokenUsage.of(1_000_000, 0, cached_tokens=400_000)
    assert cost_of(_endpoint(), None, cached) == pytest.approx(0.6 * 0.15 + 0.4 * 0.075)
    anthropic = _endpoint("anthropic", "claude-sonnet-4-5", "api.anthropic.com")
    written = TokenUsage.of(100_000, 0, cached_tokens=40_000, cache_write_tokens=20_000)
    assert cost_of(anthropic, None, written) == pytest.approx(0.04 * 3 + 0.04 * 0.3 + 0.02 * 3.75)


def test_the_model_that_answered_is_priced():
    """A deployment's name says nothing; what the reply says does."""
    azure = _endpoint("azure.ai.openai", "gpt-4o", "x.example.com", endpoint="https://x.example.com")
    assert cost_of(azure, "gpt-4o-mini-2024-07-18", _MILLION) == pytest.approx(0.75)
    assert cost_of(azure, "nobody-knows", _MILLION) is None
    assert is_priced(_endpoint("azure.ai.openai", "mine", "x.example.com", endpoint="https://x.example.com")) is None


def test_reasoning_is_a_part_of_the_output():
    """It is not priced again."""
    assert cost_of(_endpoint(), None, TokenUsage.of(0, 1_000_000, reasoning_tokens=900_000)) == pytest.approx(0.60)


@pytest.mark.parametrize(
    "endpoint",
    [
        _endpoint(model="a-model-that-nobody-knows"),
        _endpoint(address="llm.example.com", endpoint="https://llm.example.com/v1"),
        _endpoint(address="127.0.0.1", endpoint="http://127.0.0.1:8000/v1"),
        _endpoint("llama_cpp", "smollm2", None),
        _endpoint("ollama", "gpt-4o-mini", "localhost"),
    ],
)
def test_what_is_not_known_has_no_cost(endpoint):
    """An unknown model, a server that is no provider's, a model on this machine: never 0."""
    assert cost_of(endpoint, None, _MILLION) is None
    assert is_priced(endpoint) is False


def test_counts_that_do_not_add_up_have_no_cost():
    """More cached tokens than tokens."""
    odd = TokenUsage.of(10, 10, cached_tokens=400)
    assert cost_of(_endpoint(), None, odd) is None
    assert Price(input=1, output=1).cost_of(odd) is None


def test_the_files_own_price_wins():
    """Also for a model that the list knows, and for one that it does not."""
    price = {"input": 1.0, "output": 2.0, "cached_input": 0.5}
    usage = TokenUsage.of(1_000_000, 1_000_000, cached_tokens=500_000)
    for endpoint in (_endpoint(price=price), _endpoint("llama_cpp", "smollm2", None, price=price)):
        assert cost_of(endpoint, None, usage) == pytest.approx(0.5 * 1 + 0.5 * 0.5 + 2)
        assert is_priced(endpoint) is True
    assert Price(input=1, output=0).cost_of(usage) == 1.0  # without a price of their own cached tokens are plain input
    with pytest.raises(ValidationError):
        Price(input=-1, output=0)


def test_a_request_without_usage_has_no_cost():
    """A provider that counts nothing leaves the cost unknown."""
    taken = usage_of(_endpoint(), ModelReply(text="x"), "summarise", answered=True)
    assert (taken.cost_usd, taken.usage, taken.model, taken.tool) == (None, None, "gpt-4o-mini", "summarise")


def test_a_sum_with_an_unknown_part_is_unknown():
    """It would pass for the whole."""
    assert total_cost([0.1, 0.2]) == 0.3
    assert total_cost([0.1, None]) is None
    assert total_cost([]) is None


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [
        (0, "$0"),
        (1e-7, "$0.00000010"),
        (0.00018, "$0.00018"),
        (0.00996, "$0.010"),
        (0.042, "$0.042"),
        (0.9999, "$1.00"),
        (1234.5, "$1,234.50"),
    ],
)
def test_amounts_are_short(dollars, shown):
    """Two significant digits below ten cents, cents from a dollar on."""
    assert format_usd(dollars) == shown


def test_the_list_is_neither_loaded_nor_fetched_without_need():
    """Models without a list price load nothing; those with one start no thread and open no socket."""
    code = """if True:
        import socket, sys, threading
        def refuse(*_): raise AssertionError("a connection")
        socket.socket.connect = refuse
        socket.getaddrinfo = refuse
        from holodeck.backends.pricing import cost_of, prepare
        from holodeck.models.exchange import ModelEndpoint
        from holodeck.models.llm import LLMConfig
        from holodeck.models.token_usage import TokenUsage
        def endpoint(address, **more):
            config = LLMConfig(provider="openai", name="gpt-4o-mini", api_key="k", **more)
            return ModelEndpoint(provider="openai", model="gpt-4o-mini", address=address, config=config)
        for one in (endpoint("127.0.0.1", endpoint="http://127.0.0.1:9/v1"), endpoint("x", price={"input": 1, "output": 1})):
            prepare(one)
            cost_of(one, None, TokenUsage.of(1, 1))
        assert "genai_prices" not in sys.modules and threading.active_count() == 1
        prepare(endpoint("api.openai.com"))
        assert cost_of(endpoint("api.openai.com"), None, TokenUsage.of(1, 1)) > 0
        for thread in threading.enumerate()[1:]:
            thread.join(30)
        assert threading.active_count() == 1
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
