"""What the tests of tools share: toolboxes from tool entries as a file has them, and calls without a turn."""

from __future__ import annotations

import asyncio
import subprocess
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from holodeck.models.agent import ToolConfig
from holodeck.tools import CallContext, Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Bench:
    """Builds toolboxes in a directory, and closes them when the test ends."""

    traceparent = TRACEPARENT

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.asked: list[tuple[str, Any]] = []
        self._built: list[Toolbox] = []

    def write(self, name: str, text: str) -> Path:
        """A file beside the agent."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def box(self, *tools: dict[str, Any], **options: Any) -> Toolbox:
        """A toolbox of ``tools`` as an agent file writes them."""
        configs = TypeAdapter(list[ToolConfig]).validate_python(list(tools))
        box = Toolbox(configs, options.pop("directory", self.directory), **options)
        self._built.append(box)
        return box

    def function(self, source: str, name: str = "f", **entry: Any) -> Toolbox:
        """A toolbox with the one function tool ``name``, from a tool file with ``source``."""
        self.write("tools.py", source)
        return self.box({"type": "function", "name": name, "file": "tools.py", "function": name} | entry)

    @property
    def context(self) -> CallContext:
        """A context whose model answers with the prompt in capitals."""

        async def ask(prompt: str, model: Any) -> str:
            self.asked.append((prompt, model))
            return prompt.upper()

        return CallContext(ask, TRACEPARENT)

    def call(self, box: Toolbox, arguments: Any = None, name: str = "f") -> str:
        """One call in an event loop of its own."""
        return asyncio.run(box.call(name, arguments, self.context))

    def close(self) -> None:
        """Closes what was built."""
        for box in self._built:
            asyncio.run(box.close())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench in an empty directory."""
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], None]:
    """Waits, up to ten seconds, until a condition holds."""

    def wait(condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "it did not come to be"
            time.sleep(0.01)

    return wait


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    """Tells whether a process runs; one that has ended and is not collected yet does not."""

    def running(pid: int) -> bool:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
        return bool(state.strip()) and not state.startswith("Z")

    return running
