"""Reads models, talks to a model provider through Semantic Kernel.

:func:`create_backend` is the way in. Semantic Kernel is imported by :func:`holodeck.backends.kernel.load` and not before: it takes seconds.
"""

from __future__ import annotations

from holodeck.backends.base import Backend, create_backend

__all__ = ["Backend", "create_backend"]
