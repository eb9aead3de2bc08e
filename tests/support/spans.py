"""Plain spans of a tracer of our own, and a queue for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from holodeck.models.observability import OtlpTarget
from holodeck.telemetry.delivery import Counters
from holodeck.telemetry.spool.directories import SpoolSettings
from holodeck.telemetry.spool.processor import SpoolProcessor
from holodeck.telemetry.spool.queue import SpanQueue

__all__ = ["Spans", "names_in", "queues", "spans_to", "target_of"]


def target_of(url: str, protocol: str = "http/protobuf", **options: Any) -> OtlpTarget:
    """A target for spans; ``url`` is the receiver's base."""
    return OtlpTarget(url=url if protocol == "grpc" else f"{url}/v1/traces", protocol=protocol, **options)


class Spans:
    """A tracer whose spans go to a queue.

    Attributes:
        counters: What became of them.
        notices: What the queue has said.
    """

    def __init__(self, root: Path, target: OtlpTarget, limits: dict[str, Any] | None = None, **options: Any) -> None:
        self.counters, self.notices = Counters(), list[str]()
        settings = SpoolSettings(root, **(limits or {}))
        self.queue = SpanQueue(target, settings, self.counters, self.notices.append, **{"delay": 60.0, **options})
        self._provider = TracerProvider(resource=Resource({"service.name": "spans"}), shutdown_on_exit=False)
        self._provider.add_span_processor(SpoolProcessor(self.queue))
        self.tracer = self._provider.get_tracer("user code")

    def make(self, *names: str, **attributes: Any) -> None:
        """Start and end a span of each name."""
        for name in names:
            self.tracer.start_span(name, attributes=attributes).end()

    @property
    def statistics(self) -> Any:
        """The counters, with what waits."""
        return self.counters.statistics(self.queue.queued)

    def accounted(self) -> bool:
        """Whether every span is somewhere."""
        now = self.statistics
        return now.made + now.recovered == now.delivered + now.queued + now.rejected + sum(now.dropped.values())


@contextmanager
def spans_to(root: Path, target: OtlpTarget, **options: Any) -> Iterator[Spans]:
    """Spans whose queue is shut down at the end."""
    made = Spans(root, target, **options)
    try:
        yield made
    finally:
        made.queue.shutdown(1.0)


def names_in(receiver: Any, want: Callable[[Any], bool] = lambda _: True) -> list[str]:
    """The names of the spans that arrived, in order."""
    return [span.name for span in receiver.spans if want(span)]


def queues(root: Path) -> list[Path]:
    """The directories of queues below ``root``."""
    return [path for path in root.iterdir() if path.name != "rejected"]
