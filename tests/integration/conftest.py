"""The real programs: skipped with a reason where they are not built, and failing where they have to be there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.stack import Stack, running, script


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The directory of ``jaeger`` and ``otelcol``."""
    said = script("where")
    if said.returncode:
        reason = f"Jaeger and the collector are needed: {said.stderr.strip()}"
        if os.environ.get("HOLODECK_REQUIRE_BACKENDS") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return Path(said.stdout.strip())


@pytest.fixture(scope="session")
def stack(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A collector and a Jaeger that nobody kills; each test looks at traces and series of its own."""
    with running(binaries, tmp_path_factory.mktemp("stack")) as programs:
        yield programs


@pytest.fixture
def own_stack(binaries: Path, tmp_path: Path) -> Iterator[Stack]:
    """A collector and a Jaeger for this test alone, which may kill them."""
    with running(binaries, tmp_path) as programs:
        yield programs


@pytest.fixture
def started(binaries: Path, tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Starts a collector and a Jaeger for this test alone, with variables on top: ``started(NAME="value")``."""
    with ExitStack() as ends:
        yield lambda **environment: ends.enter_context(running(binaries, tmp_path, **environment))
