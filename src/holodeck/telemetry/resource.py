"""The resource as it may leave: every key and every text of it passes the gate as a label, and what is named like a secret is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holodeck.lib.redaction import REDACTED, Redactor
from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry.gate import Gate

__all__ = ["resource_attributes"]


def resource_attributes(settings: TelemetrySettings) -> dict[str, Any]:
    """``settings.resource`` without secrets, exportable."""
    gate = Gate(redaction_patterns=settings.redaction_patterns, limit=settings.attribute_length_limit)
    return _safe(settings.resource, gate, Redactor(settings.redaction_patterns))


def _safe(attributes: Mapping[Any, Any], gate: Gate, redact: Redactor) -> dict[str, Any]:
    safe: dict[str, Any] = {}
    for name, value in attributes.items():
        key = str(name)
        safe[gate.label(key)] = REDACTED if redact.names_secret(key) else _value(value, gate, redact)
    return safe


def _value(value: Any, gate: Gate, redact: Redactor) -> Any:
    if type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63):
        return value
    if isinstance(value, Mapping):
        return _safe(value, gate, redact)
    if isinstance(value, list | tuple):
        return [_value(each, gate, redact) for each in value]
    return gate.label(str(value))
