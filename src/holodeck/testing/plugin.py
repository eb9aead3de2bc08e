"""The pytest plugin: fixtures ``chat`` and ``telemetry``.

Every pytest run imports this module, also that of a project with no agent in it: nothing but pytest is imported here, the rest inside the
fixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from holodeck.testing.chat import Chat
    from holodeck.testing.loop import LoopThread
    from holodeck.testing.memory import MemoryTelemetry

__all__: list[str] = []

_MARKER: Final = (
    "holodeck(agent='agent.yaml', script=None, sequential_ids=False, fake_clock=False): "
    "what the fixtures 'chat' and 'telemetry' do where the test does not say it"
)
_OPTIONS: Final = frozenset({"agent", "script", "sequential_ids", "fake_clock"})
_chats = pytest.StashKey[list[Any]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def _holodeck_loop() -> Iterator[LoopThread]:
    """The event loop of all agents under test."""
    from holodeck.testing.loop import LoopThread  # noqa: PLC0415 - see the module's docstring

    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture
def _holodeck_telemetry(request: pytest.FixtureRequest) -> Iterator[MemoryTelemetry]:
    """What the agents of a test record; under a name that no test overrides."""
    from holodeck.testing.deterministic import FakeClock, SequentialIds  # noqa: PLC0415 - as above
    from holodeck.testing.memory import MemoryTelemetry  # noqa: PLC0415 - as above

    options = _options(request.node)
    _check_current_span("before the test")
    with ExitStack() as stack:
        if options.get("fake_clock"):
            stack.enter_context(FakeClock())
        telemetry = MemoryTelemetry(SequentialIds() if options.get("sequential_ids") else None)
        yield telemetry
    if left := telemetry.unfinished:
        pytest.fail(f"spans are still open after the test: {', '.join(left)}", pytrace=False)
    _check_current_span("after the test")


def _check_current_span(when: str) -> None:
    from opentelemetry import trace  # noqa: PLC0415 - see the module's docstring

    current = trace.get_current_span()
    if current.get_span_context().is_valid:
        pytest.fail(f"a span is current {when}: {getattr(current, 'name', current)}", pytrace=False)


@pytest.fixture
def telemetry(_holodeck_telemetry: MemoryTelemetry) -> MemoryTelemetry:
    """Spans, metrics and log records of the agents under test, in memory."""
    return _holodeck_telemetry


@pytest.fixture
def chat(request: pytest.FixtureRequest, _holodeck_telemetry: MemoryTelemetry, _holodeck_loop: LoopThread) -> Iterator[Callable[..., Chat]]:
    """Start conversations: ``chat("agent.yaml", script=["It shipped."]).send("Where is order 1042?")``.

    Paths are looked for beside the test file, then in the root directory. Arguments that are not given are those of the marker
    ``holodeck``.
    """
    from holodeck.testing.chat import Chat  # noqa: PLC0415 - see the module's docstring

    options, started = _options(request.node), request.node.stash.setdefault(_chats, [])

    def start(agent: str | Path | None = None, *, script: str | Path | Sequence[Any] | None = None, **more: Any) -> Chat:
        file = _found(request, agent if agent is not None else options.get("agent", "agent.yaml"))
        replies = script if script is not None else options.get("script")
        if options.get("sequential_ids"):
            more.setdefault("session_id", _session_id(len(started) + 1))
        path = None if replies is None else _script(request, replies, len(started) + 1)
        started.append(Chat.load(file, _holodeck_telemetry, _holodeck_loop, script=path, draw=False, **more))
        return started[-1]  # type: ignore[no-any-return]  # the stash holds anything

    yield start
    for conversation in started:
        conversation.close()


def _options(node: pytest.Item) -> Mapping[str, Any]:
    options: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("holodeck"))):  # the nearest one counts
        options |= marker.kwargs
        if marker.args or (unknown := set(marker.kwargs) - _OPTIONS):
            what = f"{', '.join(sorted(unknown))} is unknown" if not marker.args else "arguments need names"
            raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.holodeck: {what}; there are {', '.join(sorted(_OPTIONS))}")
    return options


def _session_id(number: int) -> Any:
    from uuid import UUID  # noqa: PLC0415 - see the module's docstring

    return UUID(f"00000000-0000-4000-8000-{number:012x}")


def _found(request: pytest.FixtureRequest, path: str | Path) -> Path:
    places = [Path(request.path).parent, Path(request.config.rootpath), Path.cwd()]
    return next((place / path for place in places if (place / path).exists()), places[0] / path)


def _script(request: pytest.FixtureRequest, script: str | Path | Sequence[Any], number: int) -> Path:
    if isinstance(script, str | Path):
        return _found(request, script)
    from holodeck.testing.chat import write_script  # noqa: PLC0415 - see the module's docstring

    directory: Path = request.getfixturevalue("tmp_path")
    return write_script(script, directory / f".scripts-{number}" / "script.yaml")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """A test that fails shows what its agents did."""
    report = yield
    conversations = item.stash.get(_chats, ())
    if report.failed and report.when == "call" and conversations:
        shown = [part for conversation in conversations for trace in conversation.traces for part in _shown(trace)]
        report.sections.append(("HoloDeck traces", "\n".join(shown)))
    return report


def _shown(trace: Any) -> list[str]:
    from holodeck.lib.validation import terminal_safe  # noqa: PLC0415 - see the module's docstring

    said = f"< {trace.text}" if trace.text else f"! {trace.error.message}" if trace.error else "<"
    return [terminal_safe(f"> {trace.prompt}"), trace.waterfall(), terminal_safe(said), ""]
