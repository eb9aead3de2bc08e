"""Samplers by the names of the OpenTelemetry specification."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

__all__ = ["make_sampler"]


def make_sampler(name: str, argument: float | None) -> Sampler:
    """The sampler ``OTEL_TRACES_SAMPLER=name`` with ``OTEL_TRACES_SAMPLER_ARG=argument``; turns it drops are still seen in the terminal."""
    base = name.removeprefix("parentbased_")
    roots = {"always_on": ALWAYS_ON, "always_off": ALWAYS_OFF, "traceidratio": TraceIdRatioBased(1.0 if argument is None else argument)}
    sampler: Sampler = roots[base]
    return _LocallyVisible(ParentBased(sampler) if name != base else sampler)


class _LocallyVisible(Sampler):
    """Records what the inner sampler drops without marking it as sampled: exporters leave it out, ``/trace`` shows it."""

    def __init__(self, inner: Sampler) -> None:
        self._inner = inner

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The inner sampler's decision, with DROP turned into RECORD_ONLY."""
        result = self._inner.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if result.decision is Decision.DROP:
            return SamplingResult(Decision.RECORD_ONLY, result.attributes, result.trace_state)
        return result

    def get_description(self) -> str:
        """The inner sampler's description."""
        return self._inner.get_description()
