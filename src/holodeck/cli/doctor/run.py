"""One visit to the doctor: every check, the report, the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

from holodeck.cli.console import Notes, Streams, streams_for_lines
from holodeck.cli.doctor.agent import Examined, check_agent, check_tools, load
from holodeck.cli.doctor.findings import Finding, Setting, all_well, bad, note
from holodeck.cli.doctor.report import Report, as_json
from holodeck.cli.doctor.state import check_state
from holodeck.cli.doctor.telemetry import check_canary, check_queue, settings_of
from holodeck.cli.quiet import mute_libraries
from holodeck.config import resolve_telemetry
from holodeck.errors import ConfigError
from holodeck.models.observability import ObservabilityConfig, TelemetrySettings

__all__ = ["examine"]


def examine(agent: Path | None, environ: Mapping[str, str], *, observability: bool | None, seconds: float, json: bool) -> int:
    """Check everything, write the report to standard output, and say the exit code: 1 if anything failed.

    Args:
        agent: The agent file; None checks telemetry only.
        environ: The environment.
        observability: ``--observability`` or ``--no-observability``; None leaves it to the environment and the agent file.
        seconds: Longest wait for each thing that may not answer.
        json: Write one JSON object.
    """
    streams = streams_for_lines()
    mute_libraries(streams.notes, verbose=False)
    visit = _Visit(streams, seconds, quiet=json)
    settings = visit.go(agent, environ, observability=observability)
    if json:
        streams.answers.write(as_json(visit.findings, settings) + "\n")
        streams.answers.flush()
    return 0 if all_well(visit.findings) else 1


class _Visit:
    """Checks one thing after the other, and shows what was found as it is found."""

    def __init__(self, streams: Streams, seconds: float, *, quiet: bool) -> None:
        self._seconds, self._report = seconds, None if quiet else Report(Notes(streams.answers, lossless=True))
        self.findings: list[Finding] = []

    def go(self, agent: Path | None, environ: Mapping[str, str], *, observability: bool | None) -> list[Setting]:
        examined = load(agent, environ) if agent else Examined(None, "", ())
        self._take(iter(examined.findings))
        if agent and examined.loaded is None:
            self._take(iter([note("telemetry", "checked without the agent file, as the environment alone says")]))
        self._take(check_state(environ))
        if examined.loaded is not None:
            self._take(check_agent(examined, environ, self._seconds))
            self._take(iter(asyncio.run(check_tools(examined.loaded, self._seconds))))
        config = examined.loaded.config.observability if examined.loaded else ObservabilityConfig()
        rows = self._telemetry(config, environ, observability=observability)
        if self._report:
            self._report.verdict(self.findings)
        return rows

    def _telemetry(self, config: ObservabilityConfig, environ: Mapping[str, str], *, observability: bool | None) -> list[Setting]:
        try:
            settings = resolve_telemetry(config, environ, observability=observability)
        except ConfigError as error:
            self._take(iter([bad("telemetry settings", error.message)]))
            return []
        rows = settings_of(settings)
        if self._report:
            self._report.heading("Telemetry: every setting, and where it came from")
            self._report.settings(rows)
            self._report.heading("The way to the collector")
        self._take(self._way(settings, environ))
        return rows

    def _way(self, settings: TelemetrySettings, environ: Mapping[str, str]) -> Iterator[Finding]:
        for warning in settings.warnings:
            yield note("telemetry settings", warning)
        yield from check_canary(settings, self._seconds)
        yield from check_queue(environ)

    def _take(self, findings: Iterator[Finding]) -> None:
        for finding in findings:
            self.findings.append(finding)
            if self._report:
                self._report.finding(finding)
