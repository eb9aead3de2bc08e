"""The ``azure_openai`` provider: chat completions of a deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from openai import AsyncAzureOpenAI, DefaultAsyncHttpxClient
from semantic_kernel.connectors.ai.open_ai import AzureChatCompletion, AzureChatPromptExecutionSettings
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings

from holodeck.backends.connectors import Connection, http_client, key_of, present, settings_with_tools
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.backends.openai import AnyEvents, ChatCompletions
from holodeck.backends.places import base_of
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["azure_connection"]

_VERSION: Final = "2024-10-21"


class _Client(AnyEvents, AsyncAzureOpenAI):
    """Azure OpenAI's client."""


class _Azure(ChatCompletions, AzureChatCompletion):
    """Azure OpenAI chat completions."""


def azure_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to the deployment ``config.name`` at ``config.endpoint``."""
    del environ
    base, query = base_of(str(config.endpoint))
    client = _Client(
        api_key=key_of(config),
        azure_endpoint=base,
        azure_deployment=config.name,
        api_version=config.api_version or _VERSION,
        default_query=query,
        organization="",
        project="",
        max_retries=0,
        timeout=None,
        http_client=http_client(DefaultAsyncHttpxClient),
    )
    service = _Azure(deployment_name=config.name, async_client=client, env_file_path=NO_ENV_FILE)
    values = present(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens)

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        return settings_with_tools(AzureChatPromptExecutionSettings(**values), tools)

    return Connection(service, settings, str(config.endpoint), [client.close])
