"""The version of HoloDeck, and nothing else: whatever needs it can import it without importing more."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
