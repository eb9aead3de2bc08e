"""Semantic Kernel's connectors, made from a model's configuration; importing this module imports Semantic Kernel.

Clients get every setting explicitly (they read the environment otherwise), do not retry by themselves (each retry would be a request
without a span), and have no limit of their own on time: silence is measured by the backend.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from semantic_kernel.connectors.ai.function_call_choice_configuration import FunctionCallChoiceConfiguration
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior, FunctionChoiceType
from semantic_kernel.connectors.ai.open_ai import (
    AzureChatCompletion,
    AzureChatPromptExecutionSettings,
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents.utils.finish_reason import FinishReason
from semantic_kernel.functions.kernel_function_metadata import KernelFunctionMetadata

from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.models.llm import LLMConfig, Provider
from holodeck.models.tool_execution import ToolSpec

__all__ = ["Connection", "connect", "settings_with_tools"]

_OPENAI_URL: Final = "https://api.openai.com/v1"
_OLLAMA_URL: Final = "http://localhost:11434"
_AZURE_VERSION: Final = "2024-10-21"
_NO_KEY: Final = "not-needed"
_FINISH_REASONS: Final = frozenset(reason.value for reason in FinishReason)


@dataclass
class Connection:
    """A provider's client behind a Semantic Kernel connector.

    Attributes:
        service: The connector.
        settings: Makes a request's settings, given the tools to offer.
        url: Base URL for telemetry; "" where there is no server to name.
        closers: Called, and awaited where they are awaitable, when the connection is closed.
        tools: Whether tools can be offered.
        begin: Told the conversation's id before each request; for scripted models.
        notices: What the user should know.
    """

    service: Any
    settings: Callable[[Sequence[ToolSpec]], PromptExecutionSettings]
    url: str = ""
    closers: list[Callable[[], Any]] = field(default_factory=list)
    tools: bool = True
    begin: Callable[[str], None] | None = None
    notices: list[str] = field(default_factory=list)

    async def close(self) -> None:
        """Close the client and what was started for it."""
        for closer in self.closers:
            if inspect.isawaitable(result := closer()):
                await result


class _OfferTools(FunctionChoiceBehavior):
    """Offers tools to the model and leaves their execution to the turn loop.

    Semantic Kernel would rebuild each schema from its parts and lose what stands beside ``properties`` (``$defs``, ``anyOf``, …):
    the tool's own schema is put back.
    """

    specs: list[ToolSpec]
    inline: bool = False

    def get_config(self, kernel: Any) -> FunctionCallChoiceConfiguration:  # noqa: ARG002 - the signature is Semantic Kernel's
        offered = [
            KernelFunctionMetadata(name=_placeholder(n), description=s.description, is_prompt=False) for n, s in enumerate(self.specs)
        ]
        return FunctionCallChoiceConfiguration(available_functions=offered)

    def configure(self, kernel: Any, update_settings_callback: Callable[..., None], settings: Any) -> None:
        super().configure(kernel, update_settings_callback, settings)
        for spec, tool in zip(self.specs, settings.tools or (), strict=False):
            schema = inlined(spec.parameters) if self.inline else spec.parameters
            if "function" in tool:
                tool["function"].update(name=spec.name, parameters=schema)
            else:
                tool.update(name=spec.name, input_schema=schema)


def _placeholder(number: int) -> str:
    return f"tool_{number}"  # Semantic Kernel refuses some names that providers accept; the real one is put in by configure()


def settings_with_tools(settings: PromptExecutionSettings, tools: Sequence[ToolSpec], *, inline: bool = False) -> PromptExecutionSettings:
    """``settings`` that offer ``tools``, without automatic invocation; ``inline``: the provider cannot follow ``$ref``."""
    if tools:
        settings.function_choice_behavior = _OfferTools(
            type_=FunctionChoiceType.AUTO, maximum_auto_invoke_attempts=0, specs=list(tools), inline=inline
        )
    return settings


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with its local references replaced by what they name; a schema that contains itself is cut where it does."""
    definitions = schema.get("$defs", {})

    def resolve(value: Any, seen: frozenset[str]) -> Any:
        if isinstance(value, list):
            return [resolve(v, seen) for v in value]
        if not isinstance(value, dict):
            return value
        name = str(value.get("$ref", "")).removeprefix("#/$defs/")
        if name in seen:
            return {"type": "object"}
        if name in definitions:
            rest = {k: v for k, v in value.items() if k != "$ref"}
            return resolve({**definitions[name], **rest}, seen | {name})
        return {k: resolve(v, seen) for k, v in value.items() if k != "$defs"}

    result: dict[str, Any] = resolve(schema, frozenset())
    return result


