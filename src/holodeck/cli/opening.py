"""Opening the session behind the prompt: Semantic Kernel and MCP servers take seconds, typing need not wait for them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from holodeck.cli.conversation import Conversation
from holodeck.errors import HoloDeckError

__all__ = ["Opening"]


class Opening:
    """Opens a conversation's session once, and again if that failed.

    Args:
        conversation: Its session is opened; its notes say what went wrong.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._task: asyncio.Task[bool] | None = None

    def begin(self) -> asyncio.Task[bool] | None:
        """Begin, unless there has been an attempt: what failed is tried again when a message needs it, not at every prompt.

        Returns:
            As :meth:`start`, or None if there has been one.
        """
        return self.start() if self._task is None else None

    @property
    def done(self) -> bool:
        """The session is open."""
        return self._task is not None and self._task.done() and not self._task.cancelled() and self._task.result()

    def start(self) -> asyncio.Task[bool]:
        """Begin, unless it is under way or done; after a failure begin again.

        Returns:
            A task that never raises; False means that it failed, and that this was said.
        """
        if self._task is None or (self._task.done() and not self.done):
            self._task = asyncio.create_task(self._open(), name="open the session")
        return self._task

    async def close(self) -> None:
        """Give up what is still under way."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _open(self) -> bool:
        try:
            await self._conversation.session.open()
        except HoloDeckError as error:
            return self._failed(error.message)
        except Exception as error:  # noqa: BLE001 - whatever it was, the user can read it and try again
            return self._failed(f"the agent could not be loaded ({type(error).__name__}: {error})")
        self._conversation.opened()
        return True

    def _failed(self, message: str) -> bool:
        self._conversation.notes.error(message)
        return False
