"""An agent that can be talked to: its model, its tools and its telemetry, shared by all of its sessions."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from holodeck.backends import Backend, create_backend
from holodeck.errors import SessionError
from holodeck.models.agent import AgentConfig, PromptTool
from holodeck.models.llm import LLMConfig
from holodeck.models.observability import TelemetrySettings
from holodeck.tools import Toolbox

if TYPE_CHECKING:
    from holodeck.telemetry import DeliveryReport, Telemetry

__all__ = ["Agent"]


class Agent:
    """One agent: a configuration, a provider client, tools, telemetry.

    Nothing is connected before :meth:`open`; what can be known before is checked here.

    Args:
        config: The agent as its file describes it.
        instructions: The system prompt.
        directory: What relative paths of the tools refer to.
        file: Name of the agent file for messages.
        environ: The environment.
        settings: Telemetry settings after precedence.
        make_telemetry: Makes the telemetry when it is first needed; importing OpenTelemetry's SDK takes a tenth of a second.
        on_progress: Told what takes long, e.g. starting an MCP server.
        warnings: What the user should know about the agent file, one line each.
        line_of: Finds the line of a dotted key of the agent file, for messages.

    Raises:
        ConfigError: A tool, a script or a local model cannot be used.
    """

    def __init__(
        self,
        config: AgentConfig,
        *,
        instructions: str | None,
        directory: Path,
        file: str,
        environ: Mapping[str, str],
        settings: TelemetrySettings,
        make_telemetry: Callable[[], Telemetry],
        on_progress: Callable[[str], None] | None = None,
        warnings: tuple[str, ...] = (),
        line_of: Callable[[str], int] | None = None,
    ) -> None:
        self.config, self.instructions, self.file, self.warnings = config, instructions, file, warnings
        self._make_telemetry, self._telemetry = make_telemetry, None
        self.settings = settings
        self.backend = create_backend(config.model, environ)
        self.backend.check(config.name)
        self._others = {id(t.model): create_backend(t.model, environ) for t in config.tools if isinstance(t, PromptTool) and t.model}
        self.toolbox = Toolbox(
            config.tools, directory, agent_file=file, line_of=line_of, traceparent=_traceparent(), on_progress=on_progress
        )
        self._opening, self._closing = asyncio.Lock(), asyncio.Lock()
        self.is_open, self._is_shut_down, self._times_closed = False, False, 0

    _telemetry: Telemetry | None
    is_open: bool
    """Whether it can be talked to: :meth:`open` has succeeded, and :meth:`close` was not called since."""

    @property
    def telemetry(self) -> Telemetry:
        """The agent's telemetry, made on first use; of an agent that is closed, what has become of it."""
        if self._telemetry is None:
            self._telemetry = self._make_telemetry()
        return self._telemetry

    @property
    def notices(self) -> list[str]:
        """What the user should know about the model; complete after :meth:`open`."""
        lines = list(self.backend.notices)
        if self.toolbox.specs and not self.backend.offers_tools:
            lines.append("the agent's tools are not offered to this model")
        return lines

    @property
    def delivery_notices(self) -> list[str]:
        """What the user should know about the delivery of telemetry, one line each; empty while telemetry was not used."""
        return list(self._telemetry.notices) if self._telemetry is not None else []

    def backend_for(self, model: LLMConfig | None) -> Backend:
        """The backend of a prompt tool's own model, or the agent's."""
        return self.backend if model is None else self._others[id(model)]

    def needs_approval(self, tool: str) -> bool:
        """Whether the tool that is offered as ``tool`` runs only once the user has allowed it; for a server's tools after :meth:`open`."""
        owner = self.toolbox.owner(tool)
        return owner is not None and owner.approval == "ask"

    def intercept(self, backend: Callable[[Backend], Backend], toolbox: Callable[[Toolbox], Toolbox]) -> None:
        """Put something between the agent and its models and tools, e.g. what records them; before :meth:`open`.

        Args:
            backend: Given the agent's own backend, then those of prompt tools that have their own; returns what is asked instead.
            toolbox: Given the toolbox; returns what is called instead.
        """
        self.backend = backend(self.backend)
        self._others = {key: backend(other) for key, other in self._others.items()}
        self.toolbox = toolbox(self.toolbox)

    async def open(self) -> None:
        """Load Semantic Kernel and the provider's client, start the MCP servers. Idempotent; an agent that was closed can be opened again.

        Raises:
            ConfigError: Something cannot be used; nothing is left half started.
            SessionError: The agent was closed meanwhile.
        """
        async with self._opening:
            if self.is_open:
                return
            async with self._closing:  # what is being closed would take along what is opened now
                before = self._times_closed
            if self._is_shut_down:
                self._telemetry, self._is_shut_down = None, False  # what has been shut down records nothing any more
            try:
                await asyncio.gather(self.toolbox.open(), *(b.open() for b in (self.backend, *self._others.values())))
                await asyncio.to_thread(lambda: self.telemetry)
            except BaseException:
                await self._release()
                raise
            if self._times_closed != before:
                await self.close()
                raise SessionError("the agent was closed while it was opened: open it again")
            self.is_open = True

    async def close(self) -> DeliveryReport | None:
        """End MCP servers and clients, then export what is left; None if telemetry was never used. Idempotent, bounded."""
        self.is_open = False
        self._times_closed += 1
        async with self._closing:
            if self._telemetry is None:
                await self._release()
                return None
            self._is_shut_down = True
            # Side by side: each has a bound of its own, and leaving has one for both.
            report, _ = await asyncio.gather(asyncio.to_thread(self._telemetry.shutdown), self._release())
            return report

    async def _release(self) -> None:
        await asyncio.gather(self.toolbox.close(), *(b.close() for b in (self.backend, *self._others.values())))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def _traceparent() -> str:
    # MCP servers start before the first turn: what they do on their own gets a trace of its own; each call carries the tool span's context.
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
