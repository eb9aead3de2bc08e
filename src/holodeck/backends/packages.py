"""Packages that only re-export what their modules define, imported name by name.

Semantic Kernel's and openai's ``__init__`` files are lists of ``from .module import Name``. Whoever needs one class runs all of them, 1.5 s
of CPU for a chat that uses a tenth. Within :func:`on_demand` such an ``__init__`` is read and not run: each name is imported when it is
first asked for, and stays. Nothing is left out: ``from package import Name`` works for every name, at any later time, and a package whose
``__init__`` does anything else is imported as ever.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from types import CodeType, ModuleType
from typing import Any, NamedTuple

__all__ = ["on_demand"]


@contextmanager
def on_demand(*roots: str) -> Iterator[None]:
    """Import the packages ``roots``, and those inside them, on demand; what has been imported before stays as it is."""
    finder = _Finder(roots)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Contents(NamedTuple):
    """What an ``__init__`` consists of: name → (module, name there), and the code of everything that is no import."""

    origins: Mapping[str, tuple[str, str]]
    rest: CodeType


class _Package(ModuleType):
    """A package that was read; what it lacks is imported when it is asked for."""

    _origins: Mapping[str, tuple[str, str]]

    def __getattr__(self, name: str) -> Any:
        origins = self.__dict__.get("_origins", {})
        if name in origins:
            value = self.__dict__[name] = _import(*origins[name])
            return value
        if name == "__all__":  # for ``import *``
            return [name for name in origins if not name.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._submodule(name)

    def _submodule(self, name: str) -> ModuleType:
        """A module that would be here as a trace of the imports that ``__init__`` makes."""
        full = f"{self.__name__}.{name}"
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._origins})


def _import(module: str, name: str) -> Any:
    found = sys.modules.get(module) or importlib.import_module(module)
    if isinstance(found, _Package) and name not in found.__dict__ and found.__dict__.get("_origins", {}).get(name) == (module, name):
        return importlib.import_module(f"{module}.{name}")  # ``from . import name`` means the module
    return getattr(found, name)


class _Reader(Loader):
    """Makes a package of what its ``__init__`` says; afterwards the package has its usual loader again."""

    def __init__(self, usual: InspectLoader, contents: _Contents) -> None:
        self._usual, self._contents = usual, contents

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["_origins"] = self._contents.origins
        exec(self._contents.rest, module.__dict__)  # noqa: S102 - the package's own code, as the usual loader would run it
        module.__loader__ = self._usual
        if module.__spec__ is not None:
            module.__spec__.loader = self._usual


class _Finder(MetaPathFinder):
    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del target
        if not any(fullname == root or fullname.startswith(f"{root}.") for root in self._roots):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is None or spec.submodule_search_locations is None or not isinstance(spec.loader, InspectLoader):
            return spec
        if contents := _read(spec.loader, fullname):
            spec.loader = _Reader(spec.loader, contents)
        return spec


def _read(loader: InspectLoader, package: str) -> _Contents | None:
    """What the ``__init__`` of ``package`` consists of; None if it does more than import, assign constants and explain itself."""
    source = loader.get_source(package)
    tree = ast.parse(source or "")
    origins: dict[str, tuple[str, str]] = {}
    rest: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module != "__future__":
            origins |= _origins(statement, package)
        elif isinstance(statement, ast.Assign | ast.Expr | ast.ImportFrom):
            rest.append(statement)
        else:
            return None
    uses = {node.id for statement in rest for node in ast.walk(statement) if isinstance(node, ast.Name)}
    if not origins or "*" in origins or uses & origins.keys() or any(_calls(statement) for statement in rest):
        return None
    tree.body = rest
    return _Contents(origins, compile(tree, f"<{package}>", "exec", dont_inherit=True))


def _origins(statement: ast.ImportFrom, package: str) -> dict[str, tuple[str, str]]:
    relative = "." * statement.level + (statement.module or "")
    module = resolve_name(relative, package) if statement.level else relative
    return {alias.asname or alias.name: (module, alias.name) for alias in statement.names}


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(statement))
