"""Chat: a conversation with an agent under test."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from yaml import YAMLError

from holodeck.api import Session, load_agent
from holodeck.errors import HoloDeckError, SessionError
from holodeck.lib.problems import one_line
from holodeck.lib.yaml_writer import write_yaml
from holodeck.recording import replay
from holodeck.testing.environ import make_telemetry, quiet_environ
from holodeck.testing.trace import Trace

if TYPE_CHECKING:
    from holodeck.chat import Agent
    from holodeck.models.events import TurnResult
    from holodeck.testing.loop import LoopThread
    from holodeck.testing.memory import MemoryTelemetry

__all__ = ["Chat", "write_script"]


class Chat:
    """One conversation. Each message sent is a turn, and each turn a :class:`Trace`.

    Args:
        agent: Not yet open; opened with the first message.
        telemetry: Where the agent records.
        loop: Where everything runs.
        session_id: Id of the conversation; random by default.
        max_messages: Most user and assistant messages.
        draw: Messages of failed checks hold the waterfall.

    Attributes:
        agent: Who answers.
        session: The conversation.
        traces: The turns so far.
    """

    def __init__(
        self,
        agent: Agent,
        telemetry: MemoryTelemetry,
        loop: LoopThread,
        *,
        session_id: UUID | None = None,
        max_messages: int = 1000,
        draw: bool = True,
    ) -> None:
        self.agent, self.traces = agent, list[Trace]()
        self.session = Session(agent, max_messages=max_messages)
        self._telemetry, self._loop, self._session_id, self._draw = telemetry, loop, session_id, draw
        self._closed = False

    @classmethod
    def load(
        cls,
        file: str | Path,
        telemetry: MemoryTelemetry,
        loop: LoopThread,
        *,
        script: Path | None = None,
        model: str | None = None,
        replay_tools: bool = False,
        capture_content: bool | None = None,
        environ: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Chat:
        """A conversation with the agent of a file.

        Args:
            file: The agent file.
            telemetry: Where the agent records.
            loop: Where everything runs.
            script: A script or a recording that answers in place of the file's model.
            model: ``PROVIDER/NAME`` that answers in place of the file's model.
            replay_tools: Results of tools come from the script.
            capture_content: Open the content gate; None leaves it to the agent file.
            environ: The environment for ``${VAR}`` and keys; that of the process by default.
            options: Those of :class:`Chat`.

        Raises:
            ConfigError: The agent or the script cannot be used.
        """
        agent = load_agent(
            file,
            model=f"scripted/{script}" if script is not None else model,
            observability=False,
            capture_content=capture_content,
            environ=quiet_environ(os.environ if environ is None else environ),
            telemetry_options=telemetry.options(),
        )
        make_telemetry(agent)
        replay(agent, tools=replay_tools)
        return cls(agent, telemetry, loop, **options)

    def send(self, text: str) -> Trace:
        """Send a message and wait for the end of the turn. A turn that fails is a trace with an ``error``.

        Raises:
            InputError: The message cannot be sent.
            ConfigError: The agent cannot be used.
            SessionError: The conversation is closed.
        """
        return self._keep(text, self._loop.run(self._send(text)))

    async def asend(self, text: str) -> Trace:
        """The same for an asynchronous test."""
        return self._keep(text, await self._loop.wait(self._send(text)))

    async def _send(self, text: str) -> TurnResult:
        if self._closed:
            raise SessionError("this conversation is closed: start another one")
        await self.session.open()
        if self._session_id is not None and not self.traces:
            self.session.chat.session_id = self._session_id
        return await self.session.send(text)

    def _keep(self, text: str, result: TurnResult) -> Trace:
        spans = self._telemetry.trace(result.trace_id) if result.trace_id else []
        self.traces.append(Trace(text, result, spans, draw=self._draw))
        return self.traces[-1]

    def close(self) -> None:
        """End the conversation and everything that the agent started; idempotent."""
        self._closed = True
        self._loop.run(self._close())

    async def _close(self) -> None:
        try:
            await self.session.close()
        finally:
            await self.agent.close()


def write_script(replies: Sequence[str | Mapping[str, Any]], path: Path) -> Path:
    """Write a script to ``path``, whose directory is made; a reply that is a text is said as it is.

    Raises:
        HoloDeckError: The replies are no list, or one of them is no plain data.
    """
    if isinstance(replies, Mapping):
        raise HoloDeckError("script: must be a list of replies, or the path of a file: leave out 'replies:'")
    data = {"replies": [{"text": reply} if isinstance(reply, str) else reply for reply in replies]}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_text(write_yaml(data), encoding="utf-8")
    except YAMLError as error:
        raise HoloDeckError(f"script: replies are texts and plain data: {one_line(str(error.args[0]), 200)}") from error
    return path
