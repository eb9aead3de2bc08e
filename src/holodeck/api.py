"""For programs: load an agent, talk to it. The ``holodeck`` command is built on this.

::

    import asyncio
    from holodeck import Session, load_agent

    async def main() -> None:
        agent = load_agent("agent.yaml")
        async with agent, Session(agent) as session:
            result = await session.send("Where is order 1042?")
            print(result.message.content if result.message else result.error.message)

    asyncio.run(main())
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from holodeck.chat import Agent, Session
from holodeck.config import LoadedAgent, load_agent_config, resolve_telemetry
from holodeck.errors import SettingError
from holodeck.models.observability import TelemetrySettings

if TYPE_CHECKING:
    from holodeck.telemetry import Telemetry

__all__ = ["Agent", "Session", "load_agent"]


def load_agent(
    path: str | Path,
    *,
    model: str | None = None,
    observability: bool | None = None,
    capture_content: bool | None = None,
    trace_file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    keep_turns: int = 0,
    on_progress: Callable[[str], None] | None = None,
    telemetry_options: Mapping[str, Any] | None = None,
) -> Agent:
    """Load an agent file and check everything that can be known before the first message.

    Args:
        path: The YAML file.
        model: ``PROVIDER/NAME`` instead of the file's model.
        observability: Send telemetry over OTLP; None leaves it to the environment and the file.
        capture_content: Open the content gate; None leaves it to the environment and the file.
        trace_file: Append OTLP/JSON lines there.
        environ: The environment; ``os.environ`` by default.
        keep_turns: How many turns' spans stay in memory, for ``agent.telemetry.trace(trace_id)``.
        on_progress: Told what takes long.
        telemetry_options: More keyword arguments for :func:`holodeck.telemetry.create_telemetry`, e.g. ``span_processors``.

    Returns:
        The agent, not yet open; an asynchronous context manager.

    Raises:
        ConfigError: One line with file, line and key, and what to do.
    """
    environ = os.environ if environ is None else environ
    loaded = load_agent_config(path, environ, model=model)
    settings = resolve_telemetry(
        loaded.config.observability,
        environ,
        observability=observability,
        capture_content=capture_content,
        trace_file=Path(trace_file) if trace_file is not None else None,
    )
    make_telemetry = _factory(settings, {"keep_turns": keep_turns, "environ": environ, **(telemetry_options or {})})
    return _agent(loaded, str(path), environ, settings, make_telemetry, on_progress)


def _agent(
    loaded: LoadedAgent,
    file: str,
    environ: Mapping[str, str],
    settings: TelemetrySettings,
    make_telemetry: Callable[[], Telemetry],
    on_progress: Callable[[str], None] | None,
) -> Agent:
    return Agent(
        loaded.config,
        instructions=loaded.instructions,
        directory=loaded.directory,
        file=file,
        environ=environ,
        settings=settings,
        make_telemetry=make_telemetry,
        on_progress=on_progress,
        warnings=(*loaded.warnings, *settings.warnings),
        line_of=loaded.document.line_of,
    )


def _factory(settings: TelemetrySettings, options: dict[str, Any]) -> Callable[[], Telemetry]:
    path = None if settings.disabled else settings.trace_file
    opened = []
    if path is not None:
        opened.append(_open_trace_file(path))  # that it cannot be written has to be known before the first message
        if path.is_file():
            opened.pop().close()  # but a pipe that is closed again ends for who reads it

    def make() -> Telemetry:
        from holodeck.telemetry import create_telemetry  # noqa: PLC0415 - the SDK is imported behind the first prompt

        file = opened.pop() if opened else _open_trace_file(path) if path else None
        return create_telemetry(settings, trace_file=file, **options)

    return make


def _open_trace_file(path: Path) -> BinaryIO:
    """``path``, opened for appending; readable by its owner only if it is new."""
    _refuse_other_files(path)
    try:
        # Not to wait here for somebody who reads a pipe.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise SettingError(f"--trace-file {path}: nobody reads this pipe: start its reader first") from error
        raise SettingError(
            f"--trace-file {path}: cannot be written ({error.strerror}): name a file in a directory you may write to"
        ) from error
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "ab", buffering=0)


def _refuse_other_files(path: Path) -> None:
    """Lines are appended to a file of lines, or to a new one, and never to somebody's agent file."""
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            begin = file.read(1)
    except OSError:
        return  # opening it to write will say why it cannot be used
    if begin not in (b"", b"{"):
        raise SettingError(f"--trace-file {path}: this file holds something else than lines of OTLP/JSON: name another one")
