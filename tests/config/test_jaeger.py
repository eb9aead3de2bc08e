"""Where Jaeger's pages are."""

from __future__ import annotations

import pytest

from holodeck.config import resolve_telemetry
from holodeck.errors import ConfigError, SettingError
from holodeck.models.observability import ObservabilityConfig, TelemetrySettings


def _resolve(environ: dict[str, str] | None = None, written: str | None = None, *, observability: bool = True) -> TelemetrySettings:
    return resolve_telemetry(ObservabilityConfig(jaeger_url=written), environ or {}, observability=observability)


def test_beside_a_collector_on_this_machine():
    """Jaeger of the shipped compose file is there."""
    settings = _resolve()
    assert (settings.jaeger_url, settings.sources["jaeger_url"]) == ("http://localhost:16686", "default")


def test_elsewhere_it_is_not_known():
    """No address is made up for a remote collector, nor where nothing is sent."""
    assert _resolve({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example.com"}).jaeger_url is None
    assert _resolve(observability=False).jaeger_url is None
    assert _resolve(written="https://jaeger.example.com", observability=False).jaeger_url is None


def test_environment_over_file_over_default():
    """The rule of every setting."""
    settings = _resolve(written="https://file.example.com/jaeger/")
    assert (settings.jaeger_url, settings.sources["jaeger_url"]) == ("https://file.example.com/jaeger", "agent file")
    settings = _resolve({"HOLODECK_JAEGER_URL": "https://env.example.com:8443"}, "https://file.example.com")
    assert (settings.jaeger_url, settings.sources["jaeger_url"]) == ("https://env.example.com:8443", "env HOLODECK_JAEGER_URL")
    assert _resolve({"HOLODECK_JAEGER_URL": ""}, "https://file.example.com").jaeger_url == "https://file.example.com"


def test_none_switches_the_link_off():
    """In either place."""
    assert _resolve({"HOLODECK_JAEGER_URL": "none"}).jaeger_url is None
    assert _resolve(written="none").jaeger_url is None


@pytest.mark.parametrize(
    "url", ["jaeger.example.com", "ftp://x", "http://", "http://a b", "http://u:hunter2@x", "http://x/\x1b]8;;", "http://j\u00e4ger"]
)
def test_what_is_no_url_is_refused(url):
    """One line that names the place, and never a password."""
    with pytest.raises(SettingError, match="HOLODECK_JAEGER_URL") as caught:
        _resolve({"HOLODECK_JAEGER_URL": url})
    assert "hunter2" not in caught.value.message
    with pytest.raises(ConfigError, match="jaeger_url"):
        _resolve(written=url)
