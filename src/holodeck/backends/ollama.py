"""The ``ollama`` provider: models that Ollama serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ollama import AsyncClient
from semantic_kernel.connectors.ai.ollama import OllamaChatCompletion, OllamaChatPromptExecutionSettings
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings

from holodeck.backends.connectors import Connection, present, settings_with_tools
from holodeck.backends.kernel import NO_ENV_FILE
from holodeck.models.llm import LLMConfig
from holodeck.models.tool_execution import ToolSpec

__all__ = ["ollama_connection"]

_URL: Final = "http://localhost:11434"


def ollama_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """A connection to ``config.endpoint``, ``OLLAMA_HOST`` of ``environ``, or this machine."""
    url = config.endpoint or environ.get("OLLAMA_HOST") or _URL
    client = AsyncClient(host=url, timeout=None)
    service = OllamaChatCompletion(ai_model_id=config.name, client=client, env_file_path=NO_ENV_FILE)
    options = present(temperature=config.temperature, top_p=config.top_p, num_predict=config.max_tokens)

    def settings(tools: Sequence[ToolSpec]) -> PromptExecutionSettings:
        # Ollama's client keeps type, items, description and enum of a property, and drops the rest.
        return settings_with_tools(OllamaChatPromptExecutionSettings(options=options or None), tools, inline=True)

    return Connection(service, settings, url, [client._client.aclose])  # noqa: SLF001 - the client has no public way to be closed
