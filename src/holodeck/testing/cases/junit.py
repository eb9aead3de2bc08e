"""JUnit XML, as CI systems read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from holodeck.errors import ConfigError
from holodeck.testing.cases.results import CaseResult

__all__ = ["write_junit"]

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, results: Sequence[CaseResult]) -> None:
    """Write a suite for each case file.

    Raises:
        ConfigError: ``path`` cannot be written.
    """
    suites: dict[str, list[CaseResult]] = {}
    for result in results:
        suites.setdefault(result.case.file, []).append(result)
    root = ET.Element("testsuites", name="holodeck")
    for file, members in suites.items():
        _suite(root, file, members)
    ET.indent(root)
    try:
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ConfigError(f"--junit-xml {path}: cannot be written ({error.strerror})") from error


def _suite(root: ET.Element, file: str, results: Sequence[CaseResult]) -> None:
    errors = sum(bool(result.problem) for result in results)
    counts = {"tests": len(results), "failures": sum(not r.passed for r in results) - errors, "errors": errors}
    time = sum(attempt.duration for result in results for attempt in result.attempts)
    suite = ET.SubElement(root, "testsuite", name=_text(file), time=f"{time:.3f}")
    suite.attrib.update({key: str(value) for key, value in counts.items()})
    for result in results:
        _case(suite, result)


def _case(suite: ET.Element, result: CaseResult) -> None:
    case, time = result.case, sum(attempt.duration for attempt in result.attempts)
    node = ET.SubElement(
        suite, "testcase", name=_text(case.name), classname=_text(Path(case.file).stem), file=_text(case.file), line=str(case.line),
        time=f"{time:.3f}",
    )  # fmt: skip
    properties = ET.SubElement(node, "properties")
    facts = {"pass_rate": f"{result.rate:.3f}", "tokens": result.tokens, "cost": result.cost}
    traces = [("trace_id", trace_id) for attempt in result.attempts for trace_id in attempt.trace_ids]
    for name, value in [*facts.items(), *traces]:
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=str(value))
    if result.problem:
        ET.SubElement(node, "error", message=_text(result.problem)).text = _text(result.shown)
    elif not result.passed:
        text = "\n".join(failure.text for failure in result.failures)
        message = text.splitlines()[0] if text else "failed"
        ET.SubElement(node, "failure", message=_text(message)).text = _text(f"{text}\n\n{result.shown}")


def _text(text: str) -> str:
    """``text`` without what XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
