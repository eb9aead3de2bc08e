"""What a stream of OpenAI's chat completions says, read as compatible servers write it.

Semantic Kernel's own reading fails on a chunk without ``choices``, on unknown roles and on content in parts, and mixes up tool calls that
are numbered badly.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from semantic_kernel.contents import AuthorRole, FunctionCallContent, StreamingChatMessageContent, StreamingTextContent
from semantic_kernel.contents.utils.finish_reason import FinishReason

from holodeck.backends.events import field_of, text_of
from holodeck.backends.said import ReportedError

__all__ = ["ChunkReader", "chunk_of", "finish_of"]

_FINISH: Final = {reason.value: reason for reason in FinishReason}


def finish_of(reason: Any) -> FinishReason | None:
    """Why the model stopped; a reason that nobody knows is an end like any other, None is none."""
    return None if reason is None else _FINISH.get(str(reason), FinishReason.STOP)


def chunk_of(model: str, items: list[Any], *, finish: FinishReason | None, source: Any, usage: Any) -> list[StreamingChatMessageContent]:
    """A chunk as connectors yield it; of ``source`` the id and the model that answered are kept, where they are text."""
    usage = SimpleNamespace(**usage) if isinstance(usage, dict) else usage
    said = {name: value if isinstance(value := field_of(source, name), str) else None for name in ("id", "model")}
    return [
        StreamingChatMessageContent(
            role=AuthorRole.ASSISTANT,
            choice_index=0,
            items=items,
            inner_content=SimpleNamespace(**said, usage=usage),
            ai_model_id=model,
            finish_reason=finish,
            metadata={"usage": usage},
        )
    ]


@dataclass
class _Call:
    number: int
    index: Any
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def is_over(self, name: str, arguments: str, *, counted: bool) -> bool:
        """Whether a delta with a name and no id is the next call, and not a part of this one that repeats or completes the name."""
        if name != self.name and not counted:
            return True
        # What goes on inside of an object seldom begins like one, or after a brace: it is not read again with each of a thousand deltas.
        if name == self.name and not arguments.lstrip().startswith("{"):
            return False
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


class ChunkReader:
    """Reads the chunks of one answer.

    Args:
        model: The model that was asked.
    """

    def __init__(self, model: str) -> None:
        self._model, self._calls = model, list[_Call]()

    def read(self, chunk: Any) -> list[StreamingChatMessageContent] | None:
        """``chunk`` as connectors yield it; None if it says nothing, as a keep-alive does.

        Raises:
            ReportedError: It is an error that the server reports.
        """
        _check(chunk)
        choices, usage = field_of(chunk, "choices"), field_of(chunk, "usage")
        choice = next((c for c in choices if field_of(c, "index") in (0, None)), None) if isinstance(choices, list) else None
        if choice is None and usage is None:
            return None
        finish = finish_of(field_of(choice, "finish_reason"))
        return chunk_of(self._model, self._items(choice), finish=finish, source=chunk, usage=usage)

    def _items(self, choice: Any) -> list[Any]:
        delta = field_of(choice, "delta") or field_of(choice, "message")  # a whole message comes from servers that do not stream
        text = text_of(field_of(delta, "content")) + text_of(field_of(delta, "refusal"))
        calls = field_of(delta, "tool_calls")
        calls = list(calls) if isinstance(calls, list) else []
        if (legacy := field_of(delta, "function_call")) is not None:
            calls.append({"index": 0, "function": legacy})
        items: list[Any] = [StreamingTextContent(choice_index=0, text=text)] if text else []
        return items + [self._delta(call) for call in calls if field_of(call, "function") is not None]

    def _delta(self, delta: Any) -> FunctionCallContent:
        function = field_of(delta, "function")
        identity, name = _word(field_of(delta, "id")), _word(field_of(function, "name"))
        arguments = _arguments(field_of(function, "arguments"))
        call = self._call(field_of(delta, "index"), identity, name, arguments)
        new = "" if name == call.name else name  # some servers repeat it in every delta, some send it in two
        call.name += new
        if arguments.strip():
            call.arguments.append(arguments)
        return FunctionCallContent(id=call.id or None, index=call.number, name=new or None, function_name=new, arguments=arguments)

    def _call(self, index: Any, identity: str, name: str, arguments: str) -> _Call:
        """The call that a delta belongs to: by its id, else the last one with its index; without an index, the last one."""
        known = next((call for call in reversed(self._calls) if index is None or call.index == index), None)
        if identity:
            same = next((call for call in self._calls if call.id == identity and call.index == index), None)
            known = same or (known if known is not None and not known.id else None)
        elif name and known is not None and known.is_over(name, arguments, counted=index is not None):
            known = None
        return known or self._begin(index, identity)

    def _begin(self, index: Any, identity: str) -> _Call:
        taken = any(call.id == identity for call in self._calls)  # two calls of one id would make the next request invalid
        call = _Call(number=len(self._calls), index=index, id="" if taken else identity)
        self._calls.append(call)
        return call


def _check(chunk: Any) -> None:
    """Some servers report an error with status 200, or in the stream; what the client itself takes for one does not get here."""
    for entry in chunk if isinstance(chunk, list) else [chunk]:
        error = field_of(entry, "error")
        if not error and not isinstance(field_of(entry, "choices"), list):
            error = field_of(entry, "detail") or (field_of(entry, "message") if field_of(entry, "object") == "error" else None)
        if error:
            raise ReportedError(error)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _arguments(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)
