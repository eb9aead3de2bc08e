"""What a real provider answered, written as a script, and played again.

:func:`record` puts a recorder between an agent and its models and tools; :func:`replay` prepares an agent whose model is a recording.
"""

from __future__ import annotations

from holodeck.recording.recorder import Recorder, record
from holodeck.recording.replay import replay

__all__ = ["Recorder", "record", "replay"]
