"""LLMConfig: which model answers, and how it is asked."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from holodeck.models.base import Float, HttpUrl, Int, Strict
from holodeck.models.cost import Price

__all__ = ["LLMConfig", "Provider"]


class Provider(str, Enum):
    """Who answers. ``local`` and ``scripted`` need no key and no network."""

    OPENAI = "openai"
    AZURE_OPENAI = "azure_openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    LOCAL = "local"
    SCRIPTED = "scripted"


class LLMConfig(Strict):
    """The ``model`` section of an agent file.

    Attributes:
        provider: Who answers.
        name: Model name as the provider knows it (for ``azure_openai`` the deployment). ``local``: a pulled model; ``scripted``: free.
        path: ``local`` only: a GGUF file, relative to the agent file.
        script: ``scripted`` only: a script file, relative to the agent file.
        temperature: 0 to 2.
        max_tokens: Longest answer in tokens.
        top_p: 0 to 1.
        endpoint: Base URL of a compatible server.
        api_key: The key; never shown.
        api_version: ``azure_openai`` only.
        timeout: Longest silence between two chunks in seconds; not a limit on the whole answer.
        price: What tokens of this model cost, where the price list does not know or does not apply.
    """

    provider: Provider
    name: str = ""
    path: Path | None = None
    script: Path | None = None
    temperature: Float | None = Field(default=None, ge=0, le=2)
    max_tokens: Int | None = Field(default=None, gt=0)
    top_p: Float | None = Field(default=None, ge=0, le=1)
    endpoint: HttpUrl | None = None
    api_key: SecretStr | None = None
    api_version: str | None = None
    timeout: Float = Field(default=60.0, gt=0)
    price: Price | None = None

    @model_validator(mode="after")
    def _fields_fit_the_provider(self) -> Self:
        if self.provider is Provider.SCRIPTED and self.script is None:
            raise ValueError("provider 'scripted' needs 'script: FILE.yaml'")
        if self.provider is Provider.LOCAL and not (self.name or self.path):
            raise ValueError("provider 'local' needs 'name' (a pulled model, e.g. smollm2) or 'path: FILE.gguf'")
        if self.provider not in (Provider.SCRIPTED, Provider.LOCAL) and not self.name.strip():
            raise ValueError(f"provider '{self.provider.value}' needs 'name'")
        if self.provider is Provider.AZURE_OPENAI and not self.endpoint:
            raise ValueError("provider 'azure_openai' needs 'endpoint: https://RESOURCE.openai.azure.com'")
        self._refuse_strangers()
        return self

    def _refuse_strangers(self) -> None:
        owners = {"path": Provider.LOCAL, "script": Provider.SCRIPTED, "api_version": Provider.AZURE_OPENAI}
        for field, owner in owners.items():
            if getattr(self, field) is not None and self.provider is not owner:
                raise ValueError(f"'{field}' belongs to provider '{owner.value}' and does nothing for '{self.provider.value}'")
        for field in ("endpoint", "api_key"):
            if getattr(self, field) is not None and self.provider in (Provider.LOCAL, Provider.SCRIPTED):
                raise ValueError(f"'{field}' does nothing for '{self.provider.value}', which calls no server: remove it")

    @property
    def title(self) -> str:
        """The model's name; where it has none, that of its file without the ending."""
        file = self.path or self.script
        return self.name or (file.stem if file else "")

    @property
    def label(self) -> str:
        """``provider/name`` for people."""
        return f"{self.provider.value}/{self.title}"
