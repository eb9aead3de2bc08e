"""Load on the shipped collector: turns at a fixed rate through ``config.yaml`` into Jaeger, and what became of them.

    python benchmarks/load_collector.py                        # 2,000 turns of 8 spans a second, for a minute
    python benchmarks/load_collector.py --seconds 5 --turns 500

It starts a collector and a Jaeger of its own (``make backends`` builds them) on free ports, with data in a temporary directory (``--data``
names another place, to measure another disk). Requests are encoded before the clock starts; only trace ids and times are written into them
while it runs. Exit code 1 if anything was refused, could not be queued, is still queued 30 s after the end, or did not arrive.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from backends_process import Program  # noqa: E402 - likewise
from load_turns import CONNECTIONS, SPANS_PER_TURN, Load  # noqa: E402 - likewise

import backends  # noqa: E402 - it stands beside this folder, not in a package

DRAIN_SECONDS = 30.0
"""How long the queue may take to empty after the last turn."""
PATIENCE_SECONDS = 300.0
"""How long to wait for that all the same, so that the output says how long it took."""
READ_BACK = 200
STORES = {"badger": "Badger without fsync", "memory": "in memory"}
PORTS = {
    "JAEGER": ("OTLP", "QUERY", "QUERY_GRPC", "HEALTH", "TELEMETRY"),
    "COLLECTOR": ("GRPC", "HTTP", "PROMETHEUS", "HEALTH", "TELEMETRY"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the load and print figures."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory(prefix="holodeck-load-", dir=options.data, ignore_cleanup_errors=True) as place:
        programs = start(Path(place), options.store)
        try:
            return measure(options, *programs)
        finally:
            for program in reversed(programs):
                program.stop()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns a second")
    parser.add_argument("--seconds", type=float, default=60, help="how long")
    parser.add_argument("--per-request", type=int, default=10, help="turns in one request")
    parser.add_argument("--store", choices=("badger", "memory"), default="badger", help="Jaeger's; memory leaves the disk out of it")
    parser.add_argument("--data", type=Path, help="directory for queue and store (default: the system's temporary directory)")
    return parser.parse_args(arguments)


def start(place: Path, store: str) -> tuple[Program, Program]:
    """Jaeger and the collector on free ports."""
    if backends.missing():
        raise SystemExit("Jaeger and the collector are not built yet: make backends")
    sockets = {f"{prefix}_{name}_PORT": socket.create_server(("127.0.0.1", 0)) for prefix, names in PORTS.items() for name in names}
    os.environ.update({name: str(each.getsockname()[1]) for name, each in sockets.items()}, HOLODECK_STATE_DIR=str(place))
    for each in sockets.values():
        each.close()
    jaeger, collector = backends.programs(backends.directory())
    if store == "memory":
        jaeger = replace(jaeger, config=in_memory(jaeger.config, place / "jaeger.yaml"))
    for program in (jaeger, collector):
        program.start()
        program.wait_healthy()
    return jaeger, collector


def in_memory(config: Path, target: Path) -> Path:
    """The shipped configuration of Jaeger with a store in memory, as a file of its own."""
    document = yaml.safe_load(config.read_text(encoding="utf-8"))
    document["extensions"]["jaeger_storage"]["backends"]["main"] = {"memory": {"max_traces": 10_000_000}}
    target.write_text(yaml.safe_dump(document), encoding="utf-8")
    return target


def measure(options: argparse.Namespace, jaeger: Program, collector: Program) -> int:
    """Send, wait for the queue, compare; the exit code."""
    load = Load(collector.host, int(collector.variables["COLLECTOR_HTTP_PORT"]), options.turns, options.seconds, options.per_request)
    queue = Watch(lambda: metric(collector, "otelcol_exporter_queue_size"))
    queue.start()
    load.run()
    drained = wait_until(lambda: metric(collector, "otelcol_exporter_sent_spans") >= load.accepted_spans, PATIENCE_SECONDS)
    left = metric(collector, "otelcol_exporter_queue_size")
    queue.stop()
    whole = read_back(jaeger, random.Random(7).sample(load.accepted, min(READ_BACK, len(load.accepted))))
    figures = {
        "sent": load.sent_spans,
        "accepted": metric(collector, "otelcol_receiver_accepted_spans"),
        "refused": metric(collector, "otelcol_receiver_refused_spans") + load.sent_spans - load.accepted_spans,
        "failed to enqueue": metric(collector, "otelcol_exporter_enqueue_failed_spans"),
        "received by Jaeger": metric(jaeger, "otelcol_receiver_accepted_spans"),
        "stored by Jaeger": metric(jaeger, "otelcol_exporter_sent_spans"),
    }
    print_machine(Path(os.environ["HOLODECK_STATE_DIR"]), options.store)
    print_figures(options, load, figures, queue, drained, left, whole)
    for program in (collector, jaeger):
        print(f"{program.name:<10} {cpu_seconds(program):.1f} s CPU, {peak_mebibytes(program):.0f} MiB at most")
    good = (
        not figures["refused"]
        and not figures["failed to enqueue"]
        and drained is not None
        and drained <= DRAIN_SECONDS
        and not left
        and all(whole)
    )
    good = good and figures["sent"] == figures["accepted"] == figures["received by Jaeger"] == figures["stored by Jaeger"]
    good = good and load.seconds <= options.seconds * 1.02
    print("held" if good else "NOT HELD")
    return 0 if good else 1


def print_machine(place: Path, store: str) -> None:
    """What the figures are worth."""
    cpu = re.search(r"model name\s*:\s*(.+)", read(Path("/proc/cpuinfo")))
    memory = re.search(r"MemTotal:\s*(\d+)", read(Path("/proc/meminfo")))
    print(
        f"machine    {os.cpu_count()} × {cpu[1] if cpu else platform.processor()}, {int(memory[1]) // 2**20 if memory else '?'} GiB memory"
    )
    storage = subprocess.run(["df", "-PT", place], text=True, capture_output=True, check=False).stdout.split()[8:10]
    print(f"storage    {' '.join(reversed(storage)) or '?'}; queue: bbolt without fsync; store: {STORES[store]}")
    print("programs   OpenTelemetry Collector 0.161.0 with config.yaml, Jaeger 2.13.0 with jaeger.yaml; the load runs on the same machine")


def print_figures(
    options: argparse.Namespace, load: Load, figures: dict[str, float], queue: Watch, drained: float | None, left: float, whole: list[bool]
) -> None:
    """The load and what became of it."""
    rate = load.sent_spans / SPANS_PER_TURN / load.seconds
    print(f"load       {rate:,.0f} turns/s ({rate * SPANS_PER_TURN:,.0f} spans/s) of {options.turns:,} asked, for {load.seconds:.1f} s")
    print(f"           {options.per_request} turns a request of {load.size / 1024:.0f} KiB, {CONNECTIONS} connections, HTTP")
    slowest = [f"{percentile(load.latencies, percent):.1f} ms {name}" for percent, name in ((50, "median"), (99, "p99"), (100, "most"))]
    print(f"answers    {', '.join(slowest)}")
    for name, value in figures.items():
        print(f"spans      {value:>12,.0f} {name}")
    end = f"empty after {drained:.1f} s" if drained is not None else f"{left:,.0f} left after {PATIENCE_SECONDS:.0f} s"
    print(f"queue      {queue.most:,.0f} spans at most; {end}")
    print(f"read back  {sum(whole)} of {len(whole)} turns whole, through Jaeger's API")


class Watch(threading.Thread):
    """Looks at a figure twice a second and remembers the most."""

    def __init__(self, look: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self._look, self._stopped, self.most = look, threading.Event(), 0.0

    def run(self) -> None:
        """Look."""
        while not self._stopped.wait(0.5):
            self.most = max(self.most, self._look())

    def stop(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self.join()


def metric(program: Program, name: str) -> float:
    """The sum of one of a program's own metrics over its series; 0 while it has none."""
    url = f"http://{program.host}:{program.variables[f'{program.prefix}_TELEMETRY_PORT']}/metrics"
    with urllib.request.urlopen(url, timeout=10) as page:
        text = page.read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:_total)?(?:{{.*}})? (\S+)", text, re.MULTILINE))


