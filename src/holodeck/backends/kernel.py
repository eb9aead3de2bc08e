"""Semantic Kernel, imported late, muted, and no more of it than is used.

Two things are kept from it. Its own GenAI telemetry (an older draft of the conventions) is switched off while it is imported, so that each
model call has exactly one ``chat`` span. And its settings classes read a ``.env`` file of the working directory by default: every connector
is given ``env_file_path`` so that they do not.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from holodeck.backends.packages import on_demand

__all__ = ["NO_ENV_FILE", "load"]

NO_ENV_FILE: Final = os.devnull
_SWITCHES: Final = (
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE",
)
_READS_SWITCHES: Final = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"
_lock = threading.Lock()
_loaded: dict[str, Any] = {}


def load(module: str = "semantic_kernel") -> Any:
    """Import a module of Semantic Kernel, or one of HoloDeck's that needs it; safe from any thread, and free after the first time."""
    if module not in _loaded:
        with _lock, _muted(), on_demand("semantic_kernel", "openai.types"):
            importlib.import_module(_READS_SWITCHES)  # now, while they are off, and not when a part that is loaded later needs it
            _loaded[module] = importlib.import_module(module)
    return _loaded[module]


@contextmanager
def _muted() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _SWITCHES}
    # Explicitly "false", not unset: Semantic Kernel would look into .env otherwise, and the environment wins over that.
    os.environ.update(dict.fromkeys(_SWITCHES, "false"))
    # It logs tracebacks of what is handled here, through logging's last resort, onto the terminal.
    logging.getLogger("semantic_kernel").addHandler(logging.NullHandler())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
