"""Where each signal goes over OTLP: URL, headers, TLS, after precedence.

Rules of the OTLP exporter specification, and what it leaves open:

* A base URL (``OTEL_EXPORTER_OTLP_ENDPOINT``, the agent file) gets the signal's path once for HTTP. One that ends with a signal's path
  already is kept for that signal, and its base is used for the others. The endpoint of one signal (``…_TRACES_ENDPOINT``) is used as it is.
* For gRPC only scheme, host and port count.
* The scheme decides on TLS. ``OTEL_EXPORTER_OTLP_INSECURE`` counts for gRPC and can only confirm it; where it says something else there is
  a warning. ``insecure`` in the agent file that contradicts the scheme is an error, unless it asks for no TLS and the environment's
  endpoint has it.
* User name and password in a URL become an ``authorization`` header, so that a URL can be shown.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import unquote

from holodeck.config.endpoint import Endpoint, parse_endpoint
from holodeck.config.environment import Environment, Precedence, setting_error, split_pairs
from holodeck.config.headers import clean_headers
from holodeck.config.problems import KeyedError
from holodeck.models.observability import MAX_MILLISECONDS, OtlpConfig, OtlpTarget

if TYPE_CHECKING:
    from holodeck.errors import ConfigError

__all__ = ["SIGNALS", "Signal", "TargetResolver"]

Signal = Literal["traces", "metrics", "logs"]
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")
_FILE: Final = "agent file"
_WRITTEN: Final = {"grpc": "grpc", "http": "http/protobuf"}
_PORTS: Final = {"http/protobuf": 4318, "grpc": 4317}
_DEFAULT_TIMEOUT: Final = 10_000.0
_EXPORT_TIMEOUTS: Final = {
    "traces": "OTEL_BSP_EXPORT_TIMEOUT",
    "metrics": "OTEL_METRIC_EXPORT_TIMEOUT",
    "logs": "OTEL_BLRP_EXPORT_TIMEOUT",
}
"""The longest that an export may take, whatever the exporter says of its requests."""


class TargetResolver:
    """Resolves the target of each signal.

    Args:
        config: ``exporters.otlp`` of the agent file.
        environment: The environment.
        precedence: Keeps where values came from, as ``traces.url`` and so on.
        warnings: Gets what the user should know.
    """

    def __init__(self, config: OtlpConfig, environment: Environment, precedence: Precedence, warnings: list[str]) -> None:
        self._config, self._environment, self._precedence, self._warnings = config, environment, precedence, warnings

    def target(self, signal: Signal) -> OtlpTarget:
        """Where ``signal`` goes.

        Raises:
            SettingError: A variable means nothing, or contradicts another.
            KeyedError: The same of the agent file.
        """
        protocol = self._protocol(signal)
        endpoint = self._endpoint(signal, protocol)
        self._check_tls(signal, protocol, endpoint)
        return OtlpTarget(
            url=endpoint.grpc_url if protocol == "grpc" else endpoint.url,
            protocol=protocol,
            headers=self._headers(signal, protocol, endpoint),
            timeout=self._timeout(signal),
            compression=self._compression(signal, protocol),
            insecure=endpoint.insecure,
            **self._files(signal, endpoint),
        )

    @staticmethod
    def _names(signal: Signal, suffix: str) -> tuple[str, str]:
        return f"OTEL_EXPORTER_OTLP_{signal.upper()}_{suffix}", f"OTEL_EXPORTER_OTLP_{suffix}"

    def _protocol(self, signal: Signal) -> Literal["http/protobuf", "grpc"]:
        source, said = self._environment.text(*self._names(signal, "PROTOCOL"))
        if said is not None and said not in _PORTS:
            advice = {"http": "write http/protobuf", "http/json": "http/json is not supported: use http/protobuf"}
            raise setting_error(source, advice.get(said.lower(), "use http/protobuf or grpc"))
        written = self._config.protocol and _WRITTEN[self._config.protocol]
        protocol = self._precedence.pick(f"{signal}.protocol", (source, said), (_FILE, written), default="http/protobuf")
        return "grpc" if protocol == "grpc" else "http/protobuf"

    def _endpoint(self, signal: Signal, protocol: str) -> Endpoint:
        source, said = self._environment.text(*self._names(signal, "ENDPOINT"))
        default = f"http://localhost:{_PORTS[protocol]}"
        written = (self._config.endpoint or "").strip() or None
        url = self._precedence.pick(f"{signal}.url", (source, said), (_FILE, written), default=default)
        origin = self._precedence.sources[f"{signal}.url"]
        own = origin == f"env {self._names(signal, 'ENDPOINT')[0]}"
        endpoint = parse_endpoint(url, lambda message: _error(origin, "endpoint", message))
        endpoint = endpoint.as_it_is() if own else endpoint.with_path_of(signal)
        self._look_at_port(protocol, endpoint)
        return endpoint

    def _look_at_port(self, protocol: str, endpoint: Endpoint) -> None:
        other = "grpc" if protocol == "http/protobuf" else "http/protobuf"
        if endpoint.port == _PORTS[other]:
            self._warn(
                f"OTLP goes to port {endpoint.port} with {protocol}, and {endpoint.port} is the usual port of {other}: "
                f"use port {_PORTS[protocol]}, or the protocol {other} (in an agent file: {'http' if other != 'grpc' else other})"
            )

    def _warn(self, line: str) -> None:
        if line not in self._warnings:
            self._warnings.append(line)

    def _check_tls(self, signal: Signal, protocol: str, endpoint: Endpoint) -> None:
        source, said = self._environment.choice(*self._names(signal, "INSECURE"), known=("true", "false"))
        if said is not None and protocol == "grpc":
            if (said == "true") is not endpoint.insecure:
                self._warn(f"{source.removeprefix('env ')}={said} has no effect: the endpoint's scheme {endpoint.scheme}:// decides")
            return
        wanted = self._config.insecure
        overridden = self._precedence.sources[f"{signal}.url"].startswith("env ")
        if wanted is None or wanted is endpoint.insecure or (wanted and overridden):
            return
        fix = "https://" if endpoint.insecure else "http://"
        raise _error(_FILE, "insecure", f"insecure: {str(wanted).lower()} contradicts {endpoint.scheme}://: write {fix}… or remove it")

    def _headers(self, signal: Signal, protocol: str, endpoint: Endpoint) -> dict[str, str]:
        source, said = self._environment.text(*self._names(signal, "HEADERS"))
        headers = (
            None if said is None else clean_headers(split_pairs(source, said), protocol, lambda message: setting_error(source, message))
        )
        written = clean_headers(self._config.headers.items(), protocol, lambda message: _error(_FILE, "headers", message))
        chosen = self._precedence.pick(f"{signal}.headers", (source, headers), (_FILE, written or None), default={})
        if endpoint.credentials and "authorization" not in (name.lower() for name in chosen):
            basic = base64.b64encode(unquote(endpoint.credentials).encode()).decode("ascii")
            return {**chosen, "authorization": f"Basic {basic}"}
        return chosen

    def _timeout(self, signal: Signal) -> float:
        said = self._environment.number(*self._names(signal, "TIMEOUT"), low=1, high=MAX_MILLISECONDS, unit=" (milliseconds)")
        source, longest = self._environment.number(_EXPORT_TIMEOUTS[signal], low=1, high=MAX_MILLISECONDS, unit=" (milliseconds)")
        written = (_FILE, None if self._config.timeout_ms is None else float(self._config.timeout_ms))
        timeout = self._precedence.pick(f"{signal}.timeout", said, written, default=_DEFAULT_TIMEOUT)
        if longest is not None and longest < timeout:
            timeout = self._precedence.pick(f"{signal}.timeout", (source, longest), default=timeout)
        return timeout / 1000

    def _compression(self, signal: Signal, protocol: str) -> str:
        said = self._environment.choice(*self._names(signal, "COMPRESSION"), known=("none", "gzip", "deflate"))
        setting = f"{signal}.compression"
        compression = self._precedence.pick(setting, said, (_FILE, self._config.compression), default="none")
        if compression == "deflate" and protocol == "grpc":
            raise _error(self._precedence.sources[setting], "compression", "deflate is not possible with grpc: use gzip or none")
        return compression

    def _files(self, signal: Signal, endpoint: Endpoint) -> dict[str, Path | None]:
        files = {name: self._file(signal, name, endpoint) for name in ("certificate", "client_key", "client_certificate")}
        if (files["client_key"] is None) is not (files["client_certificate"] is None):
            missing = "CLIENT_KEY" if files["client_key"] is None else "CLIENT_CERTIFICATE"
            raise setting_error(f"env OTEL_EXPORTER_OTLP_{missing}", "is not set: a client key and a client certificate go together")
        return files

    def _file(self, signal: Signal, name: str, endpoint: Endpoint) -> Path | None:
        source, said = self._environment.text(*self._names(signal, name.upper()))
        if said is None:
            return None
        if endpoint.insecure:
            self._warn(f"{source.removeprefix('env ')} has no effect: the endpoint's scheme is http://")
            return None
        if not Path(said).is_file():
            raise setting_error(source, "there is no such file")
        self._precedence.sources[f"{signal}.{name}"] = source
        return Path(said)


def _error(source: str, key: str, message: str) -> ConfigError:
    """The error about ``key`` of ``exporters.otlp``, or about the variable that stands for it."""
    if source == _FILE:
        return KeyedError(("observability", "exporters", "otlp", key), message)
    return setting_error(source, message)