def wait_until(look: Callable[[], bool], seconds: float) -> float | None:
    """Seconds until ``look()`` is true; None if it is not in time."""
    began = time.perf_counter()
    while not look():
        if time.perf_counter() - began > seconds:
            return None
        time.sleep(0.1)
    return time.perf_counter() - began


def read_back(jaeger: Program, traces: list[str]) -> list[bool]:
    """For each turn whether Jaeger has all its spans."""
    base = f"http://{jaeger.host}:{jaeger.variables['JAEGER_QUERY_PORT']}/api/v3/traces"
    found = []
    for trace in traces:
        try:
            with urllib.request.urlopen(f"{base}/{trace}", timeout=10) as page:
                found.append(page.read().count(b'"spanId"') == SPANS_PER_TURN)
        except OSError:
            found.append(False)
    return found


def cpu_seconds(program: Program) -> float:
    """User and system CPU of a running program."""
    fields = read(Path(f"/proc/{program.pid()}/stat")).rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else float("nan")


def peak_mebibytes(program: Program) -> float:
    """The most memory that a running program had."""
    peak = re.search(r"VmHWM:\s*(\d+)", read(Path(f"/proc/{program.pid()}/status")))
    return int(peak[1]) / 1024 if peak else float("nan")


def percentile(values: list[float], percent: int) -> float:
    """The value that ``percent`` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def read(path: Path) -> str:
    """A file of the system; empty where there is none."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    raise SystemExit(main())
