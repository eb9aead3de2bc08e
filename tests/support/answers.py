"""What the tool of the property tests returns next: shared with a tool file that imports it."""

from __future__ import annotations

from typing import Any

NEXT: list[Any] = [None]
