"""The HTTP side of a streamable-HTTP MCP server: every fault becomes the JSON-RPC answer of the request that met it.

The ``mcp`` package's client gives up its whole session at an HTTP error, and leaves a request unanswered when the response breaks off.
Here a fault concerns one request, and is known at once.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import httpx

from holodeck.lib.validation import exportable, shorten
from holodeck.tools.mcp_message import DIED, NOT_MCP, fault, read_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["FaultTolerantClient"]

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_BROKEN: Final = "broke off before its answer was complete"


class FaultTolerantClient(httpx.AsyncClient):
    """An HTTP client for one MCP server.

    Args:
        headers: Sent with each request.
        timeout: Seconds to connect and to write; how long an answer may take is the caller's matter.
    """

    def __init__(self, headers: dict[str, str], timeout: float) -> None:
        limits = httpx.Timeout(timeout, read=None)
        super().__init__(headers={"accept-encoding": "identity"} | headers, timeout=limits)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """As in httpx, but a POST never fails: a fault is the answer."""
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except httpx.RequestError as exc:
            return _fault(request, f"cannot be reached ({type(exc).__name__}: {exc})".replace(": )", ")"), DIED)
        return await _checked(request, response)


async def _checked(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    if response.status_code == 202 and _number(request) is None:  # a notification was taken note of
        return response
    if response.next_request is not None:
        return await _checked_redirect(request, response)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code == 200 and kind == "application/json":
        return await _checked_json(request, response)
    if response.status_code == 200 and kind == "text/event-stream":
        response.stream = _EventStream(response.stream, _answer(request, _BROKEN, DIED))
        return response
    await response.aclose()
    return _fault(request, *_no_answer(response, kind))


def _no_answer(response: httpx.Response, kind: str) -> tuple[str, str]:
    """What a response is that holds no answer, and its ``error.type``."""
    if not response.is_success:
        said = f"answered HTTP {response.status_code} {response.reason_phrase}".rstrip()
        advice = ": check its 'headers' in the agent file" if response.status_code in (401, 403) else ""
        return said + advice, str(response.status_code)
    if response.status_code != 200:
        return f"gave no answer (HTTP {response.status_code})", NOT_MCP
    return f"did not answer in MCP, but with {shorten(kind, 100) or 'no content type'}", NOT_MCP


async def _checked_redirect(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    """The library follows a redirect that stays at the server and stays a POST; any other would end its whole session."""
    target = response.next_request
    if target is None or (target.method == "POST" and _origin(target.url) == _origin(request.url)):
        return response
    await response.aclose()
    place = target.url.copy_with(userinfo=b"", query=None, fragment=None)
    return _fault(request, f"sends to another place, {shorten(str(place), 200)}: if that is the server, write it as 'url'", DIED)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _checked_json(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    try:
        content = await response.aread()
    except httpx.RequestError:
        return _fault(request, _BROKEN, DIED)
    number = _number(request)
    if number is None:
        return httpx.Response(202, request=request)
    try:
        message = read_message(content, number)
    except ValueError:
        return _fault(request, "did not answer in MCP, but with other JSON", NOT_MCP)
    headers = {name: value for name, value in response.headers.items() if name not in ("content-length", "content-encoding")}
    return httpx.Response(200, content=message.model_dump_json(by_alias=True, exclude_unset=True), headers=headers, request=request)


class _EventStream(httpx.AsyncByteStream):
    """A response whose stream ends with an error event, should it end before the answer; its messages carry no lone surrogates.

    The client stops reading at the answer, and so never sees that event after one. A stream with event ids that ends in good order is
    one that the server means to be resumed: the client does that.
    """

    def __init__(self, stream: Any, error: dict[str, Any]) -> None:
        self._stream, self._error = stream, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        resumable = False
        try:
            async for line in _lines(self._stream):
                resumable = resumable or line.startswith(b"id:")
                yield _exportable(line)
        except httpx.RequestError:
            resumable = False
        if not resumable:
            yield b"\n\nevent: message\ndata: " + json.dumps(self._error).encode() + b"\n\n"

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _lines(stream: Any) -> AsyncIterator[bytes]:
    """The lines of a stream with their ends; the last may have none."""
    parts: list[bytes] = []
    async for chunk in stream:
        for line in chunk.splitlines(keepends=True):
            parts.append(line)
            if line.endswith((b"\n", b"\r")):
                yield b"".join(parts)
                parts = []
    if parts:
        yield b"".join(parts)


def _exportable(line: bytes) -> bytes:
    """A line of an event stream; JSON in it that spells lone surrogates, which the client does not read, with U+FFFD in their place."""
    if not (line.startswith(b"data:") and _SURROGATE.search(line)):
        return line
    try:
        text = json.dumps(json.loads(line.removeprefix(b"data:")), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return b"data: " + exportable(text).encode() + b"\n"


def _fault(request: httpx.Request, message: str, error_type: str) -> httpx.Response:
    answer = _answer(request, message, error_type)
    if answer["id"] is None:  # a notification has no answer
        return httpx.Response(202, request=request)
    return httpx.Response(200, json=answer, request=request)


def _answer(request: httpx.Request, message: str, error_type: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": _number(request), "error": fault(message, error_type)}


def _number(request: httpx.Request) -> str | int | None:
    """The id of the JSON-RPC request; None for a notification, and for an answer of ours to a request of the server."""
    body = json.loads(request.content)
    found: str | int | None = body.get("id") if "method" in body else None
    return found
