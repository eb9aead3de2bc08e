"""Test cases that are YAML files: read, run against an agent, judged, compared with what was accepted before.

``holodeck test`` is built on this; nothing here needs pytest.
"""

from __future__ import annotations

from holodeck.testing.cases.baseline import Baseline, load_baseline, save_baseline
from holodeck.testing.cases.junit import check_junit, write_junit
from holodeck.testing.cases.loading import find_case_files, load_cases
from holodeck.testing.cases.plan import PlannedCase
from holodeck.testing.cases.results import Attempt, CaseResult
from holodeck.testing.cases.runner import AgentSource, run_cases
from holodeck.testing.cases.schema import case_schema, script_schema

__all__ = [
    "AgentSource",
    "Attempt",
    "Baseline",
    "CaseResult",
    "PlannedCase",
    "case_schema",
    "check_junit",
    "find_case_files",
    "load_baseline",
    "load_cases",
    "run_cases",
    "save_baseline",
    "script_schema",
    "write_junit",
]
