"""Finding callables in files and modules."""

from __future__ import annotations

import os
import sys

import pytest

from holodeck.errors import AgentFileError
from holodeck.tools.loading import Loader
from holodeck.tools.tool import Place

PLACE = Place("a.yaml", "tools[0]")


@pytest.fixture
def loader(tmp_path):
    """A loader for an empty directory."""
    made = Loader(tmp_path)
    yield made
    made.close()


def test_files_of_the_same_name_do_not_meet(bench, tmp_path):
    """Two agents with a ``tools.py`` and a neighbour of the same name each get their own."""
    loaders = []
    for name in ("one", "two"):
        bench.write(f"{name}/tools.py", "import helper_of_tools\ndef f(): return helper_of_tools.WHO")
        bench.write(f"{name}/helper_of_tools.py", f"WHO = '{name}'")
        loaders.append(Loader(tmp_path / name))
    functions = [loader.from_file("tools.py", "f", PLACE) for loader in loaders]
    assert [function() for function in functions] == ["one", "two"]
    for loader in loaders:
        loader.close()
    assert [function() for function in functions] == ["one", "two"]
    assert "helper_of_tools" not in sys.modules


def test_a_neighbour_can_be_imported_at_call_time(bench, loader):
    """While the loader is open, imports inside functions find neighbours; afterwards ``sys.path`` and ``sys.modules`` are as before."""
    before = list(sys.path), set(sys.modules)
    bench.write("tools.py", "def f():\n    import late_helper_of_tools\n    return late_helper_of_tools.X")
    bench.write("late_helper_of_tools.py", "X = 1")
    function = loader.from_file("tools.py", "f", PLACE)
    assert function() == 1
    loader.close()
    del sys.modules["late_helper_of_tools"]
    assert (list(sys.path), set(sys.modules)) == before


def test_two_loaders_share_a_directory(bench, tmp_path, loader):
    """The directory stays importable until the last of its loaders is closed."""
    bench.write("tools.py", "def f():\n    import another_helper_of_tools\n    return 1")
    bench.write("another_helper_of_tools.py", "")
    other = Loader(tmp_path)
    loader.from_file("tools.py", "f", PLACE)
    function = other.from_file("tools.py", "f", PLACE)
    loader.close()
    assert function() == 1
    other.close()
    del sys.modules["another_helper_of_tools"]
    assert str(tmp_path) not in sys.path


def test_neighbours_do_not_shadow_python(bench, loader):
    """A neighbour named like a module of the standard library does not replace it."""
    bench.write("tools.py", "import colorsys\ndef f(): return hasattr(colorsys, 'rgb_to_hsv')")
    bench.write("colorsys.py", "")
    assert loader.from_file("tools.py", "f", PLACE)()


def test_a_file_is_loaded_once_for_all_its_functions(bench, loader):
    """Functions of one file share its state, and each loader reads the file anew."""
    bench.write("tools.py", "count = 0\ndef up():\n    global count\n    count += 1\n    return count\ndef get(): return count")
    loader.from_file("tools.py", "up", PLACE)()
    assert loader.from_file("./tools.py", "get", PLACE)() == 1
    bench.write("tools.py", "def get(): return 'new'")
    other = Loader(bench.directory)
    assert other.from_file("tools.py", "get", PLACE)() == "new"
    other.close()
    assert not (bench.directory / "__pycache__").exists()


def test_callables_by_module_name(bench, loader):
    """``module:name`` finds installed modules and those beside the agent; dots lead into objects."""
    bench.write("own_module_of_agent.py", "class Shop:\n    @staticmethod\n    def open(): return 'open'")
    assert loader.from_module("posixpath:basename", PLACE)("/a/b") == "b"
    assert loader.from_module("own_module_of_agent:Shop.open", PLACE)() == "open"


def test_what_a_file_prints_goes_to_stderr(bench, loader, capsys):
    """Stdout belongs to the answers, also while tool files are loaded."""
    bench.write("tools.py", "print('hello')\ndef f(): pass")
    loader.from_file("tools.py", "f", PLACE)
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\ndef f(:\n", "tools.py, line 2, cannot be imported: SyntaxError"),
        ("\nimport no_such_module_at_all\n", "tools.py, line 2, cannot be imported: ModuleNotFoundError"),
        ("def g():\n    raise ValueError('why')\n\ng()", "tools.py, line 2, cannot be imported: ValueError: why"),
        ("import sys\nsys.exit(1)", "tools.py, line 2, cannot be imported: it ends the program"),
        ("x = '\\0'\0", "cannot be imported"),
        ("def lookup(): pass\nimport os", "tools.py has no 'f'; it has: lookup"),
        ("f = 3", "'f' in tools.py cannot be called: it is of type int"),
    ],
)
def test_files_that_do_not_load(bench, loader, source, words):
    """A file that cannot be used is one error with file, line and reason; nothing stays in ``sys.modules``."""
    bench.write("tools.py", source)
    before = set(sys.modules)
    with pytest.raises(AgentFileError) as caught:
        loader.from_file("tools.py", "f", PLACE)
    assert words in caught.value.message
    assert caught.value.key in ("tools[0].file", "tools[0].function")
    loader.close()
    assert set(sys.modules) == before


def test_files_that_are_not_there(bench, loader):
    """A missing file, a directory and an unreadable file are told apart."""
    bench.write("closed.py", "").chmod(0)
    (bench.directory / "folder.py").mkdir()
    cases = {"none.py": "does not exist", "folder.py": "is not a file"} | ({"closed.py": "permission denied"} if os.geteuid() else {})
    for file, words in cases.items():
        with pytest.raises(AgentFileError, match=words):
            loader.from_file(file, "f", PLACE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_at_all:f", "ModuleNotFoundError"),
        ("posixpath:nope", "module posixpath has no 'nope'"),
        (":f", "names nothing: write module:name"),
        ("json:", "names nothing: write module:name"),
    ],
)
def test_modules_that_do_not_load(loader, name, words):
    """A ``module:name`` that leads nowhere is one error at ``function``."""
    with pytest.raises(AgentFileError, match=words) as caught:
        loader.from_module(name, PLACE)
    assert caught.value.key == "tools[0].function"


@pytest.mark.parametrize(
    ("source", "name", "words"),
    [
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "f", "line 3, cannot be imported: E: <E>"),
        ("import asyncio\nraise asyncio.CancelledError", "f", "line 2, cannot be imported: CancelledError"),
        ("raise GeneratorExit", "f", "line 1, cannot be imported: GeneratorExit"),
        ("from . import helper", "f", "it is no part of a package: write 'import name'"),
        ("raise Exception('a\\x1b[2J\\n' * 1000)", "f", "cannot be imported: Exception: a a a"),
        ("def __getattr__(name): raise ValueError(name)", "f", "'f' cannot be had from tools.py: ValueError: f"),
        ("class X:\n    def f(self, a: int): ...", "X.f", "'X.f' in tools.py is a method and has no object here"),
    ],
)
def test_faults_of_a_file_are_one_line(bench, loader, source, name, words):
    """Whatever a tool file does while it is loaded, the error is one short line without escape sequences."""
    bench.write("tools.py", source)
    with pytest.raises(AgentFileError) as caught:
        loader.from_file("tools.py", name, PLACE)
    assert words in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 700


def test_links_in_a_circle(tmp_path, loader):
    """A link that leads to itself is a file that is not there."""
    (tmp_path / "loop.py").symlink_to("loop.py")
    with pytest.raises(AgentFileError, match=r"loop\.py does not exist"):
        loader.from_file("loop.py", "f", PLACE)
