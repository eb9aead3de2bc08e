"""Server-sent events as servers really send them, in the form that the providers' clients expect.

The clients' own decoders pass over what is not an event: an answer that is one JSON object, for one, although a stream was asked for. Its
error message would be lost, or its text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final

__all__ = ["EventReader", "field_of", "text_of"]

_BOM: Final = b"\xef\xbb\xbf"
_MOST: Final = 20_000_000
"""Bytes of an answer in one object."""


class EventReader:
    """Stands in for the event decoder of OpenAI's and Anthropic's clients; keep-alives without data are left out.

    Args:
        decoder: The client's own.
        event: Makes an event of the client, given ``event`` and ``data``.
        named: The client goes by the events' names: one that has none is given its data's ``type``.
    """

    def __init__(self, decoder: Any, event: Any, *, named: bool = False) -> None:
        self._decoder, self._event, self._named = decoder, event, named

    async def aiter_bytes(self, body: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """The events of ``body``; a JSON object in place of events is one."""
        start = b""
        async for piece in body:
            start = (start + piece).lstrip().removeprefix(_BOM)
            if len(start) > len(_BOM):
                break
        if start.startswith((b"{", b"[")):
            yield self._good(self._event(event=None, data=await _whole(start, body)))
            return
        async for event in self._decoder.aiter_bytes(_joined(start, body)):
            if event.data.strip():
                yield self._good(event)

    def _good(self, event: Any) -> Any:
        if self._named:
            return event if event.event else self._event(event=_type_of(event.data), data=event.data)
        if event.event == "error" and not event.data.lstrip().startswith("{"):
            return self._event(event="error", data=json.dumps({"error": {"message": event.data}}))
        return event


async def _whole(start: bytes, rest: AsyncIterator[bytes]) -> str:
    data = bytearray(start)
    async for piece in rest:
        data += piece
        if len(data) > _MOST:
            raise ValueError("the JSON object is too large")
    return data.decode("utf-8", "replace")


async def _joined(start: bytes, rest: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for piece in rest:
        yield piece


def _type_of(data: str) -> str | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return str(value.get("type") or ("error" if "error" in value else "")) if isinstance(value, dict) else None


def field_of(value: Any, name: str) -> Any:
    """A part of what a client made of JSON: a model of the client's where it knew the form, a mapping where it did not; else None."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def text_of(content: Any) -> str:
    """The text of a message's content, which may also be a list of parts; "" for what is no text, such as reasoning."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "".join(part if isinstance(part, str) else text_of(field_of(part, "text")) for part in content)
    return text_of(content.get("text")) if isinstance(content, dict) else ""
