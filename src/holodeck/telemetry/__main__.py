"""``python -m holodeck.telemetry --names|--table|--registry``: the attributes of ours, for checkers and the documentation."""

from __future__ import annotations

import sys

from holodeck.telemetry import semconv


def main(arguments: list[str]) -> int:
    """Print what ``arguments`` ask for; 2 if that is nothing known."""
    outputs = {"--names": lambda: "\n".join(semconv.names()) + "\n", "--table": semconv.table, "--registry": semconv.registry}
    if len(arguments) != 1 or arguments[0] not in outputs:
        sys.stderr.write(f"usage: python -m holodeck.telemetry {'|'.join(outputs)}\n")
        return 2
    sys.stdout.write(outputs[arguments[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
