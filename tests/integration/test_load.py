"""The load script, in short: what it measures has to hold at a rate that any machine holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from integration.stack import ROOT


def test_a_little_load(binaries: Path) -> None:
    """Every span of three seconds of turns is accepted, delivered, stored and read back, and the script says so."""
    command = [sys.executable, str(ROOT / "benchmarks" / "load_collector.py"), "--seconds", "3", "--turns", "100"]
    result = subprocess.run(command, env=dict(os.environ), text=True, capture_output=True, timeout=100, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for line in ("2,400 sent", "2,400 accepted", "0 refused", "0 failed to enqueue", "2,400 received by Jaeger", "2,400 stored by Jaeger"):
        assert f" {line}\n" in result.stdout
    assert "200 of 200 turns whole" in result.stdout
    assert result.stdout.endswith("held\n")
