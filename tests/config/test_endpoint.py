from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from holodeck.config import load_agent_config, resolve_telemetry
from holodeck.config.endpoint import parse_endpoint
from holodeck.errors import AgentFileError, SettingError
from support.command import run


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
        ("grpc://h:4317", "the scheme grpc:// is not supported: use http:// or https://, whatever the protocol"),
        ("http://", "has no host"),
        ("http://:4318", "has no host"),
        ("http://h:port", "port is not a number"),
        ("http://h:99999", "port is not a number"),
        ("http://h:0", "port 0"),
        ("http://user:hunter2@h:x", "port is not a number"),
        ("http://[::1", "is not a URL"),
        ("http://1.2.3.999:4318", "cannot be looked up"),
        ("http://a..b:4318", "cannot be looked up"),
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


BAD_URLS = {
    "http://u:hunter2@127.0.0.1:99999/v1": "port is not a number from 1 to 65535",
    "http://u:hunter2@[::1/v1": "is not a URL",
    "http://u:hunter2@h:abc/": "port is not a number",
    "http://": "has no host",
    "http://:80/hunter2": "has no host",
    "http://u:hunter2@/": "has no host",
    "http://h:0/hunter2": "the port 0",
    "http://h/hunter2 x": "white space",
    "http://h\t/hunter2": "white space or controls",
    "http://a..b/hunter2": "cannot be looked up",
    "ftp://u:hunter2@h": "the scheme ftp:// is not supported",
    "hunter2@h:80": "scheme",
}
PLACES = {
    "model.endpoint": {"model": {"provider": "openai", "name": "m", "api_key": "k", "endpoint": "URL"}},
    "tools[0].url": {"tools": [{"name": "t", "type": "mcp", "transport": "http", "url": "URL"}]},
    "tools[0].model.endpoint": {
        "tools": [{"name": "t", "type": "prompt", "template": "x", "model": {"provider": "ollama", "name": "m", "endpoint": "URL"}}]
    },
    "observability.exporters.otlp.endpoint": {"observability": {"exporters": {"otlp": {"endpoint": "URL"}}}},
    "observability.jaeger_url": {"observability": {"jaeger_url": "URL"}},
}


def _agent_with(key: str, url: str, directory: Path) -> Path:
    """An agent file whose ``key`` is ``url``, a line each."""
    agent = {"name": "a", "model": {"provider": "ollama", "name": "m"}} | PLACES[key]
    path = directory / "agent.yaml"
    path.write_text(
        yaml.safe_dump(agent, sort_keys=False).replace(": URL", f": {yaml.dump(url, width=9999).splitlines()[0]}"), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("url", BAD_URLS)
@pytest.mark.parametrize("key", PLACES)
def test_every_url_of_an_agent_file_is_checked_when_it_is_read(key: str, url: str, tmp_path: Path) -> None:
    """The error names file, line and key and says what is wrong, and leaves out the value, which may hold a password."""
    path = _agent_with(key, url, tmp_path)
    line = next(n for n, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if f"{key.rpartition('.')[2]}: " in text)
    with pytest.raises(AgentFileError) as caught:
        load_agent_config(path, {})
    assert str(caught.value).startswith(f"{path}:{line}: {key}: ")
    assert BAD_URLS[url] in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_endpoint_is_checked_where_nothing_goes_there_too(tmp_path: Path) -> None:
    """Export, or each signal, may be switched on again later."""
    for section in (
        {"exporters": {"otlp": {"enabled": False, "endpoint": "http://h:99999"}}},
        {"traces": {"enabled": False}, "metrics": {"enabled": False}, "logs": {"enabled": False}}
        | {"exporters": {"otlp": {"endpoint": "http://h:99999"}}},
    ):
        path = tmp_path / "agent.yaml"
        path.write_text(
            yaml.safe_dump({"name": "a", "model": {"provider": "ollama", "name": "m"}, "observability": section}), encoding="utf-8"
        )
        with pytest.raises(AgentFileError, match=r"observability\.exporters\.otlp\.endpoint: .*port is not a number"):
            load_agent_config(path, {})


@pytest.mark.parametrize("key", PLACES)
def test_a_bad_url_ends_the_command_before_the_first_turn(key: str, tmp_path: Path) -> None:
    """One line, exit 2, nothing on stdout."""
    done = run(["chat", _agent_with(key, "http://u:hunter2@127.0.0.1:99999/v1", tmp_path), "-m", "hi"])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f": {key}: is not a URL, or its port is not a number from 1 to 65535" in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize("url", BAD_URLS)
@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("OPENAI_BASE_URL", "openai"),
        ("AZURE_OPENAI_ENDPOINT", "azure_openai"),
        ("ANTHROPIC_BASE_URL", "anthropic"),
        ("HOLODECK_JAEGER_URL", ""),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ],
)
def test_every_url_of_the_environment_is_checked_before_it_is_used(variable: str, provider: str, url: str, tmp_path: Path) -> None:
    """The variable is named, not the file, and its value is left out."""
    path = tmp_path / "agent.yaml"
    path.write_text(f"name: a\nmodel: {{provider: {provider or 'ollama'}, name: m, api_key: k}}\n", encoding="utf-8")

    def start() -> None:
        config = load_agent_config(path, {variable: url}).config
        resolve_telemetry(config.observability, {variable: url}, observability=True)

    with pytest.raises(SettingError) as caught:
        start()
    assert str(caught.value).startswith(f"{variable}: ")
    assert BAD_URLS[url] in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["[::1", "http://[::1", "u:hunter2@gpu:99999", "a..b", "gpu hunter2", "http://u:hunter2@gpu:x"])
def test_a_bad_host_of_ollama_is_refused_as_such(host: str, tmp_path: Path) -> None:
    """OLLAMA_HOST may leave out scheme and port, and nothing else."""
    path = tmp_path / "agent.yaml"
    path.write_text("name: a\nmodel: {provider: ollama, name: m}\n", encoding="utf-8")
    with pytest.raises(SettingError, match=r"^OLLAMA_HOST: ") as caught:
        load_agent_config(path, {"OLLAMA_HOST": host})
    assert "hunter2" not in str(caught.value)
