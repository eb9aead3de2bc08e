"""The toolbox as a whole."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import holodeck.tools
from holodeck.errors import AgentFileError, ToolRefused
from holodeck.tools import Toolbox


def test_what_is_importable():
    """The package's door is as wide as it says."""
    assert holodeck.tools.__all__ == ["CallContext", "Toolbox"]


def test_importing_is_light():
    """Importing the package loads none of the heavy libraries, and building a toolbox of functions does not either."""
    code = (
        "import sys, holodeck.tools; from pathlib import Path; from holodeck.models.agent import FunctionTool\n"
        "holodeck.tools.Toolbox([FunctionTool(type='function', name='f', function='posixpath:basename')], Path('.'))\n"
        "print([m for m in ('mcp', 'httpx', 'jsonschema', 'semantic_kernel', 'openai', 'opentelemetry') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_specs_keep_the_order_of_the_file(bench):
    """Tools are offered in the order in which they are configured."""
    bench.write("tools.py", "def f(): return 1")
    function = {"type": "function", "file": "tools.py", "function": "f"}
    box = bench.box(function | {"name": "b"}, {"type": "prompt", "name": "c", "template": "x"}, function | {"name": "a"})
    assert [spec.name for spec in box.specs] == ["b", "c", "a"]
    assert box.spec("zzz") is None


def test_an_unknown_tool_is_refused(bench):
    """The model is told which tools there are; a hostile name does no harm."""
    box = bench.function("def f(): pass")
    with pytest.raises(ToolRefused) as caught:
        bench.call(box, {}, name="g\ud83e" + "x" * 1000)
    assert caught.value.message.encode()
    assert caught.value.message.endswith("Tools: f.")
    assert len(caught.value.message) < 200


def test_names_that_collide_are_an_error(bench):
    """Two tools cannot be offered under one name."""
    entry = {"type": "prompt", "name": "x", "template": "x"}
    with pytest.raises(AgentFileError, match="two tools would be offered as 'x'") as caught:
        bench.box(entry, entry)
    assert caught.value.key == "tools[1].name"


def test_errors_name_file_and_key(bench):
    """An error says in which file and at which entry."""
    good = {"type": "prompt", "name": "x", "template": "x"}
    with pytest.raises(AgentFileError) as caught:
        bench.box(good, {"type": "function", "name": "f", "file": "none.py", "function": "f"}, agent_file="dir/support.yaml")
    assert (caught.value.file, caught.value.key) == ("dir/support.yaml", "tools[1].file")
    assert caught.value.message.startswith("dir/support.yaml: tools[1].file: none.py does not exist")


def test_a_toolbox_that_cannot_be_built_takes_everything_back(bench):
    """A later tool's fault undoes what loading an earlier one did to ``sys.path``."""
    bench.write("tools.py", "def f(): pass")
    before = list(sys.path), set(sys.modules)
    with pytest.raises(AgentFileError):
        bench.box({"type": "function", "name": "f", "file": "tools.py", "function": "f"}, {"type": "prompt", "name": "x", "file": "none"})
    assert (list(sys.path), set(sys.modules)) == before


def test_an_empty_toolbox(bench):
    """An agent without tools needs nothing."""

    async def main():
        async with Toolbox([], bench.directory) as box:
            return box.specs

    assert asyncio.run(main()) == []


def test_many_toolboxes_side_by_side(bench):
    """Toolboxes in one loop have state of their own, and calls in each run side by side."""
    source = (
        "import asyncio\ncount = 0\nasync def f(n: int):\n    global count\n    await asyncio.sleep(0)\n    count += n\n    return count"
    )
    boxes = [bench.function(source) for _ in range(3)]

    async def main():
        for _ in range(10):
            await asyncio.gather(*(box.call("f", {"n": n}, bench.context) for n, box in enumerate(boxes)))
        return [await box.call("f", {"n": 0}, bench.context) for box in boxes]

    assert asyncio.run(main()) == ["0", "10", "20"]
