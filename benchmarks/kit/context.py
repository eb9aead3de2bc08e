"""What every topic is given."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """One run of the benchmark.

    Attributes:
        quick: No peers, few repetitions.
        place: A directory with the programs' files.
        model: Base URL of the model server.
        deadline: When the last measurement has to begin, on the monotonic clock.
    """

    quick: bool
    place: Path
    model: str
    deadline: float

    @property
    def repeats(self) -> int:
        """How often each figure is taken."""
        return 3 if self.quick else 5

    @property
    def late(self) -> bool:
        """Whether there is no time for more."""
        return time.monotonic() > self.deadline
