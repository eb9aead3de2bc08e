"""The cyclic garbage collector, put to rest where many records without cycles come to be at once."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["collector_at_rest"]


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Runs the block without cyclic garbage collection, then goes on as before.

    Left running, the collector walks everything that has been read so far again and again: more than half of the time of a long file. The
    switch is the process's, so a block should be short: one line, one list.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