def connect(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """The connection for ``config``.

    Raises:
        ConfigError: What the provider needs is missing.
    """
    return _CONNECT[config.provider](config, environ)


class _TextBesideCalls:
    """Keeps an assistant's text beside its tool calls in the next request; Semantic Kernel drops it. Accepts any finish reason."""

    def _prepare_chat_history_for_request(self, chat_history: Any, role_key: str = "role", content_key: str = "content") -> Any:
        prepared = super()._prepare_chat_history_for_request(chat_history, role_key, content_key)  # type: ignore[misc]
        pairs = zip(prepared, chat_history.messages, strict=True)
        return [entry | {content_key: message.content} if "tool_calls" in entry and message.content else entry for entry, message in pairs]

    def _create_streaming_chat_message_content(self, chunk: Any, choice: Any, *rest: Any) -> Any:
        if choice.finish_reason is not None and choice.finish_reason not in _FINISH_REASONS:
            choice.finish_reason = FinishReason.STOP.value
        return super()._create_streaming_chat_message_content(chunk, choice, *rest)  # type: ignore[misc]


class _OpenAI(_TextBesideCalls, OpenAIChatCompletion):
    """OpenAI chat completions."""


class _Azure(_TextBesideCalls, AzureChatCompletion):
    """Azure OpenAI chat completions."""


def openai_connection(config: LLMConfig, url: str, key: str, *, through_proxy: bool = True) -> Connection:
    """A connection to an OpenAI-compatible server at ``url``; ``through_proxy``: the environment's proxy settings count."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415 - only if used

    http = DefaultAsyncHttpxClient(trust_env=through_proxy, timeout=None)
    client = AsyncOpenAI(api_key=key, base_url=url, organization="", project="", max_retries=0, timeout=None, http_client=http)
    service = _OpenAI(ai_model_id=config.name or "model", async_client=client, env_file_path=NO_ENV_FILE)
    # OpenAI's reasoning models refuse max_tokens; compatible servers often know nothing else.
    limit = "max_tokens" if config.endpoint or config.provider is Provider.LOCAL else "max_completion_tokens"
    values = _present(temperature=config.temperature, top_p=config.top_p, **{limit: config.max_tokens})
    return Connection(service, lambda tools: settings_with_tools(OpenAIChatPromptExecutionSettings(**values), tools), url, [client.close])


def _openai(config: LLMConfig, environ: Mapping[str, str]) -> Connection:  # noqa: ARG001 - one signature for all providers
    return openai_connection(config, config.endpoint or _OPENAI_URL, _key(config))


def _azure(config: LLMConfig, environ: Mapping[str, str]) -> Connection:  # noqa: ARG001 - one signature for all providers
    from openai import AsyncAzureOpenAI  # noqa: PLC0415 - only if used

    client = AsyncAzureOpenAI(
        api_key=_key(config),
        azure_endpoint=str(config.endpoint),
        azure_deployment=config.name,
        api_version=config.api_version or _AZURE_VERSION,
        organization="",
        max_retries=0,
        timeout=None,
    )
    service = _Azure(deployment_name=config.name, async_client=client, env_file_path=NO_ENV_FILE)
    values = _present(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens)

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        return settings_with_tools(AzureChatPromptExecutionSettings(**values), tools)

    return Connection(service, settings, str(config.endpoint), [client.close])


def _anthropic(config: LLMConfig, environ: Mapping[str, str]) -> Connection:  # noqa: ARG001 - one signature for all providers
    from holodeck.backends.anthropic import anthropic_connection  # noqa: PLC0415 - only if used

    return anthropic_connection(config, _key(config))


def _ollama(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    from ollama import AsyncClient  # noqa: PLC0415 - only if used
    from semantic_kernel.connectors.ai.ollama import OllamaChatCompletion, OllamaChatPromptExecutionSettings  # noqa: PLC0415 - only if used

    url = config.endpoint or environ.get("OLLAMA_HOST") or _OLLAMA_URL
    client = AsyncClient(host=url, timeout=None)
    service = OllamaChatCompletion(ai_model_id=config.name, client=client, env_file_path=NO_ENV_FILE)
    options = _present(temperature=config.temperature, top_p=config.top_p, num_predict=config.max_tokens)

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        # Ollama's client keeps type, items, description and enum of a property, and drops the rest.
        return settings_with_tools(OllamaChatPromptExecutionSettings(options=options or None), tools, inline=True)

    return Connection(service, settings, url, [client._client.aclose])  # noqa: SLF001 - the client has no public way to be closed


def _local(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    from holodeck.backends.local import local_connection  # noqa: PLC0415 - an optional extra

    return local_connection(config, environ)


def _scripted(config: LLMConfig, environ: Mapping[str, str]) -> Connection:  # noqa: ARG001 - one signature for all providers
    from holodeck.backends.scripted import scripted_connection  # noqa: PLC0415 - only if used

    return scripted_connection(config)


def _key(config: LLMConfig) -> str:
    return config.api_key.get_secret_value() if config.api_key else _NO_KEY


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


_CONNECT: Final = {
    Provider.OPENAI: _openai,
    Provider.AZURE_OPENAI: _azure,
    Provider.ANTHROPIC: _anthropic,
    Provider.OLLAMA: _ollama,
    Provider.LOCAL: _local,
    Provider.SCRIPTED: _scripted,
}
