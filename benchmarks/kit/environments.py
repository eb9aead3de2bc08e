"""Virtual environments of the peers: pinned, built once, outside the checkout."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Environment", "build", "directory"]

_HERE = Path(__file__).parent.parent
_SECONDS = 300.0


@dataclass(frozen=True)
class Environment:
    """An environment, or why there is none.

    Attributes:
        name: Of the peer; its pins are in ``requirements-NAME.txt``.
        path: Where it is.
        problem: Why it cannot be used; "" if it can.
    """

    name: str
    path: Path
    problem: str = ""

    def program(self, name: str) -> str:
        """A program in it."""
        return str(self.path / "bin" / name)


def directory() -> Path:
    """Where the environments are: ``HOLODECK_BENCH_DIR``, or a place in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("HOLODECK_BENCH_DIR") or Path(cache) / "holodeck" / "bench")


def build(name: str, *, late: bool = False) -> Environment:
    """The environment of a peer; made now if it is missing, or if its pins or Python have changed, unless it is too ``late`` for that."""
    pins = _HERE / f"requirements-{name}.txt"
    mark = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()
    path, stamp = directory() / name, directory() / name / ".built"
    if stamp.exists() and stamp.read_text() == mark:
        return Environment(name, path)
    if late:
        return Environment(name, path, "no time left to install it: it will be there in the next run")
    print(f"installing {name} into {path}", file=sys.stderr, flush=True)
    problem = _install(path, pins)
    if not problem:
        stamp.write_text(mark)
    return Environment(name, path, problem)


def _install(path: Path, pins: Path) -> str:
    pip = [str(path / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", str(pins)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(path)], ["nice", *pip]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"not installed within {_SECONDS:.0f} s"
        if done.returncode:
            return " ".join((done.stderr.strip().splitlines() or ["pip failed"])[-1].split())[:160]
    return ""
