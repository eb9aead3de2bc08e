"""From files to cases that are ready to be run; everything that can be wrong in them is found here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from holodeck.backends.script import load_script
from holodeck.errors import ConfigError
from holodeck.lib.document import check_file
from holodeck.lib.problems import one_line
from holodeck.lib.strict_yaml import read_yaml
from holodeck.testing.calls import Prices
from holodeck.testing.cases.case_file import Case, CaseFile, CaseTurn, Defaults, HoloDeckCases
from holodeck.testing.cases.plan import PlannedCase

if TYPE_CHECKING:
    from holodeck.lib.document import Document
    from holodeck.lib.problems import KeyPath

__all__ = ["find_case_files", "load_cases"]

_LARGEST: Final = 20_000_000
_ELSEWHERE: Final = ("evaluations", "retrieval_context")
"""Keys of a test case in an agent file that are for other programs."""


def find_case_files(agent: Path, named: Sequence[Path] = ()) -> list[Path]:
    """The files to read, each once: those that are named (a directory stands for its YAML files), else what lies beside the agent.

    Beside the agent are ``cases.yaml``, ``*.cases.yaml``, the YAML files in ``cases/``, and the agent file itself if it has
    ``test_cases``.

    Raises:
        ConfigError: A file that is named does not exist.
    """
    if not named:
        beside = [path for path in _in(agent.parent) if path.stem == "cases" or path.stem.endswith(".cases")]
        return [agent, *sorted([*beside, *_yaml_files(agent.parent / "cases")])]
    files: list[Path] = []
    for path in named:
        if path.is_dir():
            files += _yaml_files(path)
            continue
        try:
            check_file(path)
        except ValueError as error:
            raise ConfigError(f"{one_line(str(path), 300)}: {error}") from error
        files.append(path)
    return list({path.resolve(): path for path in reversed(files)}.values())[::-1]


def _yaml_files(directory: Path) -> list[Path]:
    """Files of cases; one that begins with ``recorded:`` or ``replies:`` is a script that lies beside them."""
    return [path for path in _in(directory) if not _is_script(path)]


def _in(directory: Path) -> list[Path]:
    return [path for path in sorted(directory.glob("*.y*ml")) if path.suffix in (".yaml", ".yml") and path.is_file()]


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            lines = (line for line in file if line.strip(b"\xef\xbb\xbf \t\r\n") and not line.lstrip().startswith((b"#", b"---")))
            return next(lines, b"").startswith((b"recorded:", b"replies:"))
    except OSError:
        return False  # reading it says why it cannot be read


def load_cases(files: Iterable[Path], agent: Path) -> tuple[list[PlannedCase], list[str]]:
    """The cases of ``files``, in order.

    Args:
        files: Case files, or the agent file.
        agent: The agent file: its ``test_cases`` are read.

    Returns:
        The cases, and one line for each thing in them that is not acted upon.

    Raises:
        ConfigError: A file is wrong: names file, line and key.
    """
    cases: list[PlannedCase] = []
    warnings: list[str] = []
    for file in files:
        if file.resolve() == agent.resolve():
            found, notes = _agent_cases(file)
            warnings += notes
        else:
            found = _file_cases(file)
        cases += _placed(found, _reached(file, agent))
    return cases, warnings


def _placed(cases: list[PlannedCase], source: str) -> Iterator[PlannedCase]:
    """The cases of one file, each with a name of its own: the second of a name is ``name (2)``, or the next number that is free."""
    given, taken = {case.name for case in cases}, set[str]()
    for case in cases:
        name = case.name
        if name in taken:
            numbered = (f"{case.name} ({number})" for number in itertools.count(2))
            name = next(each for each in numbered if each not in taken | given)
        taken.add(name)
        yield replace(case, name=name, source=source)


def _reached(file: Path, agent: Path) -> str:
    return Path(os.path.relpath(file.absolute(), agent.absolute().parent)).as_posix()


def _file_cases(file: Path) -> list[PlannedCase]:
    document = read_yaml(file, limit=_LARGEST)
    try:
        content = CaseFile.model_validate(document.data)
    except ValidationError as error:
        raise document.error(error, CaseFile) from error
    prices, found = Prices(content.prices), _Finder(document, file.absolute().parent)
    default = found.model(("defaults",), content.defaults)
    return [_planned(document, number, case, content.defaults, default, found, prices) for number, case in enumerate(content.cases)]


def _planned(
    document: Document, number: int, case: Case, defaults: Defaults, default: str | None, found: _Finder, prices: Prices
) -> PlannedCase:
    path: KeyPath = ("cases", number)
    return PlannedCase(
        name=case.name or one_line(case.input[0].user, 60),
        file=document.file,
        line=document.line(path),
        turns=tuple(case.input),
        expect=case.expect,
        model=found.model(path, case) or default,
        replay_tools=bool(defaults.replay_tools if case.replay_tools is None else case.replay_tools),
        pass_rate=case.pass_rate or defaults.pass_rate,
        prices=prices,
    )


class _Finder:
    """Finds scripts and recordings from the directory of a case file."""

    def __init__(self, document: Document, directory: Path) -> None:
        self._document, self._directory = document, directory

    def model(self, path: KeyPath, section: Case | Defaults) -> str | None:
        for key, value in (("script", section.script), ("recording", section.recording)):
            if value is not None:
                return self._checked((*path, key), self._directory / value, recording=key == "recording")
        return None

    def _checked(self, path: KeyPath, file: Path, *, recording: bool) -> str:
        try:
            check_file(file)
        except ValueError as error:
            raise self._document.at(path, f"{one_line(str(file), 300)}: {error}") from error
        script = load_script(file)
        if recording and script.recorded is None:
            raise self._document.at(path, "this is a script and no recording ('recorded' is missing in it): use 'script'")
        return f"scripted/{file}"


def _agent_cases(file: Path) -> tuple[list[PlannedCase], list[str]]:
    document = read_yaml(file)
    given = document.data.get("test_cases")
    if not given:
        return [], []
    section = {"test_cases": [_without_foreign(case) for case in given] if isinstance(given, list) else given}
    try:
        content = HoloDeckCases.model_validate(section)
    except ValidationError as error:
        raise document.error(error, HoloDeckCases) from error
    cases = [
        PlannedCase(
            name=(case.name or "").strip() or one_line(case.input, 60),
            file=document.file,
            line=document.line(("test_cases", number)),
            turns=(CaseTurn(user=case.input),),
            expect=case.expect,
        )
        for number, case in enumerate(content.test_cases)
    ]
    left_out = sorted({key for case in given for key in _ELSEWHERE if key in case})
    return cases, [f"{document.file}:{document.line(('test_cases',))}: '{key}' of test cases is not acted upon" for key in left_out]


def _without_foreign(case: Any) -> Any:
    return {k: v for k, v in case.items() if k not in _ELSEWHERE} if isinstance(case, dict) else case
