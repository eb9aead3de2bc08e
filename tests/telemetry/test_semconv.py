"""The list of our own attributes and what is made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from holodeck.telemetry import semconv

ROOT = Path(__file__).parents[2]


def run(argument: str) -> str:
    """Print one of the outputs."""
    return subprocess.run([sys.executable, "-m", "holodeck.telemetry", argument], capture_output=True, text=True, check=True).stdout


def test_names_are_one_a_line() -> None:
    """--names prints every holodeck.* attribute, one a line."""
    assert run("--names").split() == semconv.names()
    assert all(name.startswith("holodeck.") for name in semconv.names())


def test_the_registry_is_in_weavers_format() -> None:
    """The registry is YAML with an attribute group whose entries have id, type, stability, brief and examples."""
    (group,) = yaml.safe_load(semconv.registry())["groups"]
    assert group["type"] == "attribute_group"
    assert [a["id"] for a in group["attributes"]] == semconv.names()
    for attribute in group["attributes"]:
        assert attribute.keys() == {"id", "type", "stability", "brief", "examples"}
        kinds = {"string": str, "int": int, "double": float, "boolean": bool}
        assert isinstance(attribute["examples"][0], kinds[attribute["type"]])


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the documentation is not part of an installed package")
def test_the_documentation_shows_what_the_code_says() -> None:
    """The registry under docs/semconv and the table in docs/telemetry.md are what the code makes."""
    assert (ROOT / "docs/semconv/registry.yaml").read_text(encoding="utf-8") == semconv.registry()
    assert semconv.table() in (ROOT / "docs/telemetry.md").read_text(encoding="utf-8")
