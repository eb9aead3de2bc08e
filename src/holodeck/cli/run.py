"""A chat from its arguments to its exit code: load, talk, close."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

from pydantic import ValidationError

from holodeck.api import Agent, Session, load_agent
from holodeck.cli.above import AboveWriter
from holodeck.cli.budget import Budget
from holodeck.cli.console import Streams, streams_for_lines, streams_for_terminal
from holodeck.cli.conversation import Conversation
from holodeck.cli.lines import Lines
from holodeck.cli.progress import Progress
from holodeck.cli.quiet import mute_libraries
from holodeck.cli.signals import Signals, Stop
from holodeck.cli.views import JsonView, TextView, TurnView
from holodeck.errors import ConfigError
from holodeck.models.chat import ChatConfig
from holodeck.models.tool_execution import ToolExecution
from holodeck.recording import Recorder, record, replay

__all__ = ["ChatOptions", "run_chat"]

_KEPT_TURNS: Final = 100
"""Turns whose spans stay in memory for /trace."""


@dataclass(frozen=True)
class ChatOptions:
    """What the command line says.

    Attributes:
        config: The chat's configuration.
        observability: ``--observability`` or ``--no-observability``; None leaves it to the environment and the agent file.
        model: ``--model``.
        messages: The values of ``-m``, in order.
        trace_file: ``--trace-file``.
        capture_content: ``--capture-content``; None leaves it to the environment and the agent file.
        record: ``--record``.
        redact: ``--redact``.
        replay_tools: ``--replay-tools``.
        as_json: ``--json``.
        yes: ``--yes``.
        no_history: ``--no-history``.
        max_cost: ``--max-cost``, US dollars.
        max_tokens: ``--max-tokens``.
    """

    config: ChatConfig
    observability: bool | None = None
    model: str | None = None
    messages: tuple[str, ...] = ()
    trace_file: Path | None = None
    capture_content: bool | None = None
    record: Path | None = None
    redact: bool = False
    replay_tools: bool = False
    as_json: bool = False
    yes: bool = False
    no_history: bool = False
    max_cost: float | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, agent: Path, *, verbose: bool, max_messages: int, observability: bool | None, **others: Any) -> Self:
        """Options from the command's arguments.

        Raises:
            ConfigError: There is no agent file that can be read.
        """
        try:
            config = ChatConfig(
                agent_config_path=agent, verbose=verbose, enable_observability=bool(observability), max_messages=max_messages
            )
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{reason}: name an agent's YAML file ('holodeck init DIR' writes one)") from error
        if others["record"] and others["trace_file"] and others["record"].absolute() == others["trace_file"].absolute():
            raise ConfigError("--record and --trace-file name the same file: give each its own")
        if others["redact"] and not others["record"]:
            raise ConfigError("--redact does nothing without --record: what is shown on the terminal is not redacted")
        return cls(config, observability, **others)

    @property
    def interactive(self) -> bool:
        """There is somebody to talk with: both ends are a terminal, and nothing is to be read by a program."""
        ends = (sys.stdin, sys.stdout)
        return not self.messages and not self.as_json and all(end is not None and end.isatty() for end in ends)


def run_chat(options: ChatOptions) -> int:
    """Run a chat from beginning to end and say its exit code.

    Raises:
        ConfigError: Something is not usable; nothing is left running.
    """
    streams = streams_for_terminal() if options.interactive else streams_for_lines()
    mute_libraries(streams.notes, verbose=options.config.verbose)
    progress = Progress()
    agent = load_agent(
        options.config.agent_config_path,
        model=options.model,
        observability=options.observability,
        capture_content=options.capture_content,
        trace_file=options.trace_file,
        keep_turns=_KEPT_TURNS,
        on_progress=progress,
    )
    replay(agent, tools=options.replay_tools)
    recorder = record(agent, options.record, redact=options.redact) if options.record else None
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_Chat(options, streams, agent, progress, recorder).run())
    finally:
        _end(loop)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """End what is left in the loop, without waiting for its worker threads: Semantic Kernel may still be loading in one."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    with suppress(Exception):
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=0.5))
        loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), timeout=0.5))


