"""The documentation says what the code does."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="the documentation is not part of an installed package")


def test_generated_parts_are_up_to_date() -> None:
    """The tables of keys and attributes are what the code makes."""
    done = subprocess.run([sys.executable, "scripts/docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_flag_stands_in_the_readme_and_no_other() -> None:
    """The README's table of flags has each option of ``holodeck chat``, and none that is not there."""
    text = README.read_text(encoding="utf-8").partition("<!-- flags -->")[2].partition("<!-- /flags -->")[0]
    shown = set(re.findall(r"--[a-z][a-z-]+", "\n".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE))))
    helped = set(re.findall(r"--[a-z][a-z-]+", run(["chat", "--help"]).out)) - {"--help"}
    assert shown == helped


def test_relative_links_lead_somewhere() -> None:
    """Each relative link of a Markdown file names a file that is there."""
    for page in [README, *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readmes_pipe_example_is_true() -> None:
    """The piped command of the README prints what the README shows."""
    text = README.read_text(encoding="utf-8")
    shown = re.search(r"^\$ printf .*\n((?:.*\n)*?)```", text, re.MULTILINE)
    assert shown is not None
    done = run(["chat", "examples/support/agent.yaml"], stdin="Where is order 1042?\n", cwd=ROOT)
    assert (done.code, done.out) == (0, shown.group(1))


def test_the_readmes_program_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's library example runs as it stands."""
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    monkeypatch.chdir(ROOT)
    exec(compile(code.group(1).replace("asyncio.run(main())", ""), "README.md", "exec"), scope := {})
    asyncio.run(scope["main"]())
    assert "1042" in capsys.readouterr().out


def test_the_agent_file_of_the_readme_loads(tmp_path: Path) -> None:
    """The README's agent file is one."""
    from holodeck.config import load_agent_config

    text = re.search(r"```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None
    (tmp_path / "tools.py").write_text("def lookup_order(order_id: str) -> str:\n    return order_id\n", encoding="utf-8")
    (tmp_path / "agent.yaml").write_text(text.group(1), encoding="utf-8")
    assert load_agent_config(tmp_path / "agent.yaml", {"OPENAI_API_KEY": "k"}).config.name == "support"


def test_the_readmes_test_passes(tmp_path: Path) -> None:
    """The README's pytest example is green."""
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    (tmp_path / "test_readme.py").write_text(code.replace("examples/", f"{ROOT}/examples/"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout
