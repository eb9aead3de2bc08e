"""The door of the package."""

import subprocess
import sys

import holodeck.traces


def test_public_names_can_be_imported() -> None:
    """Everything in __all__ is there, in order."""
    assert sorted(holodeck.traces.__all__) == holodeck.traces.__all__
    assert all(hasattr(holodeck.traces, name) for name in holodeck.traces.__all__)


def test_importing_loads_nothing_heavy() -> None:
    """Reading traces needs no OpenTelemetry, no terminal library, no models, and no width tables until there is something wide."""
    heavy = "{'opentelemetry', 'rich', 'click', 'prompt_toolkit', 'wcwidth', 'pydantic', 'semantic_kernel'}"
    code = f"import sys, holodeck.traces; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
