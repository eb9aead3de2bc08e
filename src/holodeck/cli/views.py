"""What is shown of a turn: as a conversation, or as one JSON object."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol
from uuid import UUID

from holodeck.cli.answer import AnswerWriter
from holodeck.cli.console import Notes, Streams
from holodeck.cli.toollines import show_execution
from holodeck.errors import HoloDeckError
from holodeck.models.events import TextDelta, ToolFinished, ToolStarted, TurnEvent, TurnResult

__all__ = ["ConversationView", "JsonView", "TextView", "TurnView"]


class TurnView(Protocol):
    """Shows one turn after the other.

    Attributes:
        verbose: Tools with everything that went in and out.
    """

    verbose: bool

    def begin(self) -> None:
        """A message is on its way."""

    def show(self, event: TurnEvent) -> None:
        """Something happened in the running turn."""

    def asking(self) -> AbstractContextManager[None]:
        """The user is asked something while the turn waits: what was said so far comes first."""

    def finish(self, result: TurnResult, session_id: UUID) -> None:
        """The turn has ended."""

    def refuse(self, error: HoloDeckError, session_id: UUID | None) -> None:
        """A message was not sent, or a command not done; the session may not be open yet."""

    def abandon(self) -> None:
        """Something else went wrong: leave the screen in order."""


class ConversationView:
    """What all views for people do when a turn is over, whatever they show of it before.

    Args:
        notes: Where it is said what went wrong.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def abandon(self) -> None:
        """Leave the screen in order."""
        raise NotImplementedError

    def finish(self, result: TurnResult, session_id: UUID) -> None:
        """Leave the screen in order, and say why the turn failed if it did."""
        del session_id
        self.abandon()
        if result.error is None:
            return
        if result.interrupted:
            self._notes.hint(result.error.message)
        else:
            self._notes.error(result.error.message, whole=True)

    def refuse(self, error: HoloDeckError, session_id: UUID | None) -> None:
        """Say why."""
        del session_id
        self._notes.error(error.message)


class TextView(ConversationView):
    """The answer as it streams, a line for each tool, and what went wrong: for pipes, and for terminals without a cursor.

    Attributes:
        verbose: Tools with everything that went in and out.

    Args:
        streams: Where to.
        verbose: See above.
    """

    def __init__(self, streams: Streams, *, verbose: bool) -> None:
        super().__init__(streams.notes)
        self.verbose = verbose
        self._answer = AnswerWriter(streams.answers, shared=streams.shared)

    def begin(self) -> None:
        """Nothing is shown before there is something."""

    def show(self, event: TurnEvent) -> None:
        """Text goes out at once; a tool's line is printed when it has ended."""
        match event:
            case TextDelta(text):
                self._answer.write(text)
            case ToolStarted():
                self._answer.note_follows()
            case ToolFinished(_, execution):
                self._answer.note_follows()
                show_execution(self._notes, execution, verbose=self.verbose)

    def asking(self) -> AbstractContextManager[None]:
        """End the answer's line: the question has one of its own."""
        self._answer.note_follows()
        return nullcontext()

    def abandon(self) -> None:
        """End the answer's line."""
        self._answer.end()


class JsonView:
    """One JSON object a turn, in ASCII: harmless in a terminal, and the same whatever the locale is.

    Attributes:
        verbose: Tools are shown among the notes, with everything that went in and out.

    Args:
        streams: Where to; what went wrong is said among the notes as well.
        verbose: See above.
    """

    def __init__(self, streams: Streams, *, verbose: bool) -> None:
        self._streams, self.verbose = streams, verbose

    def begin(self) -> None:
        """There is nothing to say before the end."""

    def show(self, event: TurnEvent) -> None:
        """Tools are shown on stderr where that was asked for; text waits for the end."""
        if self.verbose and isinstance(event, ToolFinished):
            show_execution(self._streams.notes, event.execution, verbose=True)

    def asking(self) -> AbstractContextManager[None]:
        """Nothing has been written that could stand in the way."""
        return nullcontext()

    def finish(self, result: TurnResult, session_id: UUID) -> None:
        """Write the turn."""
        if result.error is not None:
            self._streams.notes.error(result.error.message, whole=True)
        self._write({"session_id": str(session_id), "turn": result.number, **_fields(result)})

    def refuse(self, error: HoloDeckError, session_id: UUID | None) -> None:
        """Write an object with the reason; there was no turn."""
        self._streams.notes.error(error.message)
        reason = {"error_type": error.error_type, "message": error.message}
        session = None if session_id is None else str(session_id)
        self._write({"session_id": session, "turn": None, **_fields(TurnResult(number=0)), "error": reason})

    def abandon(self) -> None:
        """Nothing is written until a turn has ended."""

    def _write(self, data: dict[str, Any]) -> None:
        self._streams.answers.write(json.dumps(data) + "\n")
        self._streams.answers.flush()


def _fields(result: TurnResult) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude={"number", "usage", "requests"}) | {"cost_usd": result.cost_usd}
