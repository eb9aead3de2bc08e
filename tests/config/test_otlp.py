from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holodeck.config import resolve_telemetry
from holodeck.errors import ConfigError, SettingError
from holodeck.models.observability import ObservabilityConfig, OtlpTarget, TelemetrySettings

if TYPE_CHECKING:
    from pathlib import Path


def settings(environ: dict[str, str] | None = None, **otlp: Any) -> TelemetrySettings:
    """Settings with export on, ``OTEL_EXPORTER_OTLP_*`` from ``environ`` and this ``exporters.otlp``."""
    config = ObservabilityConfig.model_validate({"enabled": True, "exporters": {"otlp": otlp}})
    prefixed = {f"OTEL_EXPORTER_OTLP_{key}": value for key, value in (environ or {}).items()}
    return resolve_telemetry(config, prefixed)


def target(environ: dict[str, str] | None = None, **otlp: Any) -> OtlpTarget:
    """Where traces go."""
    found = settings(environ, **otlp).traces
    assert found is not None
    return found


def urls(environ: dict[str, str] | None = None, **otlp: Any) -> list[str]:
    """Where traces, metrics and logs go."""
    found = settings(environ, **otlp)
    return [each.url for each in (found.traces, found.metrics, found.logs) if each]


def test_the_defaults_are_those_of_the_specification() -> None:
    """HTTP goes to port 4318 with the path of the signal, gRPC to 4317; ten seconds, no compression."""
    assert urls() == ["http://localhost:4318/v1/traces", "http://localhost:4318/v1/metrics", "http://localhost:4318/v1/logs"]
    assert urls(protocol="grpc") == ["http://localhost:4317"] * 3
    assert (target().protocol, target().timeout, target().compression, target().insecure, target().headers) == (
        "http/protobuf",
        10.0,
        "none",
        True,
        {},
    )


def test_base_urls_of_file_and_environment_are_bases() -> None:
    """The agent file's endpoint and the general variable get the signals' paths; the variable wins."""
    assert urls(endpoint="http://file:1/v1/traces") == ["http://file:1/v1/traces", "http://file:1/v1/metrics", "http://file:1/v1/logs"]
    assert urls({"ENDPOINT": "http://env:1/"}, endpoint="http://file:1")[0] == "http://env:1/v1/traces"


def test_the_variable_of_one_signal_wins_and_is_used_as_it_is() -> None:
    """A signal's own endpoint gets no path; the others are not touched."""
    environ = {"ENDPOINT": "http://env:1", "TRACES_ENDPOINT": "http://own:2", "LOGS_ENDPOINT": "http://own:2/in"}
    assert urls(environ) == ["http://own:2/", "http://env:1/v1/metrics", "http://own:2/in"]
    found = settings(environ).sources
    assert found["traces.url"] == "env OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
    assert found["metrics.url"] == "env OTEL_EXPORTER_OTLP_ENDPOINT"


def test_signals_may_use_different_protocols() -> None:
    """Each signal has the default endpoint of its own protocol."""
    found = settings({"PROTOCOL": "grpc", "LOGS_PROTOCOL": "http/protobuf"})
    assert found.traces is not None
    assert found.logs is not None
    assert (found.traces.url, found.logs.url) == ("http://localhost:4317", "http://localhost:4318/v1/logs")


@pytest.mark.parametrize(("written", "protocol"), [("http", "http/protobuf"), ("grpc", "grpc")])
def test_the_protocols_of_the_file_are_those_of_the_environment(written: str, protocol: str) -> None:
    """``http`` in the file is ``http/protobuf``; the environment overrides it."""
    assert target(protocol=written).protocol == protocol
    assert target({"PROTOCOL": "grpc"}, protocol="http").protocol == "grpc"


@pytest.mark.parametrize(
    ("protocol", "words"),
    [("http", "write http/protobuf"), ("http/json", "http/json is not supported: use http/protobuf"), ("udp", "use http/protobuf or grpc")],
)
def test_other_protocols_are_one_error(protocol: str, words: str) -> None:
    """Anything else is refused, with what to write."""
    with pytest.raises(SettingError, match=rf"^OTEL_EXPORTER_OTLP_PROTOCOL: {words}$"):
        target({"PROTOCOL": protocol})


