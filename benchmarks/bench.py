"""Measure HoloDeck beside what one would otherwise install: start-up, turns, latency, sessions, leaving, size.

    python benchmarks/bench.py                 # everything, within 20 minutes on two cores
    python benchmarks/bench.py --quick         # HoloDeck alone, within a minute
    python benchmarks/bench.py startup exit    # some topics

Prints a Markdown table a topic and writes the same figures to a JSON file. Exit code 1 if a goal was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from kit.context import Context
from kit.processes import serving
from kit.programs import write_files
from kit.report import Table, machine, markdown

TOPICS = {"startup": "startup", "turn": "turn", "latency": "latency", "sessions": "sessions", "exit": "leaving", "size": "size"}
"""What can be asked for → the module that measures it."""

FULL_SECONDS = 1_080.0
"""When the last measurement of a full run begins: each is short, so that the whole stays within 20 minutes."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}; all of them by default")
    parser.add_argument("--quick", action="store_true", help="HoloDeck alone: no peers, no environments, few repetitions")
    figures = "where the figures go (default: %(default)s)"
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), metavar="FILE", help=figures)
    options = parser.parse_args(arguments)
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"no such topic: {', '.join(sorted(unknown))}")
    return options


def measure(topics: Sequence[str], *, quick: bool) -> list[Table]:
    """The tables of ``topics``, printed as they come."""
    deadline = time.monotonic() + FULL_SECONDS
    tables: list[Table] = []
    with tempfile.TemporaryDirectory(prefix="holodeck-bench-") as place, serving("model") as model:
        write_files(Path(place), model)
        context = Context(quick, Path(place), model, deadline)
        for topic in topics:
            for table in _attempt(topic, context):
                tables.append(table)
                print(markdown(table), flush=True)
    return tables


def _attempt(topic: str, context: Context) -> list[Table]:
    try:
        tables: list[Table] = import_module(f"topics.{TOPICS[topic]}").measure(context)
    except Exception as error:  # noqa: BLE001 - one topic that fails must not take the figures of the others along
        traceback.print_exc()
        return [Table(topic.capitalize(), ["not measured"], notes=[f"{type(error).__name__}: {error}"])]
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = parse(arguments)
    start, where = time.monotonic(), machine()
    print("\n".join(f"- {name}: {value}" for name, value in where.items()), "", sep="\n", flush=True)
    tables = measure(options.topics or list(TOPICS), quick=options.quick)
    seconds = time.monotonic() - start
    data = {"machine": where, "seconds": round(seconds), "quick": options.quick, "tables": [table.data() for table in tables]}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = [goal.words for table in tables for goal in table.goals if not goal.met]
    broken = [table.title for table in tables if not table.rows]
    print(f"{seconds:.0f} s; figures in {options.json}" + "".join(f"\nmissed: {words}" for words in [*missed, *broken]))
    return int(bool(missed or broken))


if __name__ == "__main__":
    sys.exit(main())
