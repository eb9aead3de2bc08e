"""The schema command."""

from __future__ import annotations

import json

from holodeck.cli.main import run
from holodeck.config import agent_schema


def test_the_schema_is_printed_as_json(capsys):
    """What is printed is the schema of the loader, and JSON."""
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == agent_schema()
