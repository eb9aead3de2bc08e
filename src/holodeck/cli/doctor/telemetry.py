"""Checks of the way to the collector, and the settings that lead there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from holodeck.cli.doctor.findings import Finding, Setting, bad, good, note
from holodeck.cli.footer import trace_link
from holodeck.errors import ConfigError
from holodeck.lib.redaction import REDACTED, Redactor
from holodeck.models.observability import OtlpTarget, TelemetrySettings

__all__ = ["check_canary", "check_queue", "settings_of"]

_SIGNALS: Final = ("traces", "metrics", "logs")
_CANARIES: Final = {"traces": "canary span", "metrics": "canary metric"}


def settings_of(settings: TelemetrySettings) -> list[Setting]:
    """Every setting with its value and where that came from; values of headers are hidden, secrets elsewhere redacted."""
    redact = Redactor(settings.redaction_patterns)
    rows = []
    for name, source in settings.sources.items():
        found, value = _value(settings, name)
        if found:
            rows.append(Setting(redact(name), _shown(name, value, redact), source))
    return rows


def _value(settings: TelemetrySettings, name: str) -> tuple[bool, Any]:
    """Whether there is something to show under this name, and what."""
    group, _, key = name.partition(".")
    if group == "resource":
        return True, settings.resource.get(key)
    if group == "limits":
        return True, getattr(settings.limits, key)
    if group not in _SIGNALS or not key:
        return hasattr(settings, name), getattr(settings, name, None)
    target = getattr(settings, group)
    if key == "enabled":
        return True, target is not None
    return target is not None, getattr(target, key, None)


def _shown(name: str, value: Any, redact: Redactor) -> str:
    if name.endswith(".headers"):
        return ", ".join(f"{header}={REDACTED}" for header in value) or "none"
    if name.endswith((".url", "jaeger_url")) and value:
        return _safe_url(str(value), redact)
    if name.startswith("resource.") and redact.names_secret(name.removeprefix("resource.")):
        return REDACTED
    return redact(_plain(value) + (" s" if name.endswith(".timeout") else ""))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)


def _safe_url(url: str, redact: Redactor) -> str:
    """A URL whose query, where keys are sometimes put, shows its names only."""
    parts = urlsplit(url)
    query = urlencode({name: "..." for name, _ in parse_qsl(parts.query, keep_blank_values=True)})
    return redact(urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")))


def check_canary(settings: TelemetrySettings, seconds: float) -> Iterator[Finding]:
    """Send a span and a measurement to where those of turns go, and say who took them or what to do.

    Nothing is sent where no telemetry goes out.
    """
    if settings.traces is None and settings.metrics is None:
        why = "OTEL_SDK_DISABLED=true" if settings.disabled else "telemetry stays in this terminal"
        yield note("canary", f"{why}: nothing is sent (--observability tries the way to the collector)", skipped=True)
        return
    from holodeck.telemetry.probe import make_canary, send_canary  # noqa: PLC0415 - the OTLP messages, only where something is sent

    canary = make_canary(settings)
    for signal, title in _CANARIES.items():
        target: OtlpTarget | None = getattr(settings, signal)
        if target is None:
            yield note(title, f"no {signal} are sent with these settings", skipped=True)
            continue
        answer = send_canary(target, signal, canary, min(seconds, target.timeout))
        place = _safe_url(target.url, Redactor(settings.redaction_patterns))
        if answer.accepted:
            yield good(title, f"accepted by {place} ({answer.by}){_seen(signal, canary.trace_id, settings)}")
        else:
            by = f" ({answer.by})" if answer.by else ""
            yield bad(title, f"not accepted by {place}{by}: {answer.reason}", _fix(target, answer, signal, seconds))


def _seen(signal: str, trace_id: str, settings: TelemetrySettings) -> str:
    if signal != "traces":
        return ""
    link = trace_link(trace_id, settings)
    return f", {link}" if link else f", trace {trace_id}"


def _fix(target: OtlpTarget, answer: Any, signal: str, seconds: float) -> str:
    from holodeck.telemetry.probe import fix_for, look_at  # noqa: PLC0415 - loaded by now

    parts = urlsplit(target.url)
    listener = look_at(parts.hostname or "", parts.port or (80 if target.insecure else 443), min(seconds, 3.0))
    return fix_for(target, answer, listener, signal)


def check_queue(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The spans of earlier runs that wait, and those that a collector did not accept."""
    from holodeck.telemetry.spool import set_aside, spool_status  # noqa: PLC0415 - as above

    try:
        entries, aside = spool_status(environ), set_aside(environ)
    except ConfigError as error:
        yield bad("queue", error.message)
        return
    waiting = sum(entry.spans for entry in entries if not entry.live)
    if waiting:
        yield note("queue", f"{waiting} spans of earlier runs wait", fix="'holodeck trace spool flush' sends them now")
    if aside.spans:
        yield note("queue", f"{aside.spans} spans were not accepted and are not sent again: {aside.directory}")
    if not waiting and not aside.spans:
        yield good("queue", "no span of an earlier run waits")
