"""``holodeck trace spool``: the spans that wait for a collector, and a way to send them now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from holodeck.cli.trace.page import Page
from holodeck.config import load_agent_config, resolve_telemetry
from holodeck.errors import SettingError
from holodeck.models.observability import ObservabilityConfig, OtlpTarget
from holodeck.telemetry.spool import FlushReport, SpoolEntry, flush_spool, set_aside, spool_status
from holodeck.traces import clean, fit, format_count, format_duration

__all__ = ["flush", "list_spool"]


def list_spool(environ: Mapping[str, str], page: Page) -> None:
    """Write what waits for each destination, and what was set aside.

    Raises:
        SettingError: A limit in the environment is not a number.
    """
    entries, aside = spool_status(environ), set_aside(environ)
    for (url, protocol), queues in _by_destination(entries).items():
        _write(page, f"{url or 'an unknown destination'} ({protocol or '?'})", "name")
        _write(page, f"  {_joined(_waiting(queues, ascii_only=page.ascii), page)}", "time")
        _write(page, f"  {_joined(_queues(queues), page)}", "dim")
    if entries:
        _write(page, f"in {entries[0].directory.parent}", "dim")
    if aside.spans:
        _write(page, f"{_spans(aside.spans)} set aside: a collector did not accept them, and they are not sent again", "error")
        _write(page, f"  {aside.directory}", "dim")
    if not entries and not aside.spans:
        _write(page, "no span waits to be sent", "dim")


def _write(page: Page, text: str, style: str) -> None:
    """Write a line: cut in a terminal, whole elsewhere; an indented one stays indented."""
    indent = "  " if text.startswith(" ") else ""
    shown = clean(text, ascii_only=page.ascii)
    page.text(indent + (fit(shown, page.width - len(indent), ascii_only=page.ascii) if page.limited else shown), style)


def _by_destination(entries: Sequence[SpoolEntry]) -> dict[tuple[str, str], list[SpoolEntry]]:
    """The queues of each URL and protocol, in the order of the oldest."""
    groups: dict[tuple[str, str], list[SpoolEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.url, entry.protocol), []).append(entry)
    return groups


def _waiting(queues: Sequence[SpoolEntry], *, ascii_only: bool) -> Iterator[str]:
    """What waits: how many spans, how large, how old."""
    waiting = sum(queue.spans for queue in queues)
    yield f"{_spans(waiting)} wait" if waiting != 1 else "1 span waits"
    if opened := sum(queue.open_spans for queue in queues if queue.live):
        yield f"{opened:,} open"
    if crashed := sum(queue.crashed_spans for queue in queues):
        yield f"{crashed:,} cut off by a crash"
    yield f"{(sum(queue.size for queue in queues) + 1023) // 1024:,} KiB"
    if times := [queue.oldest for queue in queues if queue.oldest is not None]:
        age = (datetime.now(UTC) - min(times)).total_seconds()
        yield f"oldest {format_duration(max(age, 0.0), ascii_only=ascii_only)}"
    if damaged := sum(queue.damaged for queue in queues):
        yield f"{damaged:,} bytes unreadable"


def _queues(queues: Sequence[SpoolEntry]) -> Iterator[str]:
    """Whose spans they are."""
    live = sum(queue.live for queue in queues)
    if live:
        yield f"{live} running process{'es' * (live != 1)}"
    if left := len(queues) - live:
        yield f"{left} ended process{'es' * (left != 1)}"
    if (headers := len({queue.headers_sha256 for queue in queues})) > 1:
        yield f"{headers} sets of headers, each sent with its own only"


def _joined(facts: Iterable[str], page: Page) -> str:
    return (" - " if page.ascii else " · ").join(facts)


def flush(agent: Path | None, environ: Mapping[str, str], seconds: float, page: Page) -> bool:
    """Send what waits for the destination that agent file and environment name; returns whether nothing is left for it.

    Raises:
        ConfigError: The agent file cannot be used, or nothing is sent anywhere with these settings.
    """
    target = _target(agent, environ)
    report = flush_spool(target, environ, seconds)
    for sentence in _sentences(report):
        _write(page, sentence, "name")
    return not (report.kept or report.rejected or any(report.dropped.values()))


def _target(agent: Path | None, environ: Mapping[str, str]) -> OtlpTarget:
    config = load_agent_config(agent, environ).config.observability if agent else ObservabilityConfig()
    settings = resolve_telemetry(config, environ, observability=True)
    if settings.traces is None:
        why = "OTEL_SDK_DISABLED=true switches telemetry off" if settings.disabled else "the settings send no spans anywhere"
        raise SettingError(f"nothing can be sent: {why}")
    return settings.traces


def _sentences(report: FlushReport) -> Sequence[str]:
    lines = [f"{_spans(report.delivered)} delivered to {report.url}"]
    why = f": {report.reason}" if report.reason else ""
    if report.rejected:
        lines.append(f"{_spans(report.rejected)} refused for good{why}")
    if report.kept:
        lines.append(f"{_spans(report.kept)} kept for later{why}")
    lines += [f"{_spans(number)} given up ({reason})" for reason, number in report.dropped.items() if number]
    if report.live:
        lines.append(f"{report.live} running process{'es send theirs' if report.live != 1 else ' sends its own'}")
    if report.other_destinations:
        lines.append(
            f"{report.other_destinations} other queue{'s' * (report.other_destinations != 1)} not touched: other destination or headers"
        )
    return [*lines, *report.notices]


def _spans(number: int) -> str:
    return "1 span" if number == 1 else f"{format_count(number) if number else 'no'} spans"
