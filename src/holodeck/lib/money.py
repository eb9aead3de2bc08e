"""Amounts of money for people."""

from __future__ import annotations

import math

__all__ = ["format_usd"]


def format_usd(dollars: float) -> str:
    """An amount as people read it: ``$12.30``, ``$0.042``, ``$0.00018``; two significant digits below ten cents."""
    rounded = float(f"{dollars:.2g}") if dollars < 0.1 else round(dollars, 3)
    if rounded >= 1:
        return f"${dollars:,.2f}"
    if rounded < 1e-12:
        return "$0"
    return f"${rounded:.{max(1 - math.floor(math.log10(rounded)), 3)}f}"
