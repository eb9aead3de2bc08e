"""Building: what it says where Go is missing or too old, and that it does nothing where everything is built."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from integration.stack import ROOT, script


def fake_go(directory: Path, version: str) -> str:
    """A ``go`` that says a version and fails at everything else; the PATH with it alone."""
    program = directory / "go"
    program.write_text(f'#!/bin/sh\n[ "$1" = env ] && echo {version} && exit 0\nexit 3\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return os.pathsep.join([str(directory), "/usr/bin", "/bin"])


def test_go_is_missing(tmp_path: Path) -> None:
    """Without Go there is one line that says what to install, or what to do instead."""
    result = script("build", PATH=str(tmp_path), HOLODECK_BACKENDS_DIR=str(tmp_path))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "Go is not installed, and Jaeger and the collector are built with it: "
        "install Go 1.26 or newer (https://go.dev/dl/), or use docker compose instead\n"
    )


def test_go_is_too_old(tmp_path: Path) -> None:
    """A Go that is too old is named with its version."""
    result = script("build", PATH=fake_go(tmp_path, "go1.21.5"), HOLODECK_BACKENDS_DIR=str(tmp_path))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("this is go1.21.5, too old: install Go 1.26 or newer")


def test_a_build_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A failed build is said, and is no built program."""
    place = {"HOLODECK_BACKENDS_DIR": str(tmp_path)}
    result = script("build", PATH=fake_go(tmp_path, "go1.30"), **place)
    assert result.returncode == 1
    assert "otelcol was not built: go ended with 3" in result.stderr
    assert script("where", **place).returncode == 1


@pytest.mark.parametrize("command", ["where", "up"])
def test_nothing_is_built(tmp_path: Path, command: str) -> None:
    """What needs the programs says how to get them."""
    result = script(command, HOLODECK_BACKENDS_DIR=str(tmp_path))
    assert result.returncode == 1
    assert "make backends" in result.stderr
    assert result.stderr.count("\n") == 1


def test_everything_is_built(binaries: Path) -> None:
    """Where both are built, building says nothing and does not even look for Go."""
    result = script("build", PATH=str(Path(sys.executable).parent))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_an_unknown_command() -> None:
    """Anything else gets the usage and exit code 2."""
    result = script("restart")
    assert (result.returncode, result.stderr.startswith("usage: ")) == (2, True)


@pytest.mark.parametrize(("required", "code", "outcome"), [("", 0, "1 skipped"), ("1", 1, "1 error")])
def test_tests_that_need_the_programs(tmp_path: Path, required: str, code: int, outcome: str) -> None:
    """Without the programs the tests that need them are skipped with what to do; where the programs are required, they fail with it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/integration/test_load.py"]
    environment = os.environ | {"HOLODECK_BACKENDS_DIR": str(tmp_path), "HOLODECK_REQUIRE_BACKENDS": required}
    result = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=60, check=False)
    assert result.returncode == code, result.stdout
    assert outcome in result.stdout
    assert "not built: otelcol, jaeger (make backends)" in result.stdout
