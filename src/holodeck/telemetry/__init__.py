"""Reads models, writes OpenTelemetry: spans, metrics and log records of agent turns.

:func:`create_telemetry` is the way in. The providers are objects of ours that are passed along; OpenTelemetry's globals are set only when
:meth:`Telemetry.install_globals` is called, which only the ``holodeck`` command does.
"""

from __future__ import annotations

from holodeck.telemetry.delivery import DeliveryReport
from holodeck.telemetry.evaluation import Evaluation
from holodeck.telemetry.gate import Gate
from holodeck.telemetry.pipeline import Telemetry, create_telemetry
from holodeck.telemetry.recorder import RequestRecorder, ToolRecorder, TurnRecorder

__all__ = ["DeliveryReport", "Evaluation", "Gate", "RequestRecorder", "Telemetry", "ToolRecorder", "TurnRecorder", "create_telemetry"]
