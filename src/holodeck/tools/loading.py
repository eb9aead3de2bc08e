"""Finding the callable that an agent file names, in a file beside the agent or in an importable module.

A tool file is loaded once for each :class:`Loader`, under a module name of its own, so that files of the same name do not meet. Its
directory is put at the *end* of ``sys.path`` for as long as the loader is open: a tool file can import its neighbours, but a neighbour
called ``json.py`` never shadows a module of Python or of an installed package. Agents in different directories may have neighbours of the
same name: those that the tool files of one import at load are taken out of ``sys.modules`` before the files of another are loaded.
(An import *inside* a function, at call time, finds the neighbour of whichever agent was loaded first.)

What a tool file prints while it is loaded goes to stderr: stdout belongs to the answers. What a tool prints when it is called is left
alone, as redirecting would be process-wide; a program that writes answers to stdout keeps its file descriptor for itself.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import itertools
import os
import sys
import threading
import traceback
from asyncio import CancelledError
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import SIGNALLED
from holodeck.lib.problems import one_line
from holodeck.tools.results import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from holodeck.tools.tool import Place

__all__ = ["Loader"]

_REASON_CHARS: Final = 500
_numbers: Final = itertools.count(1)
_lock: Final = threading.RLock()
_entries: Final[Counter[str]] = Counter()
"""How many open loaders use an entry that they put into ``sys.path``."""
_neighbours: Final[dict[str, set[str]]] = {}
"""Names in ``sys.modules`` of what was imported through such an entry."""


class Loader:
    """Loads callables for one agent.

    Args:
        directory: The agent's directory; ``file`` is relative to it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[Path, ModuleType] = {}
        self._paths: set[str] = set()
        self._is_closed = False

    def from_file(self, file: Path, function: str, place: Place) -> Callable[..., Any]:
        """The callable ``function`` of a Python file.

        Raises:
            AgentFileError: The file cannot be read or does not import, or has no such callable.
        """
        path = Path(os.path.realpath(self._directory / file))  # resolve() raises where links lead in a circle
        if path not in self._files:
            self._files[path] = self._load(path, str(file), place.at("file"))
        return _callable_in(self._files[path], function, str(file), place.at("function"))

    def from_module(self, name: str, place: Place) -> Callable[..., Any]:
        """The callable that ``module:name`` names; the module may be installed or lie in the agent's directory.

        Raises:
            AgentFileError: There is no such module, it does not import, or it has no such callable.
        """
        module_name, _, attribute = name.partition(":")
        place = place.at("function")
        if not all(part.isidentifier() for part in [*module_name.split("."), *attribute.split(".")]):
            raise place.error(f"{one_line(name)!r} names nothing: write module:name, or 'file' and a name")
        with self._importing(self._directory), _explained(f"module {module_name}", None, place):
            module = importlib.import_module(module_name)
        return _callable_in(module, attribute, f"module {module_name}", place)

    def open(self) -> None:
        """Puts back what :meth:`close` took away."""
        with _lock:
            if not self._is_closed:
                return
            self._is_closed, entries, self._paths = False, self._paths, set()
            sys.modules.update({module.__name__: module for module in self._files.values()})
            for entry in entries:
                self._add_entry(entry)

    def close(self) -> None:
        """Takes back what was added to ``sys.path`` and ``sys.modules``; what was loaded goes on working. Idempotent."""
        with _lock:
            if self._is_closed:
                return
            self._is_closed = True
            for module in self._files.values():
                sys.modules.pop(module.__name__, None)
            for entry in self._paths:
                _entries[entry] -= 1
                if _entries[entry] <= 0:
                    _hide(entry)
                    _neighbours.pop(entry, None)
                    del _entries[entry]

    def _load(self, path: Path, shown: str, place: Place) -> ModuleType:
        _check_readable(path, shown, self._directory, place)
        name = f"_holodeck_tool_{next(_numbers)}_{path.stem}"
        loader = _Source(name, str(path))
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None  # a loader was given
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with self._importing(path.parent), _explained(shown, path, place):
                loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    @contextlib.contextmanager
    def _importing(self, directory: Path) -> Iterator[None]:
        """Neighbours in ``directory`` can be imported, those of other agents cannot; what is printed goes to stderr."""
        entry = str(directory)
        with _lock, contextlib.redirect_stdout(sys.stderr):
            self._add_entry(entry)
            others = [other for other in _entries if other != entry]
            for other in others:
                _hide(other)
            before = set(sys.modules)
            try:
                yield
            finally:
                sys.path.extend(others)
                if entry in _entries:
                    _neighbours.setdefault(entry, set()).update(n for n in set(sys.modules) - before if _lies_in(n, entry))

    def _add_entry(self, entry: str) -> None:
        importlib.invalidate_caches()
        if entry in self._paths or (entry in sys.path and entry not in _entries):
            return  # ours already, or the program's own
        if entry not in sys.path:
            sys.path.append(entry)
        _entries[entry] += 1
        self._paths.add(entry)


