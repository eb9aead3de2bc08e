"""Runs cases: side by side, repeated, each turn a trace with the case's name, each case with a verdict."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.trace import Span

from holodeck.api import Session, load_agent
from holodeck.backends.script import SCRIPT_EXHAUSTED
from holodeck.errors import ConfigError
from holodeck.models.events import TurnError, TurnResult
from holodeck.recording import replay
from holodeck.telemetry import Evaluation
from holodeck.telemetry.semconv import TEST_CASE
from holodeck.testing.cases.plan import PlannedCase
from holodeck.testing.cases.results import Attempt, CaseResult
from holodeck.testing.environ import is_switched_off, make_telemetry, quiet_environ, sampled_environ
from holodeck.testing.memory import SpanCollector
from holodeck.testing.outcome import Failure, Outcome
from holodeck.testing.spans import record_of
from holodeck.testing.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from holodeck.chat import Agent
    from holodeck.telemetry import DeliveryReport
    from holodeck.traces import SpanRecord

__all__ = ["AgentSource", "run_cases"]

_NO_LIMIT: Final = 1_000_000
_case: ContextVar[str] = ContextVar("case", default="")


def _name_the_case(span: Span) -> None:
    """Put the case's name on the root of each turn, when it begins: a span that has ended takes nothing more."""
    if span.parent is None and (name := _case.get()):
        span.set_attribute(TEST_CASE, name)


@dataclass
class AgentSource:
    """Loads the agent under test, once for each model that answers.

    Attributes:
        file: The agent file.
        model: ``PROVIDER/NAME`` that answers whatever the cases say; None leaves it to them.
        replay_tools: Results of tools come from scripts and recordings, whatever the cases say.
        options: More arguments of :func:`holodeck.load_agent`.
        warnings: What the user should know about the agent file, one line each; complete after the first agent is loaded.
    """

    file: Path
    model: str | None = None
    replay_tools: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    _spans: SpanCollector = field(default_factory=lambda: SpanCollector(_name_the_case))
    _agents: dict[tuple[str | None, bool], Agent] = field(default_factory=dict)

    def agent(self, case: PlannedCase) -> Agent:
        """The agent for ``case``, not necessarily open.

        Raises:
            ConfigError: It cannot be used; a recording of another agent is refused.
        """
        key = (self.model or case.model, self.replay_tools or case.replay_tools)
        if key not in self._agents:
            agent = load_agent(self.file, model=key[0], telemetry_options={"span_processors": [self._spans]}, **self._load_options())
            self.warnings.update(dict.fromkeys(agent.warnings))
            make_telemetry(agent)
            replay(agent, tools=key[1])
            self._agents[key] = agent
        return self._agents[key]

    def _load_options(self) -> dict[str, Any]:
        if is_switched_off(os.environ):  # nothing is sent, and spans are recorded all the same: cases look at them
            return {**self.options, "observability": False, "environ": quiet_environ(os.environ)}
        return {"environ": sampled_environ(os.environ), **self.options}

    def taken(self, results: Sequence[TurnResult]) -> tuple[list[SpanRecord], SpanContext | None]:
        """The spans of these turns, which are let go of, and the context of the last root."""
        records: list[SpanRecord] = []
        context: SpanContext | None = None
        for trace_id in (result.trace_id for result in results if result.trace_id):
            spans = self._spans.spans(trace_id)
            self._spans.forget(trace_id)
            records += map(record_of, spans)
            context = next((span.context for span in spans if span.parent is None), context)
        return records, context

    def forget(self, results: Sequence[TurnResult]) -> None:
        """Let go of what came after :meth:`taken`."""
        for result in results:
            self._spans.forget(result.trace_id or "")

    async def close(self) -> list[DeliveryReport]:
        """Close all agents; what became of their spans."""
        reports = await asyncio.gather(*(agent.close() for agent in self._agents.values()))
        return [report for report in reports if report is not None]


async def run_cases(
    cases: Sequence[PlannedCase],
    source: AgentSource,
    *,
    jobs: int = 1,
    repeat: int = 1,
    width: int = 100,
    on_done: Callable[[CaseResult], None] = lambda _: None,
) -> list[CaseResult]:
    """Run every case ``repeat`` times, ``jobs`` at a time.

    Every agent is loaded and opened, with its script or recording, before the first case runs. The source is closed by whoever made it.

    Args:
        cases: The cases.
        source: Where the agents come from.
        jobs: Most cases that run side by side.
        repeat: How often each case is run.
        width: Most cells of a line of a waterfall, which what did not pass is shown with.
        on_done: Called when all runs of a case have ended.

    Returns:
        A result for each case, in order.

    Raises:
        ConfigError: An agent, a script or a recording cannot be used; no case has run.
    """
    agents = [_checked_agent(case, source) for case in cases]
    await asyncio.gather(*(agent.open() for agent in dict.fromkeys(agents)))
    results = [CaseResult(case) for case in cases]
    waiting = iter([result for result in results for _ in range(repeat)])

    async def work(runs: Iterator[CaseResult]) -> None:
        for result in runs:
            result.attempts.append(await _attempt(result.case, source, width))
            if len(result.attempts) == repeat:
                on_done(result)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(jobs, len(cases) * repeat)):
            group.create_task(work(waiting))
    return results


