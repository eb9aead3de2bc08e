"""Attributes of the resource that every span, metric and log record carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from holodeck.config.environment import Environment, Precedence
from holodeck.lib.validation import exportable
from holodeck.version import __version__

if TYPE_CHECKING:
    from holodeck.models.observability import ObservabilityConfig

__all__ = ["resolve_resource"]

_FILE: Final = "agent file"


def resolve_resource(config: ObservabilityConfig, environment: Environment, precedence: Precedence) -> dict[str, Any]:
    """The resource's attributes; a later source replaces an earlier one, key by key.

    Defaults (``service.name`` = ``holodeck``, ``service.version``, a new ``service.instance.id``) < ``resource_attributes`` of the agent
    file < its ``service_name`` < ``OTEL_RESOURCE_ATTRIBUTES`` < ``OTEL_SERVICE_NAME``.

    Raises:
        SettingError: ``OTEL_RESOURCE_ATTRIBUTES`` has an entry that is no pair, and that matters to ``environment``.
    """
    attributes: dict[str, Any] = {}
    for source, values in _layers(config, environment):
        for key, value in values.items():
            attributes[key] = exportable(value) if isinstance(value, str) else value
            precedence.sources[f"resource.{key}"] = source
    return attributes


def _layers(config: ObservabilityConfig, environment: Environment) -> list[tuple[str, dict[str, Any]]]:
    attributes_source, pairs = environment.pairs("OTEL_RESOURCE_ATTRIBUTES")
    name_source, name = environment.text("OTEL_SERVICE_NAME")
    service = (config.service_name or "").strip()
    return [
        ("default", {"service.name": "holodeck", "service.version": __version__, "service.instance.id": str(uuid4())}),
        (_FILE, {exportable(key): value for key, value in config.resource_attributes.items()}),
        (_FILE, {"service.name": service} if service else {}),
        (attributes_source, dict(pairs or ())),
        (name_source, {"service.name": name} if name else {}),
    ]
