"""Keys and endpoints of model providers: the file's own first, else the provider's usual environment variable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from holodeck.errors import SettingError
from holodeck.lib.url import split_url
from holodeck.models.agent import AgentConfig, PromptTool
from holodeck.models.llm import LLMConfig, Provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holodeck.config.model_flag import ModelOverride
    from holodeck.lib.document import Document
    from holodeck.lib.problems import KeyPath

__all__ = ["complete_models", "endpoint_variable", "key_variables", "require_keys"]

_KEY_VARIABLES: Final = {
    Provider.OPENAI: "OPENAI_API_KEY",
    Provider.AZURE_OPENAI: "AZURE_OPENAI_API_KEY",
    Provider.ANTHROPIC: "ANTHROPIC_API_KEY",
    Provider.OLLAMA: "OLLAMA_API_KEY",
}
_ENDPOINT_VARIABLES: Final = {
    Provider.OPENAI: "OPENAI_BASE_URL",
    Provider.AZURE_OPENAI: "AZURE_OPENAI_ENDPOINT",
    Provider.ANTHROPIC: "ANTHROPIC_BASE_URL",
    Provider.OLLAMA: "OLLAMA_HOST",
}
_PLACEHOLDER: Final = re.compile(r"<.*>|your[-_ ].*|change[-_ ]?me|sk-\.\.\.|\.\.\.|…|x{3,}|todo", re.IGNORECASE)
_OLLAMA_PORT: Final = 11434


def complete_models(document: Document, environ: Mapping[str, str]) -> None:
    """Give the models in ``document`` the key and the endpoint that the environment holds for them, where the file is silent.

    Raises:
        AgentFileError: A key in the file has white space or controls in it.
        SettingError: The same of a variable, or an endpoint in a variable is not a URL.
    """
    for path, model in _model_sections(document.data):
        provider = _provider(model)
        if provider is None:
            continue
        _complete_key(document, path, model, _KEY_VARIABLES.get(provider), environ)
        if model.get("endpoint") in (None, "") and provider in _ENDPOINT_VARIABLES:
            _complete_endpoint(model, _ENDPOINT_VARIABLES[provider], environ)


def endpoint_variable(override: ModelOverride) -> str | None:
    """The environment variable that holds the endpoint of the provider that the command line names."""
    return _ENDPOINT_VARIABLES.get(override.provider)


def key_variables() -> dict[Provider, str]:
    """The environment variable in which each provider's key is looked for; providers that have none are not in it."""
    return dict(_KEY_VARIABLES)


def _model_sections(data: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    if isinstance(model := data.get("model"), dict):
        yield ("model",), model
    tools = data.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and isinstance(model := tool.get("model"), dict):
            yield ("tools", index, "model"), model


def _provider(model: Mapping[str, Any]) -> Provider | None:
    try:
        return Provider(model.get("provider"))
    except ValueError:
        return None


def _complete_key(document: Document, path: KeyPath, model: dict[str, Any], variable: str | None, environ: Mapping[str, str]) -> None:
    written = model.get("api_key")
    if written is not None and not isinstance(written, str):
        return  # the model says that it has to be text
    if key := _real_key(written):
        if complaint := _complaint(key):
            raise document.at((*path, "api_key"), complaint)
        model["api_key"] = key
        return
    model.pop("api_key", None)
    if variable and (key := _real_key(environ.get(variable))):
        if complaint := _complaint(key):
            raise SettingError(f"{variable}: {complaint}")
        model["api_key"] = key


def _real_key(text: str | None) -> str:
    """``text`` stripped; "" if it is only the place where a key should be."""
    key = (text or "").strip()
    return "" if _PLACEHOLDER.fullmatch(key) else key


def _complaint(key: str) -> str:
    if key.isascii() and key.isprintable() and " " not in key:
        return ""
    return "the key has white space, controls or other characters in it that no key has: copy it again"


def _complete_endpoint(model: dict[str, Any], variable: str, environ: Mapping[str, str]) -> None:
    model.pop("endpoint", None)
    value = environ.get(variable, "").strip()
    if value and variable == "OLLAMA_HOST":
        value = _ollama_url(value)
    if not value:
        return
    try:
        split_url(value)
    except ValueError as error:
        raise SettingError(f"{variable}: {error}") from error
    model["endpoint"] = value


def _ollama_url(value: str) -> str:
    """``OLLAMA_HOST`` as Ollama reads it: scheme and port may be left out; 0.0.0.0, where the server listens, is this machine."""
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        port = parts.port or (None if "://" in value else _OLLAMA_PORT)
    except ValueError:
        return url  # no URL, and refused as such
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(parts.hostname or "", parts.hostname or "")  # noqa: S104 - read, not bound
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path}"


def require_keys(document: Document, config: AgentConfig, override: ModelOverride | None) -> None:
    """Stop where a model needs a key and has none.

    Raises:
        AgentFileError: The file names the model.
        SettingError: The command line names it.
    """
    models: list[tuple[KeyPath, LLMConfig]] = [(("model",), config.model)]
    models += [(("tools", i, "model"), t.model) for i, t in enumerate(config.tools) if isinstance(t, PromptTool) and t.model]
    for path, model in models:
        variable = _KEY_VARIABLES.get(model.provider)
        if variable is None or model.api_key is not None or _does_without(model):
            continue
        message = f"provider '{model.provider.value}' needs a key, and there is none: set the environment variable {variable}"
        if override and path == ("model",):
            raise override.error(message)
        raise document.at(path, f'{message}, or write api_key: "${{{variable}}}"')


def _does_without(model: LLMConfig) -> bool:
    """Whether the model's server may want no key."""
    return model.provider is Provider.OLLAMA or (model.provider is Provider.OPENAI and bool(model.endpoint))