def test_a_bad_endpoint_names_its_origin() -> None:
    """A missing scheme is said about the variable, or about the key of the file."""
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: has no scheme: write http://h:4318 "):
        target({"LOGS_ENDPOINT": "h:4318"})
    with pytest.raises(ConfigError, match=r"observability\.exporters\.otlp\.endpoint: has no scheme"):
        target(endpoint="h:4318")


@pytest.mark.parametrize(
    ("protocol", "port", "warned"),
    [("http", 4317, True), ("http", 4318, False), ("grpc", 4318, True), ("grpc", 4317, False), ("grpc", 55680, False)],
)
def test_the_usual_port_of_the_other_protocol_is_a_warning(protocol: str, port: int, warned: bool) -> None:
    """The usual mix-up is one warning for all signals, with the fix."""
    warnings = settings(protocol=protocol, endpoint=f"http://h:{port}").warnings
    assert len(warnings) == warned
    assert not warned or f"port {port} with" in warnings[0]


@pytest.mark.parametrize(("scheme", "insecure"), [("http", True), ("https", False)])
def test_the_scheme_decides_on_tls(scheme: str, insecure: bool) -> None:
    """The flag may confirm the scheme; in the file a contradiction is an error."""
    assert target(endpoint=f"{scheme}://h:1").insecure is insecure
    assert target(endpoint=f"{scheme}://h:1", insecure=insecure).insecure is insecure
    with pytest.raises(ConfigError, match=rf"otlp\.insecure: insecure: {str(not insecure).lower()} contradicts {scheme}://"):
        target(endpoint=f"{scheme}://h:1", insecure=not insecure)


def test_a_wish_for_tls_is_never_dropped() -> None:
    """TLS asked for in the file is an error with a plain endpoint of the environment; the other way round the environment decides."""
    for environ in ({}, {"ENDPOINT": "http://env:1"}):
        with pytest.raises(ConfigError, match="contradicts http://"):
            target(environ, insecure=False)
    assert target({"ENDPOINT": "https://env:1"}, endpoint="http://file:1", insecure=True).insecure is False


def test_the_insecure_variable_confirms_or_is_a_warning() -> None:
    """For gRPC a variable that contradicts the scheme has no effect and is said; for HTTP it means nothing."""
    contradicting = {"ENDPOINT": "https://h:1", "INSECURE": "true"}
    assert settings(contradicting, protocol="grpc").warnings == (
        "OTEL_EXPORTER_OTLP_INSECURE=true has no effect: the endpoint's scheme https:// decides",
    )
    assert target(contradicting, protocol="grpc").insecure is False
    assert settings({"INSECURE": "true"}, protocol="grpc").warnings == ()
    assert settings(contradicting).warnings == ()
    with pytest.raises(SettingError, match="INSECURE: 'yes' is unknown"):
        target({"INSECURE": "yes"}, protocol="grpc")


def test_headers_of_the_environment_replace_those_of_the_file() -> None:
    """The most specific list counts, whole; values are decoded and trimmed."""
    assert target(headers={"A": "b"}).headers == {"A": "b"}
    assert target({"HEADERS": "x-key=a%20b+c%3D \n"}, headers={"A": "b"}).headers == {"x-key": "a b+c="}
    assert target({"HEADERS": "x=1", "TRACES_HEADERS": "Y=2"}, protocol="grpc").headers == {"y": "2"}


@pytest.mark.parametrize("value", ["authorization=Bearer s3cret%0Ax", "Bearer s3cret", "x=1,s3cret", "s3cret key=1"])
def test_bad_headers_are_never_shown(value: str) -> None:
    """Neither the message nor the settings' text has a header's value in it."""
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_HEADERS: ") as caught:
        target({"HEADERS": value})
    assert "s3cret" not in str(caught.value)


def test_headers_are_not_in_the_settings_text() -> None:
    """Printing settings shows no secret."""
    found = settings({"HEADERS": "authorization=s3cret", "ENDPOINT": "http://user:hunter2@h:1"})
    assert "s3cret" not in repr(found)
    assert "hunter2" not in repr(found)


