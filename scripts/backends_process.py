"""A program with a shipped configuration: its ports, its start, its health, its end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

START_SECONDS = 60
"""How long a start may take; Badger reads its files first, and after a crash it checks them."""
STOP_SECONDS = 30
"""How long an orderly end may take before the program is killed."""


class BackendError(Exception):
    """What happened and what to do, in words for a person."""


@dataclass
class Program:
    """Jaeger or the collector.

    Attributes:
        name: What it is called in messages and files.
        binary: The program.
        config: Its configuration; ``${env:NAME:-default}`` in it says which variables there are.
        prefix: What its variables start with: ``PREFIX_HOST``, ``PREFIX_HEALTH_PORT``, ….
        state: Directory of its log and pid file.
        environment: The variables it is started with.
        links: What to tell a person about it; ``{NAME}`` is a variable's value.
    """

    name: str
    binary: Path
    config: Path
    prefix: str
    state: Path
    environment: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.state / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        """Its process id and that process's start, so that a number that means another process by now is not taken for it."""
        return self.state / f"{self.name}.pid"

    @cached_property
    def variables(self) -> dict[str, str]:
        """The configuration's variables as the program sees them: while it runs those of its start, else those of the next one."""
        defaults = re.findall(r"\$\{env:(\w+):-([^}]*)\}", self.config.read_text(encoding="utf-8"))
        variables = {name: self.environment.get(name) or default for name, default in defaults}
        with contextlib.suppress(FileNotFoundError, ValueError):
            if self.pid() is not None:
                variables |= json.loads(self.variables_file.read_text(encoding="utf-8"))
        return variables

    @property
    def variables_file(self) -> Path:
        """The variables with which it was started."""
        return self.state / f"{self.name}.json"

    @property
    def host(self) -> str:
        """The address to reach it at from here."""
        host = self.variables[f"{self.prefix}_HOST"]
        return "127.0.0.1" if host == "0.0.0.0" else host

    def addresses(self) -> list[str]:
        """Lines for a person."""
        return [f"{what}: {text.format(host=self.host, **self.variables)}" for what, text in self.links.items()]

    def pid(self) -> int | None:
        """Its process id if it runs."""
        try:
            number, _, started = self.pid_file.read_text(encoding="utf-8").strip().partition(" ")
        except FileNotFoundError:
            return None
        return int(number) if number.isdigit() and started and start_of(int(number)) == started else None

    def check_ports(self) -> None:
        """Every port is free, unless the program itself runs.

        Raises:
            BackendError: One is not; says which, and who has it if that can be known.
        """
        if self.pid() is not None:
            return
        for name, value in self.variables.items():
            if not (name.startswith(self.prefix) and name.endswith("_PORT")):
                continue
            port = port_number(name, value)
            if not free(self.variables[f"{self.prefix}_HOST"], port):
                raise BackendError(
                    f"{self.name}: port {port} is taken{listener(port)}: stop what listens there, or choose another: make up {name}=…"
                )

    def start(self) -> bool:
        """Start it; False if it runs already."""
        if self.pid() is not None:
            return False
        self.state.mkdir(parents=True, exist_ok=True)
        self.variables_file.write_text(json.dumps(self.variables), encoding="utf-8")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(self.binary), "--config", str(self.config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(self.environment), cwd=self.state, start_new_session=True,
            )  # fmt: skip
        self.pid_file.write_text(f"{self._process.pid} {start_of(self._process.pid)}\n", encoding="utf-8")
        return True

    def wait_healthy(self, seconds: float = START_SECONDS) -> None:
        """Wait until it says that it is well.

        Raises:
            BackendError: It ended, or did not become healthy in time.
        """
        url = f"http://{self.host}:{self.variables[f'{self.prefix}_HEALTH_PORT']}/status"
        deadline = time.monotonic() + seconds
        while not healthy(url):
            if self._process is not None and self._process.poll() is not None:
                self.pid_file.unlink(missing_ok=True)
                raise BackendError(
                    f"{self.name} ended with {self._process.returncode} at its start; the end of {self.log}:\n{self._tail()}"
                )
            if time.monotonic() > deadline:
                raise BackendError(f"{self.name} is not healthy after {seconds:.0f} s ({url}); the end of {self.log}:\n{self._tail()}")
            time.sleep(0.05)

    def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """End it by its process id; False if it was not running."""
        pid = self.pid()
        if pid is not None:
            for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 10)):
                end(pid, number)
                if self._wait_gone(pid, patience):
                    break
        self.pid_file.unlink(missing_ok=True)
        return pid is not None

    def _wait_gone(self, pid: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process is not None and self._process.pid == pid:
                self._process.poll()  # a child of ours stays in the process table until it is asked after
            if start_of(pid) is None:
                return True
            time.sleep(0.05)
        return False

    def _tail(self) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])


def port_number(name: str, value: str) -> int:
    """A port from its variable.

    Raises:
        BackendError: It is none.
    """
    if not (value.isdecimal() and 0 < int(value) < 65536):
        raise BackendError(f"{name}={value} is no port: give a number from 1 to 65535")
    return int(value)


def end(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone by now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def start_of(pid: int) -> str | None:
    """When the process began, as text that never changes; None if there is no such process or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    said = subprocess.run(
        ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)], text=True, capture_output=True, check=False
    ).stdout.split()
    return "_".join(said[1:]) if said and not said[0].startswith("Z") else None


def free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: an old connection's leftovers are no obstacle
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise BackendError(f"cannot listen on {host}:{port} ({error.strerror}): choose another port or host") from error
    return True


def healthy(url: str) -> bool:
    """Whether the health check answers that all is well."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def listener(port: int) -> str:
    """`` by NAME (pid N)``; empty where the system does not say."""
    inodes = set(_listening_inodes(port))
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        try:
            links = {str(link.readlink()) for link in (process / "fd").iterdir()}
            if links & inodes:
                return f" by {(process / 'comm').read_text(encoding='utf-8').strip()} (pid {process.name})"
        except OSError:
            continue  # gone, or another user's
    return ""


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            for row in Path(table).read_text(encoding="utf-8").splitlines()[1:]:
                fields = row.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{fields[9]}]"
