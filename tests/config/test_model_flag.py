from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holodeck.config import load_agent_config
from holodeck.config.model_flag import parse_model_flag
from holodeck.errors import AgentFileError, SettingError
from holodeck.models.llm import Provider

Write = Callable[..., Path]

AZURE = (
    "name: a\nmodel:\n  {provider: azure_openai, name: d, endpoint: '${URL}', api_key: '${KEY}', api_version: '1', "
    "temperature: 0.5, top_p: 0.9}\n"
)


@pytest.mark.parametrize(
    ("flag", "provider", "name"),
    [
        ("openai/gpt-4o", Provider.OPENAI, "gpt-4o"),
        ("OpenAI/org/model:x/y", Provider.OPENAI, "org/model:x/y"),
        ("ollama/llama3.2:1b", Provider.OLLAMA, "llama3.2:1b"),
        ("local/smollm2", Provider.LOCAL, "smollm2"),
        (" anthropic/claude ", Provider.ANTHROPIC, "claude"),
    ],
)
def test_a_flag_is_split_at_the_first_slash(flag: str, provider: Provider, name: str) -> None:
    """The provider is what stands before the first slash; names may have slashes."""
    override = parse_model_flag(flag)
    assert (override.provider, override.key, override.value) == (provider, "name", name)


@pytest.mark.parametrize(
    "flag", ["", "/", "gpt-4o", "openai", "openai/", "opena/x", "/openai/x", "scripted/", "scripted/no.yaml", "local/no.gguf", "scripted/."]
)
def test_a_flag_that_names_no_model_is_refused(flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not PROVIDER/NAME, or names a file that is not there, is one line about the flag."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=r"^--model ") as caught:
        parse_model_flag(flag)
    assert "\n" not in str(caught.value)


def test_an_unknown_provider_lists_all() -> None:
    """The error names every provider, and the nearest one."""
    with pytest.raises(SettingError, match=r"openai, azure_openai, anthropic, ollama, local or scripted; did you mean 'ollama'\?"):
        parse_model_flag("olama/x")


def test_files_are_looked_for_from_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``scripted/FILE`` and ``local/FILE.gguf`` become absolute paths of the current directory."""
    (tmp_path / "s.yaml").touch()
    (tmp_path / "m.GGUF").touch()
    monkeypatch.chdir(tmp_path)
    assert parse_model_flag("scripted/s.yaml").value == str(tmp_path / "s.yaml")
    assert (parse_model_flag("local/m.GGUF").key, parse_model_flag("local/m.GGUF").value) == ("path", str(tmp_path / "m.GGUF"))
    assert parse_model_flag(f"scripted/{tmp_path}/s.yaml").value == str(tmp_path / "s.yaml")


def test_another_provider_drops_what_belongs_to_the_first(write: Write, tmp_path: Path) -> None:
    """Endpoint, key and version go, unset variables in them too; settings of the answer stay."""
    model = load_agent_config(write(AZURE, head=""), {}, model=f"scripted/{tmp_path}/s.yaml").config.model
    assert (model.provider, model.name, model.endpoint, model.api_key, model.api_version) == (Provider.SCRIPTED, "", None, None, None)
    assert (model.script, model.temperature, model.top_p) == (tmp_path / "s.yaml", 0.5, 0.9)


def test_the_same_provider_keeps_its_endpoint_and_key(write: Write) -> None:
    """Only the name changes, also where the file takes the provider from the environment."""
    text = AZURE.replace("provider: azure_openai", "provider: '${P}'")
    environ = {"P": "azure_openai", "URL": "https://x.openai.azure.com", "KEY": "k"}
    model = load_agent_config(write(text, head=""), environ, model="azure_openai/other").config.model
    assert (model.name, model.endpoint, model.api_version) == ("other", "https://x.openai.azure.com", "1")


def test_what_stays_is_still_substituted(write: Write, tmp_path: Path) -> None:
    """A variable in a key that is not dropped has to be set."""
    text = "name: a\nmodel: {provider: openai, name: x, temperature: '${T}'}\n"
    with pytest.raises(AgentFileError, match=r"model\.temperature: the environment variable T is not set"):
        load_agent_config(write(text, head=""), {}, model=f"scripted/{tmp_path}/s.yaml")


@pytest.mark.parametrize(
    "section", ["", "model: nonsense\n", "model: {provider: nonsense, name: ''}\n", "model: {provider: openai, name: 1.10}\n"]
)
def test_the_model_of_the_file_need_not_be_good(section: str, write: Write, tmp_path: Path) -> None:
    """The flag is enough, whatever model the file names, or names not."""
    loaded = load_agent_config(write(f"name: a\n{section}", head=""), {}, model=f"scripted/{tmp_path}/s.yaml")
    assert loaded.config.model.provider is Provider.SCRIPTED


def test_a_model_of_the_flag_that_lacks_something_blames_the_flag(write: Write) -> None:
    """Missing keys and endpoints are said about the flag, with the variable that helps."""
    for flag, words in (("openai/x", "OPENAI_API_KEY"), ("azure_openai/x", "AZURE_OPENAI_ENDPOINT")):
        with pytest.raises(SettingError, match=rf"^--model {flag}: .*{words}"):
            load_agent_config(write(""), {}, model=flag)


def test_prompt_tools_keep_the_model_that_they_name(write: Write) -> None:
    """The flag is about the agent's own model."""
    path = write("tools:\n  - {name: p, type: prompt, template: t, model: {provider: scripted, script: s.yaml}}\n")
    tool = load_agent_config(path, {}, model="local/smollm2").config.tools[0]
    assert tool.type == "prompt"
    assert tool.model is not None
    assert tool.model.provider is Provider.SCRIPTED


@pytest.mark.parametrize("flag", ["openai/a\x1b[2J", "openai/\udcff", "openai/a\nb", "scripted/\udcff"])
def test_a_name_is_plain_text(flag: str) -> None:
    """Controls, and bytes of the command line that are not UTF-8, are refused, and not shown."""
    with pytest.raises(SettingError, match="has controls in it, or is not UTF-8 text") as caught:
        parse_model_flag(flag)
    assert str(caught.value).isprintable()
