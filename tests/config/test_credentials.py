from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holodeck.config import load_agent_config
from holodeck.errors import AgentFileError, ConfigError, SettingError

if TYPE_CHECKING:
    from holodeck.models.llm import LLMConfig

Write = Callable[..., Path]

PROVIDERS = {
    "openai": ("OPENAI_API_KEY", ""),
    "azure_openai": ("AZURE_OPENAI_API_KEY", ", endpoint: 'https://x.openai.azure.com'"),
    "anthropic": ("ANTHROPIC_API_KEY", ""),
}


def load(write: Write, model: str, environ: dict[str, str]) -> LLMConfig:
    """The model of an agent file with this ``model`` section."""
    return load_agent_config(write(f"name: a\nmodel: {{{model}}}\n", head=""), environ).config.model


def key(model: LLMConfig) -> str | None:
    """The key itself."""
    return model.api_key.get_secret_value() if model.api_key else None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_comes_from_the_file_or_else_from_the_environment(provider: str, write: Write) -> None:
    """The file's own key wins; the usual variable fills it in; surrounding white space is dropped."""
    variable, more = PROVIDERS[provider]
    section = f"provider: {provider}, name: m{more}"
    assert key(load(write, f"{section}, api_key: ' own '", {variable: "other"})) == "own"
    assert key(load(write, section, {variable: "filled\n"})) == "filled"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "written", ["", ", api_key: ''", ", api_key: '${NO:-}'", ", api_key: <your key>", ", api_key: your-api-key", ", api_key: sk-..."]
)
def test_a_missing_key_is_one_line_with_the_fix(provider: str, written: str, write: Write) -> None:
    """No key, an empty one and a placeholder stop the load, and say which variable to set."""
    variable, more = PROVIDERS[provider]
    with pytest.raises(AgentFileError, match=rf"set the environment variable {variable}, or write api_key") as caught:
        load(write, f"provider: {provider}, name: m{more}{written}", {variable: "  "})
    assert (caught.value.line, caught.value.key) == (2, "model")


def test_a_compatible_server_needs_no_key(write: Write) -> None:
    """``openai`` with an endpoint, from the file or from the environment, loads without a key."""
    assert key(load(write, "provider: openai, name: m, endpoint: 'http://127.0.0.1:9/v1'", {})) is None
    assert load(write, "provider: openai, name: m", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}).endpoint == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("model", ["provider: ollama, name: m", "provider: local, name: m", "provider: scripted, script: s.yaml"])
def test_some_providers_need_no_key(model: str, write: Write) -> None:
    """Local providers load without one, and take none from the environment."""
    assert key(load(write, model, {"OPENAI_API_KEY": "k"})) is None


@pytest.mark.parametrize("bad", ["sk-abc def", "sk-abc\tdef", "sk-abc\ndef", "sk-abc\x7f", "sk-abcé", "sk-abc\x00"])
def test_a_damaged_key_is_refused_without_showing_it(bad: str, write: Write) -> None:
    """Keys with white space or controls inside are refused, from file and environment; no part is in the message."""
    for model, environ in (
        ("provider: openai, name: m, api_key: '${K}'", {"K": bad}),
        ("provider: openai, name: m", {"OPENAI_API_KEY": bad}),
    ):
        with pytest.raises(ConfigError, match="copy it again") as caught:
            load(write, model, environ)
        assert "sk-abc" not in str(caught.value)


def test_the_key_of_a_prompt_tools_own_model_is_completed_too(write: Write) -> None:
    """Models of prompt tools follow the same rules, and name their tool when a key is missing."""
    path = write("tools:\n  - {name: p, type: prompt, template: t, model: {provider: anthropic, name: m}}\n")
    tool = load_agent_config(path, {"ANTHROPIC_API_KEY": "k"}).config.tools[0]
    assert tool.type == "prompt"
    assert tool.model is not None
    assert key(tool.model) == "k"
    with pytest.raises(AgentFileError, match=r"tools\[0\]\.model: .*ANTHROPIC_API_KEY"):
        load_agent_config(path, {})


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [
        ("", None),
        ("http://gpu:11434", "http://gpu:11434"),
        ("https://gpu/ollama", "https://gpu/ollama"),
        ("gpu", "http://gpu:11434"),
        ("gpu:8080", "http://gpu:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, endpoint: str | None, write: Write) -> None:
    """Scheme and port may be left out; the address where the server listens is this machine."""
    assert load(write, "provider: ollama, name: m", {"OLLAMA_HOST": host}).endpoint == endpoint


def test_the_files_endpoint_wins(write: Write) -> None:
    """An endpoint in the file is not replaced."""
    assert load(write, "provider: ollama, name: m, endpoint: 'http://own:1'", {"OLLAMA_HOST": "gpu"}).endpoint == "http://own:1"


def test_ollama_has_a_key_only_where_there_is_one(write):
    """OLLAMA_API_KEY is the model's key; without it nothing is missing."""
    assert load(write, "provider: ollama, name: m", {}).api_key is None
    key = load(write, "provider: ollama, name: m", {"OLLAMA_API_KEY": "abc"}).api_key
    assert key is not None
    assert key.get_secret_value() == "abc"


@pytest.mark.parametrize("host", ["gpu:notaport", "gpu:99999", "ftp://gpu"])
def test_a_host_that_is_none_is_refused(host: str, write: Write) -> None:
    """A bad variable is named itself."""
    with pytest.raises(SettingError, match=r"^OLLAMA_HOST: "):
        load(write, "provider: ollama, name: m", {"OLLAMA_HOST": host})


def test_a_password_in_a_url_is_not_shown(write: Write) -> None:
    """An endpoint without a scheme is refused without repeating it."""
    with pytest.raises(AgentFileError, match="needs a scheme") as caught:
        load(write, "provider: openai, name: m, endpoint: 'user:hunter2@host'", {})
    assert "hunter2" not in str(caught.value)
