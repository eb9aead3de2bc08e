from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from holodeck.models.llm import LLMConfig, Provider


def config(**fields: Any) -> LLMConfig:
    """A model section with these fields."""
    return LLMConfig.model_validate({"provider": "openai", "name": "m"} | fields)


def test_the_providers_are_six() -> None:
    """The enum's values are the words of agent files."""
    assert [provider.value for provider in Provider] == ["openai", "azure_openai", "anthropic", "ollama", "local", "scripted"]


def test_what_is_not_said_is_left_to_the_provider() -> None:
    """Only the silence between chunks has a default."""
    found = config()
    assert (found.temperature, found.max_tokens, found.top_p, found.endpoint, found.api_key, found.timeout) == (
        None,
        None,
        None,
        None,
        None,
        60.0,
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1), ("temperature", 2.1), ("temperature", float("nan")), ("temperature", float("inf")), ("temperature", True),
        ("top_p", 1.1), ("top_p", -0.1), ("top_p", float("nan")),
        ("max_tokens", 0), ("max_tokens", 1.5), ("max_tokens", True),
        ("timeout", 0), ("timeout", -1), ("timeout", float("inf")),
        ("max_tokens", 2**63),
        ("endpoint", ""), ("endpoint", "localhost:8080"), ("endpoint", "ftp://x"), ("endpoint", "http://"), ("endpoint", "http://:80/"),
        ("endpoint", "http://127.0.0.1:99999/v1"), ("endpoint", "http://h:abc/"), ("endpoint", "http://[::1/v1"),
        ("endpoint", "http://a b/"),
        ("provider", "gpt"), ("colour", "red"),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(field: str, value: Any) -> None:
    """Each limit of the model section holds, for NaN and infinity too."""
    with pytest.raises(ValidationError, match=field):
        config(**{field: value})


@pytest.mark.parametrize(("temperature", "top_p"), [(0, 0), (2, 1), ("0.5", "0.9")])
def test_values_at_the_limits_are_fine(temperature: Any, top_p: Any) -> None:
    """The limits themselves are allowed, and text from the environment is read as a number."""
    found = config(temperature=temperature, top_p=top_p, max_tokens="10")
    assert (found.temperature, found.top_p, found.max_tokens) == (float(temperature), float(top_p), 10)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"provider": "openai"}, "provider 'openai' needs 'name'"),
        ({"provider": "anthropic", "name": " "}, "provider 'anthropic' needs 'name'"),
        ({"provider": "azure_openai", "name": "d"}, "needs 'endpoint"),
        ({"provider": "scripted"}, "needs 'script"),
        ({"provider": "local"}, "needs 'name' .* or 'path"),
        ({"provider": "openai", "name": "m", "path": "m.gguf"}, "'path' belongs to provider 'local'"),
        ({"provider": "local", "name": "m", "script": "s.yaml"}, "'script' belongs to provider 'scripted'"),
        ({"provider": "openai", "name": "m", "api_version": "1"}, "'api_version' belongs to provider 'azure_openai'"),
        ({"provider": "local", "name": "m", "endpoint": "http://x"}, "'endpoint' does nothing for 'local'"),
        ({"provider": "scripted", "script": "s", "api_key": "k"}, "'api_key' does nothing for 'scripted'"),
    ],
)
def test_fields_fit_the_provider(fields: dict[str, Any], words: str) -> None:
    """What a provider needs is asked for, and what would be ignored is refused."""
    with pytest.raises(ValidationError, match=words):
        LLMConfig.model_validate(fields)


def test_a_key_is_never_shown() -> None:
    """Neither text nor JSON of the model has the key in it."""
    found = config(api_key="sk-secret")
    assert found.api_key is not None
    assert found.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(found) + str(found) + found.model_dump_json()


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"provider": "openai", "name": "gpt-4o"}, "openai/gpt-4o"),
        ({"provider": "scripted", "script": Path("x/support.yaml")}, "scripted/support"),
        ({"provider": "local", "path": Path("x/tiny.gguf")}, "local/tiny"),
        ({"provider": "local", "path": Path("x/tiny.gguf"), "name": "own"}, "local/own"),
    ],
)
def test_the_label_names_provider_and_model(fields: dict[str, Any], label: str) -> None:
    """A file stands in where there is no name."""
    assert LLMConfig.model_validate(fields).label == label


@pytest.mark.parametrize(("fields", "title"), [({"name": "n"}, "n"), ({"script": "/x/some.script.yaml"}, "some.script")])
def test_a_model_is_called_by_its_name_or_by_its_file(fields: dict[str, str], title: str) -> None:
    """Spans, prices and people see one name, and no path."""
    model = LLMConfig(provider="scripted", **{"script": "/x/other.yaml", **fields})
    assert (model.title, model.label) == (title, f"scripted/{title}")
