"""A script for the ``scripted`` provider: replies, tool calls, usage, delays and faults, from YAML.

::

    replies:
      - when: {user: "1042", round: 1}     # both optional; without `when` a reply is taken in order
        text: "Let me look."
        tool_calls:
          - {name: lookup_order, arguments: {order_id: "1042"}, id: call_1}
        usage: {prompt_tokens: 210, completion_tokens: 18}      # or none
        chunks: 5                          # pieces the text is streamed in; by words if absent
        delay: 0.2                         # seconds before the first chunk
        chunk_delay: 0.02                  # seconds between chunks
        repeat: true                       # may be used any number of times
      - fault: {status: 429}

For each model request the first reply that is unused (or may repeat) and whose ``when`` matches is taken; a conversation keeps its own
place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from holodeck.lib.redaction import compile_pattern
from holodeck.lib.strict_yaml import read_yaml
from holodeck.models.base import Float, Int, Strict
from holodeck.models.token_usage import TokenUsage

__all__ = ["Fault", "Reply", "Script", "ScriptedCall", "load_script"]


class When(Strict):
    """When a reply fits.

    Attributes:
        user: RE2 pattern searched in the last user message.
        round: Number of the model request in its turn, from 1.
    """

    user: str | None = None
    round: Int | None = Field(default=None, gt=0)
    _pattern: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _compile(self) -> Self:
        if self.user is not None:
            self._pattern = compile_pattern(self.user)
        return self

    def fits(self, user: str, round_number: int) -> bool:
        """Whether a request with this last user message and number fits."""
        if self.round is not None and self.round != round_number:
            return False
        return self._pattern is None or self._pattern.search(user) is not None


class ScriptedCall(Strict):
    """A tool call; ``raw`` is argument text as it is, e.g. malformed JSON."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None
    id: str | None = None


class ScriptedUsage(Strict):
    """Token counts of a reply."""

    prompt_tokens: Int = Field(ge=0)
    completion_tokens: Int = Field(ge=0)
    cached_tokens: Int | None = Field(default=None, ge=0)
    reasoning_tokens: Int | None = Field(default=None, ge=0)

    def counts(self) -> TokenUsage:
        """The same as a :class:`TokenUsage`."""
        return TokenUsage.of(
            self.prompt_tokens, self.completion_tokens, cached_tokens=self.cached_tokens, reasoning_tokens=self.reasoning_tokens
        )


class Fault(Strict):
    """Something that goes wrong: an HTTP ``status`` before the first chunk, or a ``kind``, ``after`` so many chunks.

    Attributes:
        status: HTTP status of the answer.
        kind: What happens otherwise.
        after: Chunks that arrive before it happens.
    """

    status: Int | None = Field(default=None, ge=400, le=599)
    kind: Literal["timeout", "truncated", "reset", "html", "error_event", "context_overflow"] | None = None
    after: Int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.status is None) == (self.kind is None):
            raise ValueError("needs exactly one of 'status' and 'kind'")
        return self


class Reply(Strict):
    """One reply of a script."""

    when: When | None = None
    text: str = ""
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    usage: ScriptedUsage | None = None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"] | None = None
    chunks: Int | None = Field(default=None, gt=0)
    delay: Float = Field(default=0.0, ge=0)
    chunk_delay: Float = Field(default=0.0, ge=0)
    repeat: bool = False
    fault: Fault | None = None

    @field_validator("usage", mode="before")
    @classmethod
    def _none_is_a_word(cls, value: Any) -> Any:
        return None if value == "none" else value

    @property
    def pieces(self) -> list[str]:
        """The text as it is streamed: in ``chunks`` pieces, or by words."""
        if not self.text:
            return []
        if self.chunks is None:
            words = self.text.split(" ")
            return [w + " " for w in words[:-1]] + words[-1:]
        size = -(-len(self.text) // self.chunks)
        return [self.text[i : i + size] for i in range(0, len(self.text), size)]


class Script(Strict):
    """Everything a scripted model will say."""

    replies: list[Reply] = Field(min_length=1)

    def choose(self, used: set[int], user: str, round_number: int) -> Reply | None:
        """The reply for a request; marks it as used in ``used``. None if no reply is left for it."""
        for number, reply in enumerate(self.replies):
            if (number in used and not reply.repeat) or not (reply.when is None or reply.when.fits(user, round_number)):
                continue
            used.add(number)
            return reply
        return None


def load_script(path: Path) -> Script:
    """Read a script.

    Raises:
        AgentFileError: It cannot be read or is wrong; names line and key.
    """
    document = read_yaml(path)
    try:
        return Script.model_validate(document.data)
    except ValidationError as error:
        raise document.error(error, Script) from error
