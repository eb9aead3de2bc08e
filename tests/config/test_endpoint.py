from __future__ import annotations

import pytest

from holodeck.config.endpoint import parse_endpoint
from holodeck.errors import SettingError


@pytest.mark.parametrize(
    ("text", "traces", "logs"),
    [
        ("http://h:4318", "http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("http://h:4318/", "http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/traces", "http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/traces/", "http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("http://h:4318/v1/logs", "http://h:4318/v1/traces", "http://h:4318/v1/logs"),
        ("https://h/otlp", "https://h/otlp/v1/traces", "https://h/otlp/v1/logs"),
        ("https://h/otlp/v1/traces?k=v", "https://h/otlp/v1/traces?k=v", "https://h/otlp/v1/logs?k=v"),
        ("HTTP://[::1]:4318", "http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/logs"),
        ("https://u:p@h:1", "https://h:1/v1/traces", "https://h:1/v1/logs"),
    ],
)
def test_a_base_url_gets_the_path_of_each_signal_once(text: str, traces: str, logs: str) -> None:
    """A slash, no slash, a full path and the path of another signal all end at the same URL, without credentials."""
    endpoint = parse_endpoint(text, SettingError)
    assert endpoint.with_path_of("traces").url == traces
    assert endpoint.with_path_of("logs").url == logs


@pytest.mark.parametrize(
    ("text", "url"), [("http://h:1", "http://h:1/"), ("http://h:1/x", "http://h:1/x"), ("http://h:1/v1/logs/", "http://h:1/v1/logs/")]
)
def test_an_endpoint_of_one_signal_is_used_as_it_is(text: str, url: str) -> None:
    """Only a missing path becomes ``/``."""
    assert parse_endpoint(text, SettingError).as_it_is().url == url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://h:4317", "http://h:4317"),
        ("https://h:4317/v1/traces?x=1", "https://h:4317"),
        ("https://h", "https://h:443"),
        ("http://[::1]:1/", "http://[::1]:1"),
        ("http://u:p@h", "http://h:80"),
    ],
)
def test_grpc_takes_scheme_host_and_port(text: str, url: str) -> None:
    """Paths mean nothing to gRPC; a port is always there."""
    assert parse_endpoint(text, SettingError).grpc_url == url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("localhost:4317", "has no scheme: write http://localhost:4317 "),
        ("h:4318/x", "has no scheme: write http://h:4318/x "),
        ("collector", "has no scheme: write http://collector "),
        ("user:hunter2@h:4318", "has no scheme: write http://h:4318 "),
        ("//h:4318", "has no scheme"),
        ("unix:/tmp/s", "sockets"),
        ("unix:///tmp/s", "not supported"),
        ("grpc://h:4317", "the scheme grpc:// is not supported: use http:// or https:// (also for grpc)"),
        ("http://", "has no host"),
        ("http://:4318", "has no host"),
        ("http://h:port", "port is not a number"),
        ("http://h:99999", "port is not a number"),
        ("http://h:0", "port 0"),
        ("http://user:hunter2@h:x", "port is not a number"),
        ("http://[::1", "is not a URL"),
        ("http://h:4318/a b", "white space"),
        ("http://h\x00:4318", "white space or controls"),
    ],
)  # fmt: skip
def test_what_is_no_endpoint_is_refused_with_the_fix(text: str, words: str) -> None:
    """Each fault has a sentence; a password never is in it."""
    with pytest.raises(SettingError) as caught:
        parse_endpoint(text, SettingError)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
