"""A durable queue of finished spans between the SDK and the network; it exists only while spans go out over OTLP.

``docs/spool.md`` describes what is on disk and what is promised. The parts, from the bottom: ``records`` (bytes of a segment), ``files``
(segments), ``directories`` (one a process, locked), ``journal`` (a queue), ``contents`` and ``recovery`` (what others have left),
``courier`` and ``sender`` (the way out), ``queue`` (all of it for one process), ``processor`` (the SDK's side) and ``status`` (the
command's side).
"""

from __future__ import annotations

from holodeck.telemetry.spool.directories import SpoolSettings, spool_settings
from holodeck.telemetry.spool.status import FlushReport, SetAside, SpoolEntry, flush_spool, set_aside, spool_status

__all__ = ["FlushReport", "SetAside", "SpoolEntry", "SpoolSettings", "flush_spool", "set_aside", "spool_settings", "spool_status"]
