"""A test run from its arguments to its exit code: load, run, report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from holodeck.cli.console import Notes, Streams, streams_for_lines
from holodeck.cli.quiet import mute_libraries
from holodeck.cli.test_report import Report, TestProgress
from holodeck.errors import ConfigError, SettingError
from holodeck.testing.cases import (
    AgentSource,
    Baseline,
    CaseResult,
    PlannedCase,
    check_junit,
    find_case_files,
    load_baseline,
    load_cases,
    run_cases,
    save_baseline,
    write_junit,
)
from holodeck.testing.cases.baseline import DEFAULT_TOLERANCE, Tolerance
from holodeck.testing.matching import is_like

__all__ = ["TestOptions", "run_test"]

_FAILED: Final = 1
_UNUSABLE: Final = 2
_NOTHING_RAN: Final = 5
_TEST_CASES: Final = "'evaluations' is not acted upon"
"""A warning of the agent file that concerns test cases and is said of them."""


@dataclass(frozen=True)
class TestOptions:
    """What the command line says; see ``holodeck test --help``."""

    __test__ = False  # pytest takes a name like this for a class of tests

    agent: Path
    cases: tuple[Path, ...] = ()
    pattern: str | None = None
    jobs: int = 1
    repeat: int = 1
    pass_rate: float | None = None
    model: str | None = None
    replay_tools: bool = False
    baseline: Path | None = None
    update: bool = False
    tolerance: tuple[str, ...] = ()
    junit_xml: Path | None = None
    observability: bool | None = None
    trace_file: Path | None = None
    capture_content: bool | None = None
    verbose: bool = False

    def check(self) -> None:
        """Refuse what means nothing.

        Raises:
            ConfigError: An option needs another one.
        """
        if self.update and self.baseline is None:
            raise SettingError("--update: name the file that is written with --baseline FILE")
        if self.tolerance and self.baseline is None:
            raise SettingError("--tolerance: name the file that is compared with --baseline FILE")
        if not self.agent.is_file():
            raise ConfigError(f"Agent config not found: {self.agent}: name an agent's YAML file")
        for option, path in (("--junit-xml", self.junit_xml), ("--baseline", self.baseline)):
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
                raise SettingError(f"{option} {path}: cannot be written: name a file in a directory that exists")
        if self.junit_xml is not None:
            check_junit(self.junit_xml)


def run_test(options: TestOptions) -> int:
    """Run the cases and say the exit code.

    Raises:
        ConfigError: Something is not usable; no case has run.
    """
    options.check()
    streams = streams_for_lines()
    mute_libraries(streams.notes, verbose=options.verbose)
    baseline = _baseline(options)
    tolerance = _tolerance(options.tolerance, baseline)
    cases, warnings = load_cases(find_case_files(options.agent, options.cases), options.agent)
    chosen = [_with_rate(case, options.pass_rate) for case in cases if _matches(case, options.pattern)]
    report = Report(Notes(streams.answers, lossless=True), streams.notes)
    source = _source(options)
    ended: list[CaseResult] = []
    try:
        results = _run(chosen, source, options, streams, report.width, ended.append)
    except (KeyboardInterrupt, SystemExit):
        _compare(ended, baseline, tolerance, options)
        _write(_in_order(chosen, ended), ended, options, report)
        raise
    report.warn([*warnings, *(line for line in source.warnings if not line.endswith(_TEST_CASES))])
    return _finished(results, baseline, tolerance, options, report)


def _source(options: TestOptions) -> AgentSource:
    shared = {
        "observability": options.observability,
        "capture_content": options.capture_content,
        "trace_file": options.trace_file,
    }
    return AgentSource(options.agent, options.model, options.replay_tools, shared)


def _run(
    cases: list[PlannedCase], source: AgentSource, options: TestOptions, streams: Streams, width: int, on_done: Callable[[CaseResult], None]
) -> list[CaseResult]:
    if not cases:
        return []

    async def run() -> list[CaseResult]:
        try:
            with TestProgress(streams.notes, len(cases)) as progress:

                def done(result: CaseResult) -> None:
                    on_done(result)
                    progress.done(result)

                return await run_cases(cases, source, jobs=options.jobs, repeat=options.repeat, width=width, on_done=done)
        finally:
            for sentence in filter(None, (report.sentence() for report in await source.close())):
                streams.notes.warning(sentence)

    with asyncio.Runner() as runner:
        return runner.run(run())


def _in_order(cases: Sequence[PlannedCase], ended: Sequence[CaseResult]) -> list[CaseResult]:
    """A result for each case; one without an attempt for those that have not ended."""
    by_case = {id(result.case): result for result in ended}
    return [by_case.get(id(case)) or CaseResult(case) for case in cases]


def _compare(results: Sequence[CaseResult], baseline: Baseline | None, tolerance: Tolerance | None, options: TestOptions) -> None:
    if baseline is None or options.update:
        return
    for result in results:
        result.drift = baseline.compare(result, tolerance)


def _write(results: Sequence[CaseResult], ended: Sequence[CaseResult], options: TestOptions, report: Report) -> None:
    """Write what is reported: the file first, since whoever reads the rest may be gone by then. The exit code stays what it is."""
    if options.junit_xml is not None:
        write_junit(options.junit_xml, results)
    with suppress(BrokenPipeError):
        report.show(ended, repeated=options.repeat > 1, left=len(results) - len(ended))


def _finished(
    results: list[CaseResult], baseline: Baseline | None, tolerance: Tolerance | None, options: TestOptions, report: Report
) -> int:
    if not results:
        report.nothing(bool(options.pattern))
        return _NOTHING_RAN
    _compare(results, baseline, tolerance, options)
    _write(results, results, options, report)
    if any(result.problem for result in results):
        return _UNUSABLE
    if not all(result.passed for result in results):
        return _FAILED
    if options.baseline is not None and options.update:
        save_baseline(options.baseline, results, baseline, tolerance)
        report.accepted(options.baseline, len(results))
    return 0


def _baseline(options: TestOptions) -> Baseline | None:
    if options.baseline is None or (options.update and not options.baseline.exists()):
        return None
    return load_baseline(options.baseline)


def _tolerance(values: tuple[str, ...], baseline: Baseline | None) -> Tolerance | None:
    """What the options say; of what they leave out, what the baseline says."""
    known: dict[str, Any] = (baseline.tolerance if baseline else DEFAULT_TOLERANCE).model_dump()
    for value in values:
        name, _, part = value.partition("=")
        try:
            number = float(part.removesuffix("%")) / (100 if part.endswith("%") else 1)
        except ValueError:
            number = -1.0
        if name not in known or not 0 <= number < float("inf"):
            raise SettingError(f"--tolerance {value}: write {' or '.join(known)}, '=' and a part such as 0.2 or 20%")
        known[name] = number
    return Tolerance(**known) if values else None


def _matches(case: PlannedCase, pattern: str | None) -> bool:
    if pattern is None:
        return True
    name, wanted = case.name.lower(), pattern.lower()
    return is_like(name, wanted) if "*" in wanted else wanted in name


def _with_rate(case: PlannedCase, rate: float | None) -> PlannedCase:
    return case if rate is None else replace(case, pass_rate=rate)
