"""HTTP connections that another thread can end.

``requests`` has no way to end a request that waits for its answer: closing a session closes the connections that are idle.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import requests

__all__ = ["Connections"]


class Connections:
    """The open connections of the sessions that are made here; thread-safe.

    What cannot be ended is the search for a host's address, and the wait for a connection: they take at most the request's timeout.

    Attributes:
        ended: They were ended; new ones are useless.
        tried: How many were tried to open.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._twins: set[socket.socket] = set()
        self.ended = False
        self.tried = 0

    def session(self) -> requests.Session:
        """A session whose connections are ended by :meth:`end`, those through an HTTP proxy included."""
        import requests  # noqa: PLC0415 - 65 ms, behind the first request

        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _adapter(self))
        return session

    def end(self) -> None:
        """End all connections at once: who waits for an answer gets an error."""
        with self._lock:
            self.ended = True
            for twin in self._twins:
                _shut(twin)

    def opened(self, connection: socket.socket) -> socket.socket:
        """Take note of ``connection``. Returns its twin, for :meth:`closed`."""
        twin = connection.dup()  # TLS takes the socket itself over, and cannot be reached during its handshake
        with self._lock:
            self._twins.add(twin)
            if self.ended:
                _shut(twin)
        return twin

    def closed(self, twin: socket.socket) -> None:
        """Let go of a connection."""
        with self._lock:
            self._twins.discard(twin)
            twin.close()


def _shut(twin: socket.socket) -> None:
    with suppress(OSError):  # the other side may have closed it
        twin.shutdown(socket.SHUT_RDWR)


def _adapter(connections: Connections) -> Any:
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - loaded by now

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = _pools(connections)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            manager: Any = super().proxy_manager_for(proxy, **options)
            if not proxy.lower().startswith("socks"):  # those have pools of their own
                manager.pool_classes_by_scheme = _pools(connections)
            return manager

    return Adapter()


def _pools(connections: Connections) -> dict[str, Any]:
    from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - comes with requests
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool  # noqa: PLC0415 - as above

    class Ending:
        _twin: socket.socket | None = None

        def _new_conn(self) -> socket.socket:
            connections.tried += 1
            made: socket.socket = super()._new_conn()  # type: ignore[misc]
            self._twin = connections.opened(made)
            return made

        def close(self) -> None:
            super().close()  # type: ignore[misc]
            twin, self._twin = self._twin, None
            if twin is not None:
                connections.closed(twin)

    def pool(base: type, connection: type) -> type:
        return type(base.__name__, (base,), {"ConnectionCls": type(connection.__name__, (Ending, connection), {})})

    return {"http": pool(HTTPConnectionPool, HTTPConnection), "https": pool(HTTPSConnectionPool, HTTPSConnection)}
