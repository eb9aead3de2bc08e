"""JUnit XML, as CI systems read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from holodeck.errors import ConfigError, SettingError
from holodeck.lib.whole_file import write_whole
from holodeck.testing.cases.results import CaseResult

__all__ = ["check_junit", "write_junit"]

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_junit(path: Path) -> None:
    """Make sure that no file of another kind is written over, such as a case file.

    Raises:
        SettingError: ``path`` holds something else than XML.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(3) if path.is_file() else b""
    except OSError:
        return  # it is not there yet, or writing it says why it cannot be
    if begin and not begin.startswith((b"<", b"\xef\xbb\xbf")):
        raise SettingError(f"--junit-xml {path}: this file holds something else than a report: name another one")


def write_junit(path: Path, results: Sequence[CaseResult]) -> None:
    """Write a suite for each case file. A case without an attempt was not run: it is skipped.

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
        write_whole(path, f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n')
    except OSError as error:
        raise ConfigError(f"--junit-xml {path}: cannot be written ({error.strerror})") from error


def _suite(root: ET.Element, file: str, results: Sequence[CaseResult]) -> None:
    errors = sum(bool(result.problem) for result in results)
    skipped = sum(not result.attempts for result in results)
    failures = sum(not result.passed for result in results) - errors - skipped
    counts = {"tests": len(results), "failures": failures, "errors": errors, "skipped": skipped}
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
    if not result.attempts:
        ET.SubElement(node, "skipped", message="the run ended before this case")
        return
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
