"""A script for the ``scripted`` provider: replies, tool calls, usage, delays, faults and expectations, from YAML.

::

    replies:
      - when: {user: "1042", round: 1}     # both optional; without `when` a reply is taken in order
        expect: {tools: [lookup_order]}    # what the request has to look like
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
place. ``docs/scripts.md`` has all keys. A recording is a script with a ``recorded`` section.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from holodeck.backends.expectation import Expectation
from holodeck.lib.patterns import compile_pattern
from holodeck.lib.problems import one_line
from holodeck.lib.redaction import Redactor
from holodeck.lib.strict_yaml import read_yaml
from holodeck.models.base import MAX_INT, Float, Int, Strict
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolSpec

__all__ = [
    "REQUEST_DIFFERS",
    "SCRIPT_EXHAUSTED",
    "Fault",
    "Recorded",
    "RecordedModel",
    "Reply",
    "Script",
    "ScriptedCall",
    "ScriptedUsage",
    "load_script",
]

SCRIPT_EXHAUSTED: Final = "script_exhausted"
"""``error.type`` of a request for which the script has no reply left."""
REQUEST_DIFFERS: Final = "request_differs"
"""``error.type`` of a request that is not what the script expects."""

_LARGEST: Final = 20_000_000
"""Longest script in bytes; a recording holds what tools returned."""


class When(Strict):
    """When a reply fits; all that is given has to match.

    Attributes:
        user: RE2 pattern searched in the last user message.
        message: The last user message as a whole.
        round: Number of the model request in its turn, from 1.
    """

    user: str | None = None
    message: str | None = None
    round: Int | None = Field(default=None, gt=0)
    _pattern: Any = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _compile(self) -> Self:
        self._pattern = None if self.user is None else compile_pattern(self.user)
        return self

    def fits(self, user: str, round_number: int) -> bool:
        """Whether a request with this last user message and number fits."""
        if self.round not in (None, round_number) or self.message not in (None, user):
            return False
        return self._pattern is None or self._pattern.search(user) is not None


class ScriptedCall(Strict):
    """A tool call, and in a recording what came of it.

    Attributes:
        name: The tool.
        arguments: What it is called with.
        raw: Argument text as it is, e.g. malformed JSON, in place of ``arguments``.
        id: The call's id; ``call_1`` and so on by default.
        result: What the tool returned; used instead of the tool with ``--replay-tools``.
        error: Why the tool failed; used instead of the tool with ``--replay-tools``.
        error_type: ``error.type`` of that failure.
    """

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None
    id: str | None = None
    result: str | None = None
    error: str | None = None
    error_type: str | None = None


class ScriptedUsage(Strict):
    """Token counts of a reply; each, and prompt and completion together, fit in 64 bits.

    Attributes:
        prompt_tokens: Tokens of the request, cached ones included.
        completion_tokens: Tokens of the reply, reasoning included.
        cached_tokens: Part of the request that was read from a cache.
        cache_write_tokens: Part of the request that was written to a cache.
        reasoning_tokens: Part of the reply that was reasoning.
    """

    prompt_tokens: Int = Field(ge=0)
    completion_tokens: Int = Field(ge=0)
    cached_tokens: Int | None = Field(default=None, ge=0)
    cache_write_tokens: Int | None = Field(default=None, ge=0)
    reasoning_tokens: Int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _total_fits(self) -> Self:
        if self.prompt_tokens + self.completion_tokens > MAX_INT:
            raise ValueError(f"'prompt_tokens' and 'completion_tokens' together must be at most {MAX_INT:,}")
        return self

    def counts(self) -> TokenUsage:
        """The same as a :class:`TokenUsage`."""
        parts = self.model_dump(exclude={"prompt_tokens", "completion_tokens"})
        return TokenUsage.of(self.prompt_tokens, self.completion_tokens, **parts)


class Fault(Strict):
    """Something that goes wrong: an HTTP ``status`` before the first chunk, a ``kind``, or any ``error_type``, ``after`` so many chunks.

    Attributes:
        status: HTTP status of the answer.
        kind: What happens otherwise.
        error_type: Any ``error.type``, as recordings have it.
        message: What the user is told, with ``error_type``.
        after: Chunks that arrive before it happens.
    """

    status: Int | None = Field(default=None, ge=400, le=599)
    kind: Literal["timeout", "truncated", "reset", "html", "error_event", "context_overflow"] | None = None
    error_type: str | None = None
    message: str = "a fault of the script"
    after: Int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if [self.status, self.kind, self.error_type].count(None) != 2:
            raise ValueError("needs exactly one of 'status', 'kind' and 'error_type'")
        return self


class Reply(Strict):
    """One reply of a script.

    Attributes:
        when: Which requests it fits; all by default.
        expect: What the request has to look like; one that differs fails with what is different.
        text: What the model says, before its tool calls.
        tool_calls: The tools it calls, side by side.
        usage: Token counts; ``none`` (the default) if the model reports none.
        finish_reason: Why it stops; ``tool_calls`` or ``stop`` by default.
        chunks: How many pieces the text is streamed in; by words if absent.
        delay: Seconds before the first chunk.
        chunk_delay: Seconds between chunks.
        repeat: It may be used any number of times.
        fault: What goes wrong.
        id: The provider's id of the reply.
        model: The model that says it answered.
    """

    when: When | None = None
    expect: Expectation | None = None
    text: str = ""
    tool_calls: list[ScriptedCall] = Field(default_factory=list)
    usage: ScriptedUsage | None = None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"] | None = None
    chunks: Int | None = Field(default=None, gt=0)
    delay: Float = Field(default=0.0, ge=0)
    chunk_delay: Float = Field(default=0.0, ge=0)
    repeat: bool = False
    fault: Fault | None = None
    id: str | None = None
    model: str | None = None

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


class RecordedModel(Strict):
    """A model that was recorded, as telemetry names it.

    Attributes:
        provider: ``gen_ai.provider.name``.
        name: ``gen_ai.request.model``.
        address: Host of the server.
        port: Its port.
    """

    provider: str
    name: str
    address: str | None = None
    port: Int | None = None


class Recorded(Strict):
    """Where a recording comes from. With it a script is a recording: it is played for the same agent only.

    Attributes:
        agent: Name of the agent.
        model: The agent's model.
        other_models: Models of prompt tools that have their own, in the order of the agent file.
        instructions: The agent's system prompt.
        tools: The tools that were offered.
        redacted: Secrets were hidden; what is compared with the recording is redacted before, too.
        redaction_patterns: The user's own patterns that were used.
    """

    agent: str
    model: RecordedModel
    other_models: list[RecordedModel] = Field(default_factory=list)
    instructions: str | None = None
    tools: list[ToolSpec] = Field(default_factory=list)
    redacted: bool = False
    redaction_patterns: list[str] = Field(default_factory=list)

    @functools.cached_property
    def redact(self) -> Callable[[str], str]:
        """Hides in a live text what was hidden in the recording."""
        return Redactor(self.redaction_patterns) if self.redacted else str

    def hide(self, tool: ToolSpec) -> ToolSpec:
        """A live tool as this recording would hold it."""
        if not self.redacted:
            return tool
        return ToolSpec.model_validate(Redactor(self.redaction_patterns).structure(tool.model_dump()))


class Script(Strict):
    """Everything a scripted model will say.

    Attributes:
        recorded: Where a recording comes from; none for a script that was written by hand.
        replies: The replies, in the order in which they are looked at.
    """

    recorded: Recorded | None = None
    replies: list[Reply] = Field(min_length=1)
    _file: str = PrivateAttr(default="the script")
    _lines: Sequence[int] = PrivateAttr(default=())

    def choose(self, used: set[int], user: str, round_number: int) -> int | None:
        """Number of the reply for a request; marks it as used in ``used``. None if no reply is left for it."""
        for number, reply in enumerate(self.replies):
            if (number in used and not reply.repeat) or not (reply.when is None or reply.when.fits(user, round_number)):
                continue
            used.add(number)
            return number
        return None

    def place(self, number: int | None = None) -> str:
        """Where a reply stands, for messages: ``script.yaml:12``; without a number, the file."""
        return self._file if number is None or not self._lines else f"{self._file}:{self._lines[number]}"

    def located(self, file: str, lines: Sequence[int]) -> Self:
        """The same, and it knows where it was read: the file and the line of each reply."""
        self._file, self._lines = file, lines
        return self


def load_script(path: Path) -> Script:
    """Read a script.

    Raises:
        AgentFileError: It cannot be read or is wrong; names line and key.
    """
    try:
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    except OSError:
        return _read.__wrapped__(path, 0, 0)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed: int, size: int) -> Script:
    del changed, size  # they tell a file from what it was before
    document = read_yaml(path, limit=_LARGEST)
    try:
        script = Script.model_validate(document.data)
    except ValidationError as error:
        raise document.error(error, Script) from error
    return script.located(one_line(str(path), 300), [document.line(("replies", n)) for n in range(len(script.replies))])
