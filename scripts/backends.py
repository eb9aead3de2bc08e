"""Jaeger and an OpenTelemetry Collector without containers: built from their Go modules, run with the shipped configurations.

    python scripts/backends.py build     # instant when built; Go is the only need
    python scripts/backends.py where     # the directory of the two binaries; fails when they are not built
    python scripts/backends.py up        # start both and wait until they are healthy; does nothing where they run
    python scripts/backends.py down      # stop them; their data stays
    python scripts/backends.py status

Versions are pinned by go.mod and go.sum under otel-collector/modules. The binaries are kept outside the checkout, in
HOLODECK_BACKENDS_DIR (~/.cache/holodeck/backends), under a key of those pins. Logs, pid files and data are in the folder
``backends`` of HOLODECK_STATE_DIR (~/.local/state/holodeck). Standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends_process import BackendError, Program

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "otel-collector"
MODULES = CONFIGS / "modules"
PACKAGES = {"otelcol": ".", "jaeger": "github.com/jaegertracing/jaeger/cmd/jaeger"}
"""What is built in each module under ``MODULES``."""
# No C compiler, no path of this machine in the binaries, no look at the checkout's git state; the module graph stays as committed.
GO_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w")
GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}


def main(arguments: list[str]) -> int:
    """Run one command; problems are one line on standard error and exit code 1."""
    commands = {"build": build, "where": where, "up": up, "down": down, "status": status}
    if len(arguments) != 1 or arguments[0] not in commands:
        sys.stderr.write(f"usage: python scripts/backends.py {{{','.join(commands)}}}\n")
        return 2
    try:
        commands[arguments[0]]()
    except BackendError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def build() -> None:
    """Build what is not there yet."""
    if not missing():
        return
    check_go()
    place = directory()
    place.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(place):
        for name in missing():
            say(f"Building {name} from its Go modules; the first time this takes some minutes.")
            began = time.monotonic()
            compile_program(name, place / name)
            say(f"Built {name} in {time.monotonic() - began:.0f} s.")


def where() -> None:
    """Print the directory of the binaries."""
    if names := missing():
        raise BackendError(f"not built: {', '.join(names)} (make backends)")
    say(str(directory()))


def up() -> None:
    """Start Jaeger, then the collector."""
    where_built = directory()
    if missing():
        raise BackendError("Jaeger and the collector are not built yet: make backends")
    started: list[Program] = []
    everything = programs(where_built)
    for program in everything:
        program.check_ports()
    try:
        for program in everything:
            if program.start():
                started.append(program)
            program.wait_healthy()
    except BackendError:
        for program in reversed(started):
            program.stop()
        raise
    status()


def down() -> None:
    """Stop the collector, then Jaeger, so that nothing is sent to what is gone."""
    for program in reversed(programs(directory())):
        say(f"{program.name}: {'stopped' if program.stop() else 'was not running'}")


def status() -> None:
    """Say what runs, and where to reach it."""
    for program in programs(directory()):
        pid = program.pid()
        say(f"{program.name}: pid {pid}, log {program.log}" if pid else f"{program.name}: not running")
        for line in program.addresses() if pid else ():
            say(f"  {line}")


def programs(binaries: Path) -> list[Program]:
    """Jaeger and the collector with the shipped configurations, in the order of their start."""
    environment = dict(os.environ)
    state = state_directory()
    environment.setdefault("JAEGER_DATA", str(state / "jaeger"))
    environment.setdefault("COLLECTOR_DATA", str(state / "collector"))
    jaeger = Program(
        "jaeger", binaries / "jaeger", CONFIGS / "jaeger.yaml", "JAEGER", state, environment,
        links={"query API": "http://{host}:{JAEGER_QUERY_PORT}/api/v3/services (no web pages: those are in the container)"},
    )  # fmt: skip
    environment.setdefault("TRACES_ENDPOINT", f"{jaeger.host}:{jaeger.variables['JAEGER_OTLP_PORT']}")
    collector = Program(
        "collector", binaries / "otelcol", CONFIGS / "config.yaml", "COLLECTOR", state,
        {"GOGC": "300", "GOMEMLIMIT": "1GiB"} | environment,  # less processor time for more memory, up to the limit
        links={
            "OTLP": "http://{host}:{COLLECTOR_HTTP_PORT} (HTTP), http://{host}:{COLLECTOR_GRPC_PORT} (gRPC)",
            "Prometheus": "http://{host}:{COLLECTOR_PROMETHEUS_PORT}/metrics",
        },
    )  # fmt: skip
    return [jaeger, collector]


def missing() -> list[str]:
    """The programs that are not built."""
    return [name for name in PACKAGES if not (directory() / name).is_file()]


def directory() -> Path:
    """Where the binaries of these pins are, or would be, on this kind of machine."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HOLODECK_BACKENDS_DIR") or cache / "holodeck" / "backends") / key() / "bin"


def state_directory() -> Path:
    """Where logs, pid files and data are."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return Path(os.environ.get("HOLODECK_STATE_DIR") or state / "holodeck") / "backends"


def key() -> str:
    """A name for everything that decides what the binaries are, but for Go itself."""
    digest = hashlib.sha256(repr((GO_FLAGS, sorted(GO_ENVIRONMENT.items()), platform.system(), platform.machine())).encode())
    for path in sorted(MODULES.glob("*/*")):
        digest.update(f"{path.relative_to(MODULES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def check_go() -> None:
    """Go is there and new enough.

    Raises:
        BackendError: With what to do.
    """
    needed = max(re.findall(r"^go (\d+)\.(\d+)", (MODULES / name / "go.mod").read_text(), re.MULTILINE)[0] for name in PACKAGES)
    hint = f"install Go {'.'.join(needed)} or newer (https://go.dev/dl/), or use docker compose instead"
    try:
        said = subprocess.run(["go", "env", "GOVERSION"], cwd=Path.home(), text=True, capture_output=True, check=False)
    except FileNotFoundError:
        raise BackendError(f"Go is not installed, and Jaeger and the collector are built with it: {hint}") from None
    found = re.match(r"go(\d+)\.(\d+)", said.stdout)
    if found is None:
        raise BackendError(f"go does not say its version ({said.stderr.strip() or said.stdout.strip()}): {hint}")
    if tuple(map(int, found.groups())) < tuple(map(int, needed)):
        raise BackendError(f"this is {said.stdout.strip()}, too old: {hint}")


def compile_program(name: str, target: Path) -> None:
    """Build one program; ``target`` appears when it is complete."""
    partial = target.with_name(f".{name}.partial")
    command = ["nice", "go", "build", *GO_FLAGS, "-o", str(partial), PACKAGES[name]]
    ended = subprocess.run(command, cwd=MODULES / name, env=os.environ | GO_ENVIRONMENT, check=False)
    if ended.returncode:
        raise BackendError(f"{name} was not built: go ended with {ended.returncode}; what it says is above")
    partial.rename(target)


@contextmanager
def one_at_a_time(place: Path) -> Iterator[None]:
    """Wait for another build of the same pins to end."""
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    """A line on standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
