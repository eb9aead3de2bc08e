"""What the connectors of all providers share, and which module makes each; importing this module imports parts of Semantic Kernel.

Clients get every setting explicitly (they read the environment otherwise), do not retry by themselves (each retry would be a request
without a span), follow no redirect (another host would be sent the key and the conversation), and have no limit of their own on time:
silence is measured by the backend.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from semantic_kernel.connectors.ai.function_call_choice_configuration import FunctionCallChoiceConfiguration
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior, FunctionChoiceType
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.functions.kernel_function_metadata import KernelFunctionMetadata

from holodeck.backends import kernel
from holodeck.errors import ConfigError
from holodeck.models.llm import LLMConfig, Provider
from holodeck.models.tool_execution import ToolSpec

__all__ = ["Connection", "connect", "http_client", "inlined", "key_of", "present", "settings_with_tools"]

_NO_KEY: Final = "not-needed"
_CONNECT: Final = {
    Provider.OPENAI: "openai:openai_connection",
    Provider.AZURE_OPENAI: "azure_openai:azure_connection",
    Provider.ANTHROPIC: "anthropic:anthropic_connection",
    Provider.OLLAMA: "ollama:ollama_connection",
    Provider.LOCAL: "local:local_connection",
    Provider.SCRIPTED: "scripted:scripted_connection",
}
"""Where each provider's connection is made; a module is imported when its provider is used."""


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
    module, _, name = _CONNECT[config.provider].partition(":")
    connection: Connection = getattr(kernel.load(f"holodeck.backends.{module}"), name)(config, environ)
    return connection


def http_client(make: Callable[..., Any], **options: Any) -> Any:
    """What ``make`` makes of the ``options`` and of what all clients have in common.

    Raises:
        ConfigError: The environment names a proxy or certificates that cannot be used.
    """
    try:
        return make(follow_redirects=False, timeout=None, **options)
    except ImportError as error:
        raise ConfigError("the environment names a SOCKS proxy, which needs another package: pip install socksio") from error
    except OSError as error:
        raise ConfigError("SSL_CERT_FILE or SSL_CERT_DIR names certificates that cannot be read: check it") from error
    except Exception as error:  # the proxy's URL may hold a password, and the error quotes it
        raise ConfigError("the environment names a proxy that cannot be used: check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY") from error


def key_of(config: LLMConfig) -> str:
    """The API key, or a word that stands for none: clients insist on one."""
    return config.api_key.get_secret_value() if config.api_key else _NO_KEY


def present(**values: Any) -> dict[str, Any]:
    """The ``values`` that are not None."""
    return {name: value for name, value in values.items() if value is not None}
