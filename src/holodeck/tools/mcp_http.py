"""The HTTP side of a streamable-HTTP MCP server: every fault becomes the JSON-RPC answer of the request that met it.

The ``mcp`` package's client gives up its whole session at an HTTP error, and leaves a request unanswered when the response breaks off.
Here a fault concerns one request, and is known at once.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["HTTP_FAULT", "FaultTolerantClient"]

HTTP_FAULT: Final = -32_050
"""JSON-RPC error code of an HTTP fault; ``data["status"]`` is the HTTP status, or None where there was no response."""

_EVENT_ID: Final = re.compile(rb"(?m)^id:")
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
        except httpx.TransportError as exc:
            return _fault(request, f"cannot be reached ({type(exc).__name__}: {exc})".replace(": )", ")"), None)
        return await _checked(request, response)


async def _checked(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    if response.status_code == 202 or response.next_request is not None:  # taken note of; a redirect is the library's matter
        return response
    if not response.is_success:
        await response.aclose()
        return _fault(request, f"answered HTTP {response.status_code} {response.reason_phrase}".rstrip(), response.status_code)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return await _checked_json(request, response)
    if kind == "text/event-stream":
        response.stream = _EventStream(response.stream, _error(request, _BROKEN, None))
        return response
    await response.aclose()
    return _fault(request, f"did not answer in MCP, but with {kind or 'no content type'}", response.status_code)


async def _checked_json(request: httpx.Request, response: httpx.Response) -> httpx.Response:
    try:
        content = await response.aread()
    except httpx.TransportError:
        return _fault(request, _BROKEN, None)
    try:
        is_rpc = "jsonrpc" in json.loads(content)
    except (ValueError, TypeError):
        is_rpc = False
    return response if is_rpc else _fault(request, "did not answer in MCP, but with other JSON", response.status_code)


class _EventStream(httpx.AsyncByteStream):
    """A response whose stream ends with an error event, should it end before the answer.

    The client stops reading at the answer, and so never sees that event after one. A stream with event ids that ends in good order is
    one that the server means to be resumed: the client does that.
    """

    def __init__(self, stream: Any, error: dict[str, Any]) -> None:
        self._stream, self._error = stream, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        resumable = False
        try:
            async for chunk in self._stream:
                resumable = resumable or _EVENT_ID.search(chunk) is not None
                yield chunk
        except httpx.TransportError:
            resumable = False
        if not resumable:
            yield b"\n\nevent: message\ndata: " + json.dumps(self._error).encode() + b"\n\n"

    async def aclose(self) -> None:
        await self._stream.aclose()


def _fault(request: httpx.Request, message: str, status: int | None) -> httpx.Response:
    error = _error(request, message, status)
    if error["id"] is None:  # a notification has no answer
        return httpx.Response(202, request=request)
    return httpx.Response(200, json=error, request=request)


def _error(request: httpx.Request, message: str, status: int | None) -> dict[str, Any]:
    number = json.loads(request.content).get("id")
    return {"jsonrpc": "2.0", "id": number, "error": {"code": HTTP_FAULT, "message": message, "data": {"status": status}}}