async def _allowed(execution: ToolExecution) -> bool:
    del execution
    return True


class _Chat:
    """One chat: its session, its signals, and its way out."""

    def __init__(self, options: ChatOptions, streams: Streams, agent: Agent, progress: Progress, recorder: Recorder | None) -> None:
        self._options, self._streams, self._agent, self._progress = options, streams, agent, progress
        self._recorder = recorder
        self._budget = Budget(options.max_cost, options.max_tokens)
        self._budget.check(agent)
        # A tool whose result comes from a recording does not run, so there is nothing to allow.
        approve = _allowed if options.yes or options.replay_tools else None
        self._session = Session(agent, max_messages=options.config.max_messages, approve=approve)
        self._stop = Stop()
        self._signals = Signals(self._ended, self._interrupted)

    async def run(self) -> int:
        """Talk, and close everything whatever happens; returns the exit code."""
        self._signals.install()
        try:
            code = await self._talk()
        finally:
            recorded = await self._close()
        if self._recorder is not None and not recorded:
            self._say_nothing_was_recorded(self._recorder.path)
        return code if self._stop.code is None else self._stop.code

    async def _talk(self) -> int:
        config, streams = self._options.config, self._streams
        if streams.interactive:
            return await self._talk_in_terminal()
        if config.verbose:
            self._progress.listener = streams.notes.hint
        self._say_what_is_denied()
        as_json = self._options.as_json
        view = JsonView(streams, verbose=config.verbose) if as_json else TextView(streams, verbose=config.verbose)
        conversation = self._conversation(view)
        return await Lines(conversation, self._options.messages, self._stop, echo=config.verbose).run()

    def _say_what_is_denied(self) -> None:
        asking = [tool.name for tool in self._agent.config.tools if tool.approval == "ask"]
        if asking and self._session.approve is None:
            self._streams.notes.warning(f"nobody can be asked here, so calls are denied (--yes allows them): {', '.join(asking)}")

    async def _talk_in_terminal(self) -> int:
        from holodeck.cli.live import LiveView  # noqa: PLC0415 - a pipe needs no prompt_toolkit
        from holodeck.cli.shell import Shell  # noqa: PLC0415 - as above

        notes, verbose = self._streams.notes, self._options.config.verbose
        model = self._agent.config.model.label
        view = LiveView(notes, verbose=verbose, waiting_for=model) if notes.animated else None
        conversation = self._conversation(view or TextView(self._streams, verbose=verbose))
        writer = cast(AboveWriter, self._streams.answers)
        history = not self._options.no_history
        shell = Shell(conversation, self._signals, self._stop, self._progress, view=view, writer=writer, history=history)
        return await shell.run()

    def _conversation(self, view: TurnView) -> Conversation:
        verbose, quiet = self._options.config.verbose, self._options.as_json
        return Conversation(self._session, view, self._streams.notes, verbose=verbose, quiet=quiet, budget=self._budget)

    async def _close(self) -> bool:
        """Close everything; returns whether there is a recording."""
        await self._session.close()
        report = await self._agent.close()
        for notice in self._agent.delivery_notices:
            self._streams.notes.warning(notice)
        if report is not None and (sentence := report.sentence()):
            self._streams.notes.warning(sentence)
        if self._recorder is None or not self._recorder.save():
            return False
        self._streams.notes.hint(f"recorded: {self._recorder.path}")
        return True

    def _say_nothing_was_recorded(self, path: Path) -> None:
        left = "is left as it was" if path.exists() else "is not written"
        self._streams.notes.hint(f"nothing was recorded, since no model was asked: {path} {left}")

    def _interrupted(self) -> None:
        """SIGINT where nothing else is said: the running turn ends, and the chat with it."""
        self._stop.set(128 + signal.SIGINT)
        self._session.cancel()

    def _ended(self, number: int) -> None:
        self._stop.set(128 + number)
        self._session.cancel("terminated")