def _checked_agent(case: PlannedCase, source: AgentSource) -> Agent:
    try:
        return source.agent(case)
    except ConfigError as error:
        if case.model is None or source.model is not None:
            raise
        raise ConfigError(f"{case.place}: {error.message}") from error


async def _attempt(case: PlannedCase, source: AgentSource, width: int) -> Attempt:
    agent = source.agent(case)
    token = _case.set(case.name)
    try:
        results = await _talk(case, agent)
    finally:
        _case.reset(token)
    spans, context = source.taken(results)
    attempt = _judged(case, results, spans)
    if not attempt.passed:
        attempt.shown = _shown(case, results, spans, width)
    if context is not None:
        agent.telemetry.evaluated(_evaluation(case, attempt), context)
        source.forget(results)
    return attempt


async def _talk(case: PlannedCase, agent: Agent) -> list[TurnResult]:
    """The turns, up to the first that failed."""
    results: list[TurnResult] = []
    async with Session(agent, max_messages=_NO_LIMIT) as session:
        for turn in case.turns:
            results.append(await session.send(turn.user))
            if results[-1].failed:
                break
    return results


def _judged(case: PlannedCase, results: list[TurnResult], spans: list[SpanRecord]) -> Attempt:
    outcome = Outcome(results, spans, case.prices)
    cost, usage = outcome.cost, outcome.usage
    return Attempt(
        failures=_failures(case, outcome),
        problem=_problem(case, results),
        tokens=usage.total_tokens if usage else None,
        cost=None if isinstance(cost, str) else cost,
        duration=outcome.duration,
        tools=tuple(call.tool_name for call in outcome.calls),
        trace_ids=tuple(result.trace_id for result in results if result.trace_id),
    )


def _failures(case: PlannedCase, outcome: Outcome) -> list[Failure]:
    failures = []
    for number, (turn, result) in enumerate(zip(case.turns, outcome.results, strict=False), 1):
        if turn.expect is not None:
            own = [span for span in outcome.spans if span.trace_id == result.trace_id]
            found = turn.expect.failures(Outcome([result], own, case.prices))
            failures += [Failure(f"turn {number}: {failure.kind}", failure.reason) for failure in found]
    if len(outcome.results) < len(case.turns) and not _expects_failure(case, outcome.results):
        failures.append(Failure("turns", f"only {len(outcome.results)} of {len(case.turns)} were sent"))
    expect = case.expect
    if _expects_failure(case, outcome.results) and expect.error is None:  # the turn has said that it is to fail
        outcome = Outcome([r.model_copy(update={"error": None}) for r in outcome.results], outcome.spans, case.prices)
    return failures + expect.failures(outcome)


def _expects_failure(case: PlannedCase, results: Sequence[TurnResult]) -> bool:
    turn = case.turns[len(results) - 1] if results else None
    return turn is not None and turn.expect is not None and turn.expect.error is not None


def _problem(case: PlannedCase, results: list[TurnResult]) -> str:
    """A script that has run out says nothing about the agent, unless that is expected by name, of the case or of its turn."""
    error: TurnError | None = results[-1].error if results else None
    if error is None or error.error_type != SCRIPT_EXHAUSTED:
        return ""
    own = case.turns[len(results) - 1].expect
    if SCRIPT_EXHAUSTED in (case.expect.error, own.error if own else None):
        return ""
    return f"{case.place}: case {case.name!r}: {error.message}"


def _evaluation(case: PlannedCase, attempt: Attempt) -> Evaluation:
    wanted = case.expect.count + sum(turn.expect.count for turn in case.turns if turn.expect)
    score = max(1 - len(attempt.failures) / wanted, 0.0) if attempt.failures else float(attempt.passed)
    kinds = ", ".join(dict.fromkeys(failure.kind for failure in attempt.failures))
    summary = f"not as expected: {kinds}" if kinds else ("the script has run out" if attempt.problem else "")
    return Evaluation(case.name, attempt.passed, score, summary, "\n".join(failure.text for failure in attempt.failures))


def _shown(case: PlannedCase, results: list[TurnResult], spans: list[SpanRecord], width: int) -> str:
    """The turns; that a script has run out is not said again, it is the case's problem."""
    parts = []
    for turn, result in zip(case.turns, results, strict=False):
        trace = Trace(turn.user, result, [span for span in spans if span.trace_id == result.trace_id])
        said = f"< {trace.text}" if trace.text else "<"
        if trace.error and not trace.text:
            said = "" if _problem(case, results) else f"! {trace.error.message}"
        parts.append(f"> {turn.user}\n{trace.waterfall(width)}\n{said}".rstrip("\n"))
    return "\n\n".join(parts)
