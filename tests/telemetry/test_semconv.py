"""The list of our own attributes and what is made from it."""

from __future__ import annotations

import subprocess
import sys

import yaml

from holodeck.telemetry import semconv


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