class _Source(importlib.machinery.SourceFileLoader):
    """Compiles a file each time: a byte code cache tells versions apart by whole seconds only, and would be litter beside the agent."""

    def path_stats(self, path: Any) -> Any:
        raise OSError(path)


def _hide(entry: str) -> None:
    """Takes an entry out of ``sys.path``, and its modules out of ``sys.modules``; those who have imported them keep them."""
    with contextlib.suppress(ValueError):
        sys.path.remove(entry)
    for name in _neighbours.get(entry, ()):
        if _lies_in(name, entry):
            del sys.modules[name]


def _lies_in(name: str, entry: str) -> bool:
    if name.startswith("_holodeck_tool_"):
        return False
    origin = getattr(sys.modules.get(name), "__file__", None)
    return isinstance(origin, str) and origin.startswith(entry + os.sep)


def _check_readable(path: Path, shown: str, directory: Path, place: Place) -> None:
    if not path.exists():
        raise place.error(f"{shown} does not exist (looked in {directory})")
    if not path.is_file():
        raise place.error(f"{shown} is not a file")
    if not os.access(path, os.R_OK):
        raise place.error(f"{shown} cannot be read: permission denied")


@contextlib.contextmanager
def _explained(shown: str, path: Path | None, place: Place) -> Iterator[None]:
    try:
        yield
    except SIGNALLED:
        raise
    except (Exception, SystemExit, GeneratorExit, CancelledError) as exc:  # nobody but the file itself raises the latter here
        line = _line_in(exc, path)
        where = f"{shown}, line {line}," if line else shown
        raise place.error(f"{where} cannot be imported: {_reason(exc)}") from exc


def _reason(exc: BaseException) -> str:
    if isinstance(exc, SystemExit):
        return "it ends the program (sys.exit): put that under if __name__ == '__main__'"
    if isinstance(exc, ImportError) and "relative import" in str(exc):
        return "it is no part of a package: write 'import name' instead of 'from . import name', neighbours are found by their names"
    if isinstance(exc, SyntaxError):
        return f"{type(exc).__name__}: {one_line(str(exc.msg), _REASON_CHARS)}"
    return one_line(failure(exc).message, _REASON_CHARS)


def _line_in(exc: BaseException, path: Path | None) -> int | None:
    if path is None:
        return None
    if isinstance(exc, SyntaxError) and exc.filename == str(path):
        return exc.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(exc.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _callable_in(module: ModuleType, name: str, shown: str, place: Place) -> Callable[..., Any]:
    found: Any = module
    owner: Any = None
    for part in name.split("."):
        owner = found
        try:
            found = getattr(owner, part)
        except AttributeError:
            raise place.error(f"{shown} has no {name!r}; it has: {_offer(module)}") from None
        except Exception as exc:  # a property's, or the module's own __getattr__
            raise place.error(f"{name!r} cannot be had from {shown}: {one_line(failure(exc).message, _REASON_CHARS)}") from exc
    if not callable(found):
        raise place.error(f"{name!r} in {shown} cannot be called: it is of type {type(found).__name__}")
    if inspect.isclass(owner) and _wants_self(found):
        raise place.error(
            f"{name!r} in {shown} is a method and has no object here: name that of an instance, e.g. tools = {owner.__name__}()"
        )
    return found  # type: ignore[no-any-return] # callable() is all that is known of it


def _wants_self(function: Any) -> bool:
    return inspect.isfunction(function) and function.__code__.co_varnames[: function.__code__.co_argcount][:1] == ("self",)


def _offer(module: ModuleType) -> str:
    own = [
        n for n, v in vars(module).items() if callable(v) and not n.startswith("_") and getattr(v, "__module__", None) == module.__name__
    ]
    return ", ".join(own[:10]) or "no functions"
