"""Loopback servers with a known end: one thread a connection, and ``stop`` leaves no thread and no socket behind."""

from __future__ import annotations

import contextlib
import math
import select
import selectors
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["HttpConnection", "HttpServer", "LoopbackServer", "PeerGoneError", "SilentPort", "unused_port"]

_HOST = "127.0.0.1"
_JOIN_SECONDS = 5.0
_LAST_CHUNK = b"0\r\n\r\n"


class PeerGoneError(ConnectionError):
    """The client closed its end, or the server is stopping: nobody waits for an answer any more."""


def unused_port() -> int:
    """A port on which nobody listens (until somebody else takes it)."""
    with socket.create_server((_HOST, 0)) as probe:
        return int(probe.getsockname()[1])


class LoopbackServer:
    """Accepts on 127.0.0.1 and gives each connection a thread that runs ``serve``.

    Attributes:
        port: The port; known once the server is made.
        connections: How many connections were accepted.
        stopping: Set as soon as ``stop`` is called.
    """

    def __init__(self, port: int = 0) -> None:
        self.connections = 0
        self.stopping = threading.Event()
        self._changed = threading.Condition()
        self._live: dict[socket.socket, threading.Thread] = {}
        self._listener = socket.create_server((_HOST, port), backlog=128)
        self._listener.setblocking(False)  # noqa: FBT003 - the socket module's own signature
        self._wake_reader, self._wake_writer = socket.socketpair()
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept_all, name=f"accept-{self.port}", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://{_HOST}:{self.port}"

    def start(self) -> None:
        """Start to accept."""
        self._acceptor.start()

    def stop(self) -> None:
        """Close every connection and wait until each thread has ended.

        Raises:
            RuntimeError: A handler is stuck in code that no closed socket can end.
        """
        if self.stopping.is_set():
            return
        self.stopping.set()
        self._wake_writer.send(b"x")
        if self._acceptor.ident is not None:
            self._acceptor.join()
        threads = self._hang_up_all()
        for sock in (self._listener, self._wake_reader, self._wake_writer):
            sock.close()
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        if stuck := [thread.name for thread in threads if thread.is_alive()]:
            raise RuntimeError(f"these connections did not end with their server: {stuck}")

    def wait_until(self, predicate: Callable[[], bool], timeout: float = 5.0) -> None:
        """Wait until ``predicate()`` holds; it is asked again whenever the server has recorded something.

        Raises:
            AssertionError: It did not hold within ``timeout`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(predicate, timeout):
                raise AssertionError(f"not so within {timeout} s; the server has seen: {self.describe()}")

    def describe(self) -> str:
        """What was seen so far, for the message of a failed wait."""
        return f"{self.connections} connections"

    def serve(self, connection: socket.socket) -> None:
        """Handle one connection, until the client or ``stop`` ends it."""
        raise NotImplementedError

    def _accept_all(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while not self.stopping.is_set():
                selector.select()
                with contextlib.suppress(OSError):  # a client may be gone before it is accepted
                    connection, _ = self._listener.accept()
                    self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(True)  # noqa: FBT003 - macOS hands on the listener's mode
        thread = threading.Thread(target=self._run, args=(connection,), name=f"serve-{self.port}", daemon=True)
        with self._changed:
            self.connections += 1
            self._live[connection] = thread
            self._changed.notify_all()
        thread.start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self.serve(connection)
        except ConnectionError:
            pass  # the client went away between two requests
        finally:
            with self._changed:  # stop() must not shut down a number that means another socket by now
                self._live.pop(connection, None)
                connection.close()

    def _hang_up_all(self) -> list[threading.Thread]:
        with self._changed:
            for connection in self._live:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            return list(self._live.values())


class SilentPort(LoopbackServer):
    """Accepts every connection and never answers; what an overloaded or half-dead server looks like."""

    def serve(self, connection: socket.socket) -> None:
        """Read and drop, so that the client can send all it likes."""
        while connection.recv(65536):
            pass


class HttpServer(LoopbackServer):
    """HTTP/1.1 with keep-alive; ``answer`` is called for each request."""

    def serve(self, connection: socket.socket) -> None:
        """Let the standard library read the requests."""
        HttpConnection(connection, (_HOST, 0), self)  # type: ignore[arg-type]  # it only needs ``answer``

    def answer(self, http: HttpConnection) -> None:
        """Answer one request through ``http``."""
        raise NotImplementedError


class HttpConnection(BaseHTTPRequestHandler):
    """One connection: the request that was read, and the ways to answer it well or badly."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpServer  # type: ignore[assignment]  # the base class only keeps it

    def do_POST(self) -> None:
        """Hand the request to the server."""
        self.server.answer(self)

    def do_GET(self) -> None:
        """Hand the request to the server."""
        self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        """Tests read the recorded requests, not a log."""

    def body(self) -> bytes:
        """The request's body as sent."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """A whole answer at once."""
        self._start(status, {**headers, "content-length": str(len(body))})
        self.connection.sendall(body)

    def begin(self, content_type: str) -> None:
        """The head of an answer that comes in pieces."""
        self._start(200, {"content-type": content_type, "transfer-encoding": "chunked"})

    def piece(self, data: bytes, delay: float = 0, *, last: bool = False) -> None:
        """One piece, sent after ``delay`` seconds; the ``last`` takes the end of the answer along.

        Raises:
            PeerGoneError: The client has hung up.
        """
        self.pause(delay)
        self.connection.sendall(b"%x\r\n%b\r\n%b" % (len(data), data, _LAST_CHUNK if last else b""))

    def end(self) -> None:
        """The proper end of an answer in pieces."""
        self.connection.sendall(_LAST_CHUNK)

    def hang_up(self, *, reset: bool = False) -> None:
        """Close after this request; with ``reset`` so that the client gets a RST in place of an orderly end."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def pause(self, seconds: float | None) -> None:
        """Wait (for ever when None).

        Raises:
            PeerGoneError: The client has hung up, or the server stops.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        wait = None if seconds is None else math.ceil(seconds * 1000)
        if not poll.poll(wait):
            return
        if not self.connection.recv(1, socket.MSG_PEEK):
            raise PeerGoneError
        left = None if seconds is None else max(0.0, deadline - time.monotonic())
        if self.server.stopping.wait(left):  # the client sends its next request early: it has not gone
            raise PeerGoneError

    def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
