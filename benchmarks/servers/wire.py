"""Just enough HTTP/1.1 for the servers of a benchmark: asyncio, keep-alive, chunked answers, little CPU."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NamedTuple

__all__ = ["Request", "respond", "run", "stream"]

_REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


class Request(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(head[0].split(" ")[1].partition("?")[0], headers, body)


def respond(writer: asyncio.StreamWriter, status: int, body: bytes, kind: str = "application/json") -> None:
    """A whole answer."""
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def stream(writer: asyncio.StreamWriter, pieces: list[bytes], first: float, between: float) -> None:
    """An event stream: ``first`` seconds before the first piece, ``between`` before each other one; without delays in one go."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    if first:
        await asyncio.sleep(first)
    for number, piece in enumerate(pieces):
        if number and between:
            await writer.drain()
            await asyncio.sleep(between)
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _serve(handler: Handler) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await handler(await _read(reader), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):  # the last: the server ends
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=2048, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


def run(handler: Handler) -> None:
    """Serve on a free port of 127.0.0.1, print its number, and end on SIGTERM."""
    asyncio.run(_serve(handler))
    sys.stdout.flush()
