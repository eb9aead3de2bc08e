from __future__ import annotations

import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def _run(code: str, *, path: Path | None = None) -> str:
    """What ``code`` prints in an interpreter of its own, which has imported nothing."""
    prelude = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    done = subprocess.run([sys.executable, "-c", prelude + dedent(code)], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _package(directory: Path, init: str, **modules: str) -> Path:
    package = directory / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text(dedent(init), encoding="utf-8")
    for name, source in modules.items():
        (package / f"{name}.py").write_text(dedent(source), encoding="utf-8")
    return directory


_READ = "from holodeck.backends.packages import on_demand\nwith on_demand('pkg'):\n    import pkg\n"


def test_a_module_is_imported_when_one_of_its_names_is_asked_for(tmp_path: Path) -> None:
    """What nobody asks for is not imported; what somebody asks for is what its module defines."""
    path = _package(tmp_path, "from .one import A as B\nfrom .two import C\n", one="A = object()", two="C = 2")
    assert _run(_READ + "print('pkg.one' in sys.modules, end=' ')\nfrom pkg import B\nimport pkg.one\n"
                "print(B is pkg.one.A, pkg.B is B, 'pkg.two' in sys.modules)", path=path) == "False True True False"  # fmt: skip


def test_names_are_there_after_the_block_and_for_star_imports(tmp_path: Path) -> None:
    """``import *`` and ``dir`` see every name, long after the block has ended."""
    path = _package(tmp_path, "from .one import A\nfrom .two import C, _hidden\n", one="A = 1", two="C = 2\n_hidden = 3")
    assert _run(_READ + "print('A' in dir(pkg))\nfrom pkg import *\nprint(A, C, '_hidden' in globals())", path=path) == "True\n1 2 False"


def test_a_submodule_that_the_init_would_have_imported_is_an_attribute(tmp_path: Path) -> None:
    """``pkg.one`` works without an import of it; what does not exist is an AttributeError, as ever."""
    path = _package(tmp_path, "from . import two\nfrom .one import A\n", one="A = 1", two="X = 7")
    assert _run(_READ + "print(pkg.one.A, pkg.two.X, hasattr(pkg, 'three'))", path=path) == "1 7 False"


def test_constants_and_the_docstring_are_there_at_once(tmp_path: Path) -> None:
    """What the ``__init__`` assigns stays its own."""
    path = _package(tmp_path, '"""Said."""\nfrom .one import A\n__version__ = "1"\nFULL = f"{__version__}-rc"\n', one="A = 1")
    assert _run(_READ + "print(pkg.__doc__, pkg.FULL, 'pkg.one' in sys.modules)", path=path) == "Said. 1-rc False"


@pytest.mark.parametrize(
    "init",
    [
        "from .one import A\nif A: X = 1\n",
        "from .one import A\nX = A\n",
        "from .one import *\n",
        "from .one import A\nX = print('run')\n",
        "import os\nfrom .one import A\n",
    ],
    ids=["a condition", "a name that was imported", "a star", "a call", "a plain import"],
)
def test_an_init_that_does_more_is_run(tmp_path: Path, init: str) -> None:
    """Only a list of imports is read; anything else keeps its order of events."""
    path = _package(tmp_path, init, one="A = 1")
    assert _run(_READ + "print('pkg.one' in sys.modules)", path=path).endswith("True")


def test_an_error_in_a_module_is_not_taken_for_a_missing_name(tmp_path: Path) -> None:
    """The module's own exception comes through when its name is asked for."""
    path = _package(tmp_path, "from .one import A\n", one="import not_there_at_all\nA = 1")
    code = "\ntry:\n    pkg.A\nexcept ModuleNotFoundError as error:\n    print(error.name)\n"
    assert _run(_READ + code, path=path) == "not_there_at_all"


def test_every_part_of_semantic_kernel_works_after_it_was_loaded_in_part() -> None:
    """Handlebars and Jinja templates, the kernel, other connectors and all of openai's types are there for who asks."""
    printed = _run(
        """
        import asyncio, warnings
        warnings.simplefilter("ignore")
        from holodeck.backends import kernel
        kernel.load("holodeck.backends.openai")
        import sys
        assert not {"pybars", "av", "scipy", "jinja2", "azure.core", "openai.types.beta"} & set(sys.modules)

        from semantic_kernel import Kernel
        from semantic_kernel.functions import KernelArguments
        from semantic_kernel.prompt_template import HandlebarsPromptTemplate, Jinja2PromptTemplate, PromptTemplateConfig

        async def render(kind, format, template):
            made = kind(prompt_template_config=PromptTemplateConfig(name="t", template=template, template_format=format))
            return await made.render(Kernel(), KernelArguments(name="you"))

        print(asyncio.run(render(HandlebarsPromptTemplate, "handlebars", "hello {{name}}{{#if name}}!{{/if}}")))
        print(asyncio.run(render(Jinja2PromptTemplate, "jinja2", "hello {{name}}{% if name %}?{% endif %}")))
        from semantic_kernel.exceptions import HandlebarsTemplateSyntaxError
        try:
            asyncio.run(render(HandlebarsPromptTemplate, "handlebars", "{{#if name}"))
        except HandlebarsTemplateSyntaxError:
            print("refused")
        from semantic_kernel.connectors.ai.open_ai import AzureChatCompletion, OpenAIRealtimeWebRTC, OpenAITextEmbedding
        import openai
        print(openai.types.responses.Response.__name__, openai.types.chat.ChatCompletion.__name__, openai.types.Batch.__name__)
        """
    )
    assert printed.split("\n") == ["hello you!", "hello you?", "refused", "Response ChatCompletion Batch"]


def test_every_name_of_the_packages_that_are_read_can_be_imported() -> None:
    """No name is lost, in any of Semantic Kernel's core packages and openai's types."""
    printed = _run(
        """
        import warnings
        warnings.simplefilter("ignore")
        from holodeck.backends import kernel
        from holodeck.backends.packages import _Package
        kernel.load("holodeck.backends.openai")
        import sys
        read = [module for module in list(sys.modules.values()) if isinstance(module, _Package)]
        names = [(package.__name__, name) for package in read for name in package._origins]
        for package, name in names:
            getattr(sys.modules[package], name)
        print(len(read) > 10, len(names) > 500)
        """
    )
    assert printed == "True True"
