"""Every test of telemetry has a state directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory, in ``HOLODECK_STATE_DIR``."""
    directory = tmp_path / "state"
    monkeypatch.setenv("HOLODECK_STATE_DIR", str(directory))
    return directory
