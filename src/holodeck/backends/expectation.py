"""What a request to a model is expected to look like, and how one that came differs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from holodeck.lib.patterns import compile_pattern
from holodeck.lib.validation import shorten
from holodeck.models.base import Strict
from holodeck.models.tool_execution import ToolSpec

if TYPE_CHECKING:
    from semantic_kernel.contents import ChatHistory

__all__ = ["Expectation", "ExpectedMessage", "ModelRequest", "request_of", "text_difference"]

_SHORT: Final = 72  # characters of a text that is shown whole
_MOST_LINES: Final = 24


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request as far as it is new: what it holds beyond what the model said last.

    Attributes:
        instructions: The system prompt; None if there is none.
        messages: What was added since the model's last reply: ``role``, ``text``, and for results of tools ``name``.
        tools: What is offered.
        user: The last user message.
        round: Number of the request in its turn, from 1.
    """

    instructions: str | None
    messages: tuple[dict[str, str], ...]
    tools: tuple[ToolSpec, ...]
    user: str
    round: int


def request_of(history: ChatHistory, tools: Sequence[ToolSpec]) -> ModelRequest:
    """The request that sends ``history`` and offers ``tools``."""
    # From the end, and no further than the turn's own message: a long conversation must not make each request slower.
    new: list[Any] = []
    rounds, user = 1, ""
    for message in reversed(history.messages):
        role = message.role.value
        if role == "assistant":
            rounds += 1
        elif rounds == 1 and role != "system":
            new.append(message)
        if role == "user":
            user = str(message.content)
            break
    first = history.messages[0] if history.messages else None
    return ModelRequest(
        instructions=str(first.content) if first is not None and first.role.value == "system" else None,
        messages=tuple(_message(message) for message in reversed(new)),
        tools=tuple(tools),
        user=user,
        round=rounds,
    )


def _message(message: Any) -> dict[str, str]:
    for item in message.items:
        if item.content_type == "function_result":
            return {"role": "tool", "name": item.function_name, "text": str(item.result)}
    return {"role": message.role.value, "text": str(message.content)}


class ExpectedMessage(Strict):
    """A message that a request is expected to add.

    Attributes:
        role: ``user``, or ``tool`` for the result of a tool.
        name: The tool, with the role ``tool``.
        text: What it says, as a whole.
        pattern: RE2 pattern that is searched in what it says.
    """

    role: Literal["user", "tool"]
    name: str | None = None
    text: str | None = None
    pattern: str | None = None
    _compiled: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _compile(self) -> Self:
        if self.pattern is not None:
            self._compiled = compile_pattern(self.pattern)
        return self

    def differences(self, place: str, message: dict[str, str]) -> Iterator[str]:
        """How ``message`` differs, a text a difference; empty if it does not."""
        for key in ("role", "name"):
            wanted, found = getattr(self, key), message.get(key)
            if wanted not in (None, found):
                yield f"{place}.{key}: expected {wanted}, got {found or 'none'}"
        if self.text is not None and self.text != message["text"]:
            yield f"{place}.text:\n{text_difference(self.text, message['text'])}"
        if self._compiled is not None and not self._compiled.search(message["text"]):
            yield f"{place}.text: expected something like {self.pattern!r}, got {shorten(message['text'], 200)!r}"


class Expectation(Strict):
    """What a request has to look like; what is not given may be anything.

    Attributes:
        instructions: The system prompt, as a whole.
        messages: What the request adds since the model's last reply, in order: the user's message, or the results of tools.
        tools: Names of the tools that are offered, in order.
    """

    instructions: str | None = None
    messages: list[ExpectedMessage] | None = Field(default=None)
    tools: list[str] | None = None

    def differences(self, request: ModelRequest, redact: Callable[[str], str]) -> Iterator[str]:
        """How ``request`` differs, a text a difference; empty if it does not.

        Args:
            request: What came.
            redact: Hides in it what was hidden in what is expected.
        """
        if self.instructions is not None and self.instructions != redact(request.instructions or ""):
            yield f"instructions:\n{text_difference(self.instructions, redact(request.instructions or ''))}"
        if self.tools is not None and self.tools != (offered := [tool.name for tool in request.tools]):
            yield f"tools: expected {', '.join(self.tools) or 'none'}; got {', '.join(offered) or 'none'}"
        if self.messages is not None:
            yield from self._messages([{**m, "text": redact(m["text"])} for m in request.messages])

    def _messages(self, messages: list[dict[str, str]]) -> Iterator[str]:
        wanted = self.messages or []
        for number, (expected, message) in enumerate(zip(wanted, messages, strict=False)):
            yield from expected.differences(f"messages[{number}]", message)
        for expected in wanted[len(messages) :]:
            yield f"messages: a message of role {expected.role} is missing: {shorten(expected.text or expected.pattern or '', 200)!r}"
        for message in messages[len(wanted) :]:
            yield f"messages: one more than expected, of role {message['role']}: {shorten(message['text'], 200)!r}"


def text_difference(expected: str, got: str) -> str:
    """Two texts that differ, as lines that begin with ``-`` (expected), ``+`` (got) or a blank (both)."""
    if max(len(expected), len(got)) <= _SHORT and "\n" not in expected + got:
        return f"  - {expected}\n  + {got}"
    old, new = _pieces(expected), _pieces(got)
    lines = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    cut = [f"  … {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([f"  {line[:1]} {line[1:]}" for line in lines[:_MOST_LINES] if not line.startswith("@@")] + cut)


def _pieces(text: str) -> list[str]:
    """The lines of a text; long ones in pieces that are short enough to compare by eye."""
    return [line[i : i + 100] for line in text.split("\n") for i in range(0, max(len(line), 1), 100)]
