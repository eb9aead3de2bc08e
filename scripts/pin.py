"""Write constraints.txt anew: the newest set of versions that pyproject.toml allows, found by installing it.

    python scripts/pin.py [PYTHON ...]

The first interpreter (by default the one that runs this; give the oldest supported one) resolves everything in a fresh environment.
With each further interpreter the outcome is installed once more, so that one pin holds for all of them. Standard library only.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What pip needs to build the project and the dependencies that come as source: pinned like the rest, though nothing imports it.
BUILD_TOOLS = ["build", "editables", "hatchling", "setuptools", "wheel"]
HEADER = "# Every distribution of a full installation, and what builds it. Made by `make pins`; do not edit.\n"


def main(pythons: list[str]) -> None:
    """Resolve with the first of ``pythons``, verify with the others, write the file."""
    first, *others = pythons or [sys.executable]
    pins = versions(first, None)
    for python in others:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.writelines(pins)
            file.flush()
            pins = sorted({*pins, *versions(python, file.name)}, key=str.lower)
    (ROOT / "constraints.txt").write_text(HEADER + "".join(pins), encoding="utf-8")


def versions(python: str, constraints: str | None) -> list[str]:
    """``name==version`` lines of a fresh environment of ``python`` with everything in it."""
    with tempfile.TemporaryDirectory() as place:
        run(python, "-m", "venv", place)
        inside = f"{place}/bin/python"
        within = ["--constraint", constraints] if constraints else []
        # --upgrade: a new environment of Python 3.11 brings an old setuptools along.
        run(inside, "-m", "pip", "install", "--quiet", "--upgrade", *within, f"{ROOT}[local,dev]", *BUILD_TOOLS)
        frozen = run(inside, "-m", "pip", "list", "--format=freeze", "--exclude=holodeck", "--exclude=pip").splitlines()
    return sorted((f"{line}\n" for line in frozen if re.fullmatch(r"[\w.-]+==[\w.!+-]+", line)), key=str.lower)


def run(*command: str) -> str:
    """The standard output of a command that has to succeed."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
