"""For tests: telemetry that is the same in every run.

:class:`SequentialIds` and :class:`FakeClock` make a whole trace comparable as a literal.
"""

from __future__ import annotations

from holodeck.testing.deterministic import FakeClock, SequentialIds

__all__ = ["FakeClock", "SequentialIds"]
