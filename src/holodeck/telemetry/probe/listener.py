"""What stands behind a port: asked when a canary did not arrive."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Literal

from holodeck.lib.validation import shorten, terminal_safe

__all__ = ["Listener", "look_at"]

Kind = Literal["unknown host", "refused", "unreachable", "silent", "http", "http2", "ssh", "other"]

_BANNER: Final = 0.4
"""Seconds in which a server that speaks first would have spoken."""
_MOST: Final = 16_384
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS: Final = 4  # the type of HTTP/2's first frame
_TLS_RECORD: Final = (b"\x15\x03", b"\x16\x03")
_WANTS_TLS: Final = re.compile(rb"HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS", re.IGNORECASE)
_TITLE: Final = re.compile(rb"<title[^>]*>([^<]{0,200})", re.IGNORECASE)
_SERVER: Final = re.compile(rb"^server:[ \t]*([^\r\n]{0,200})", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Listener:
    """Who listens on a port.

    Attributes:
        kind: What it speaks.
        tls: It wants TLS.
        status: HTTP status of its front page, 0 where there is none.
        name: What it calls itself: a banner, the title of its page, or its ``Server`` header; "" if it does not say.
    """

    kind: Kind
    tls: bool = False
    status: int = 0
    name: str = ""

    @property
    def words(self) -> str:
        """The same as a phrase."""
        named = f" ({self.name})" if self.name else ""
        return {
            "unknown host": "the host name is unknown",
            "refused": "nobody listens on that port",
            "unreachable": "the host does not answer",
            "silent": "somebody accepts connections there and says nothing",
            "http": f"an HTTP server answers there{named}",
            "http2": "a gRPC (HTTP/2) server answers there",
            "ssh": f"an SSH server answers there{named}",
            "other": f"something that is neither HTTP nor gRPC answers there{named}",
        }[self.kind] + (", with TLS" if self.tls else "")


def look_at(host: str, port: int, seconds: float = 3.0) -> Listener:
    """Connect a few times and see who is there.

    Args:
        host: Name or address, without brackets.
        port: The port.
        seconds: Longest wait for each step.
    """
    try:
        said = _listen(host, port, seconds)
    except socket.gaierror:
        return Listener("unknown host")
    except ConnectionRefusedError:
        return Listener("refused")
    except OSError:
        return Listener("unreachable")
    return _of_banner(said) if said else _asked(host, port, seconds)


def _asked(host: str, port: int, seconds: float) -> Listener:
    """Who answers only when asked."""
    said = _ask(host, port, seconds, _front_page(host, port), tls=False)
    if said.startswith(_TLS_RECORD) or _WANTS_TLS.search(said) or (not said and _speaks_tls(host, port, seconds)):
        return _behind_tls(host, port, seconds)
    if said.startswith(b"HTTP/"):
        return _of_page(said, tls=False)
    if _is_http2(said) or _is_http2(_ask(host, port, seconds, _PREFACE, tls=False)):
        return Listener("http2")
    return Listener("other", name=_first_line(said)) if said else Listener("silent")


def _behind_tls(host: str, port: int, seconds: float) -> Listener:
    # HTTP/1.1 first: many a server has both, and one that takes gRPC only has nothing else to offer.
    said = _ask(host, port, seconds, _front_page(host, port), tls=True)
    if said.startswith(b"HTTP/"):
        return _of_page(said, tls=True)
    if _is_http2(said) or _is_http2(_ask(host, port, seconds, _PREFACE, tls=True, offered="h2")):
        return Listener("http2", tls=True)
    return Listener("other", tls=True, name=_first_line(said))


def _of_banner(said: bytes) -> Listener:
    if said.startswith(b"SSH-"):
        return Listener("ssh", name=_first_line(said))
    return Listener("http2") if _is_http2(said) else Listener("other", name=_first_line(said))


def _of_page(answer: bytes, *, tls: bool) -> Listener:
    head = answer.split(b" ", 2)
    status = int(head[1][:3]) if len(head) > 1 and head[1][:3].isdigit() else 0
    found = _TITLE.search(answer) or _SERVER.search(answer.partition(b"\r\n\r\n")[0])
    return Listener("http", tls=tls, status=status, name=_plain(found.group(1)) if found else "")


def _is_http2(said: bytes) -> bool:
    return len(said) >= 9 and said[3] == _SETTINGS and said[5:9] == b"\x00\x00\x00\x00"


def _front_page(host: str, port: int) -> bytes:
    name = f"[{host}]" if ":" in host else host
    request = f"GET / HTTP/1.1\r\nHost: {name}:{port}\r\nUser-Agent: holodeck-doctor\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    return request.encode("ascii", "replace")


def _listen(host: str, port: int, seconds: float) -> bytes:
    """What a server says without having been asked."""
    with closing(socket.create_connection((host, port), seconds)) as connection:
        connection.settimeout(min(_BANNER, seconds))
        try:
            return connection.recv(_MOST)
        except OSError:
            return b""


def _ask(host: str, port: int, seconds: float, request: bytes, *, tls: bool, offered: str = "http/1.1") -> bytes:
    """What a server answers to ``request``; "" if nothing, or nothing any more."""
    said = b""
    try:
        with closing(_connection(host, port, seconds, tls=tls, offered=offered)) as connection:
            connection.sendall(request)
            while len(said) < _MOST and (piece := connection.recv(_MOST)):
                said += piece
    except (OSError, ValueError):  # it waits for more, or hung up: what it has said so far counts
        pass
    return said


def _connection(host: str, port: int, seconds: float, *, tls: bool, offered: str = "http/1.1") -> socket.socket:
    connection = socket.create_connection((host, port), seconds)
    connection.settimeout(seconds)
    if not tls:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.set_alpn_protocols([offered])
    context.verify_mode = ssl.CERT_NONE  # nothing secret is sent: the question is who is there
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    try:
        _connection(host, port, seconds, tls=True).close()
    except ssl.SSLError as error:
        return "ALPN" in str(error) or "NO_APPLICATION_PROTOCOL" in str(error).upper()
    except (OSError, ValueError):
        return False
    return True


def _first_line(said: bytes) -> str:
    return _plain(said.split(b"\n", 1)[0])


def _plain(said: bytes) -> str:
    return shorten(" ".join(terminal_safe(said.decode("utf-8", "replace")).split()), 80)