def test_credentials_of_a_url_become_a_header() -> None:
    """User and password leave the URL and are sent; a header of the user's own stays."""
    found = target({"ENDPOINT": "http://user:p%40ss@h:1"})
    assert (found.url, found.headers) == ("http://h:1/v1/traces", {"authorization": "Basic dXNlcjpwQHNz"})
    assert target({"ENDPOINT": "http://u:p@h:1", "HEADERS": "Authorization=own"}).headers == {"Authorization": "own"}


def test_timeouts_are_milliseconds_in_and_seconds_out() -> None:
    """The variable of the signal, the general one, the file, then ten seconds."""
    assert target({"TRACES_TIMEOUT": "250", "TIMEOUT": "9"}, timeout_ms=2000).timeout == 0.25
    assert target({"TIMEOUT": "1500"}, timeout_ms=2000).timeout == 1.5
    assert target(timeout_ms=2000).timeout == 2.0
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_TIMEOUT: '10s' is not a number"):
        target({"TIMEOUT": "10s"})
    for bad in ("0", "2147483648", "1e300"):
        with pytest.raises(SettingError, match=r"is not a number from 1 to 2,147,483,647 \(milliseconds\)"):
            target({"TIMEOUT": bad})


@pytest.mark.parametrize(
    ("signal", "variable"),
    [("traces", "OTEL_BSP_EXPORT_TIMEOUT"), ("metrics", "OTEL_METRIC_EXPORT_TIMEOUT"), ("logs", "OTEL_BLRP_EXPORT_TIMEOUT")],
)
def test_an_export_takes_no_longer_than_its_processor_allows(signal: str, variable: str) -> None:
    """The shorter of the two times counts, for its own signal, and the source says which one it was."""
    config = ObservabilityConfig.model_validate({"enabled": True, "exporters": {"otlp": {"timeout_ms": 3000}}})
    shorter, longer = (resolve_telemetry(config, {variable: value}) for value in ("2000", "30000"))
    others = {"traces", "metrics", "logs"} - {signal}
    assert (getattr(shorter, signal).timeout, shorter.sources[f"{signal}.timeout"]) == (2.0, f"env {variable}")
    assert {getattr(shorter, other).timeout for other in others} == {3.0}
    assert (getattr(longer, signal).timeout, longer.sources[f"{signal}.timeout"]) == (3.0, "agent file")
    with pytest.raises(SettingError, match=rf"^{variable}: 'soon' is not a number"):
        resolve_telemetry(config, {variable: "soon"})


def test_compression_follows_the_protocol() -> None:
    """HTTP has gzip and deflate, gRPC has gzip; the error names who asked."""
    assert target({"COMPRESSION": "GZIP"}, compression="deflate").compression == "gzip"
    assert target(compression="deflate").compression == "deflate"
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_COMPRESSION: deflate is not possible with grpc"):
        target({"COMPRESSION": "deflate"}, protocol="grpc")
    with pytest.raises(ConfigError, match=r"otlp\.compression: deflate is not possible with grpc"):
        target(compression="deflate", protocol="grpc")
    with pytest.raises(SettingError, match="'br' is unknown"):
        target({"COMPRESSION": "br"})


def test_certificates_have_to_exist_and_to_matter(tmp_path: Path) -> None:
    """Files are looked for; a key needs its certificate; without TLS they have no effect, which is said."""
    for name in ("ca", "key", "crt"):
        (tmp_path / name).touch()
    environ = {
        "ENDPOINT": "https://h:1",
        "CERTIFICATE": f"{tmp_path}/ca",
        "CLIENT_KEY": f"{tmp_path}/key",
        "CLIENT_CERTIFICATE": f"{tmp_path}/crt",
    }
    found = target(environ)
    assert (found.certificate, found.client_key, found.client_certificate) == (tmp_path / "ca", tmp_path / "key", tmp_path / "crt")
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_CERTIFICATE: there is no such file"):
        target(environ | {"CERTIFICATE": f"{tmp_path}/no"})
    with pytest.raises(SettingError, match=r"^OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: is not set"):
        target(environ | {"CLIENT_CERTIFICATE": ""})
    plain = settings(environ | {"ENDPOINT": "http://h:1"})
    assert plain.traces is not None
    assert plain.traces.certificate is None
    assert "OTEL_EXPORTER_OTLP_CERTIFICATE has no effect: the endpoint's scheme is http://" in plain.warnings
