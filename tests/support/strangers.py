"""Servers that are not the collector that was meant: pages, banners, TLS, and nothing at all."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.net import HttpConnection, HttpServer, LoopbackServer

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Banner", "Page", "TlsPage", "certificate", "grpc_over_tls"]


class Banner(LoopbackServer):
    """Speaks first, as SSH and mail servers do."""

    def __init__(self, banner: bytes) -> None:
        super().__init__()
        self._banner = banner

    def serve(self, connection: socket.socket) -> None:
        """Say the banner, read until the client goes."""
        connection.sendall(self._banner)
        while connection.recv(65536):
            pass


class Page(HttpServer):
    """Answers every request alike.

    Attributes:
        requests: Method and path of each.
    """

    def __init__(self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._answer = status, body, {"content-type": "text/html", **(headers or {})}
        self.requests: list[tuple[str, str]] = []

    def answer(self, http: HttpConnection) -> None:
        """Give the answer."""
        http.body()
        self.requests.append((http.command, http.path))
        http.respond(*self._answer)


class TlsPage(Page):
    """The same behind TLS."""

    def __init__(self, files: tuple[Path, Path], status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, body, headers)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*files)

    def serve(self, connection: socket.socket) -> None:
        """Shake hands, then answer."""
        with contextlib.suppress(OSError), self._context.wrap_socket(connection, server_side=True) as encrypted:
            super().serve(encrypted)


@contextlib.contextmanager
def grpc_over_tls(files: tuple[Path, Path]) -> Iterator[int]:
    """The port of a gRPC server behind TLS that has no service."""
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers, options=[("grpc.so_reuseport", 0)])
        own = grpc.ssl_server_credentials([(files[1].read_bytes(), files[0].read_bytes())])
        port = server.add_secure_port("127.0.0.1:0", own)
        server.start()
        try:
            yield port
        finally:
            server.stop(grace=None).wait()


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody has signed but its own key; the files of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = directory / "cert.pem", directory / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key_file.write_bytes(private)
    return cert_file, key_file
