"""What a newcomer gets: the Makefile, the pins, the wheel, the examples, and files that name nobody's machine."""

from __future__ import annotations

import ast
import asyncio
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"help", "venv", "chat", "demo", "test", "soak", "lint", "types", "bench", "backends", "up", "down", "pins", "clean"}
EVERYWHERE = {"/", "/home", "/mnt", "/opt", "/srv", "/tmp", "/usr", "/var", "/Users"}
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/*/agent.yaml"))


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The outcome of ``make`` in the checkout; nothing of an outer make reaches it."""
    outer = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=outer, text=True, capture_output=True, check=False)


def pins() -> dict[str, str]:
    """Distribution → pinned version of constraints.txt."""
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def requirements() -> list[Requirement]:
    """What pyproject.toml requires: for running, for building, for development, and for the local model."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*project["project"]["dependencies"], *project["build-system"]["requires"], *extras]]


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """The files that git keeps; without a checkout there is nothing to ask."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """The wheel that this checkout builds."""
    if not (ROOT / "src").exists():
        pytest.skip("there are no sources here to build a wheel from")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_make_alone_lists_every_target():
    """``make`` does nothing but list the targets, each with what it is for."""
    done = make()
    assert done.returncode == 0
    assert dict(re.findall(r"^make (\w+) +(\S.*)$", done.stdout, re.MULTILINE)).keys() == TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_each_target_can_be_planned(target):
    """``make -n`` accepts every target."""
    done = make("-n", target)
    assert (done.returncode, done.stderr) == (0, "")


def test_chat_fetches_the_model_before_it_starts():
    """``make chat`` pulls the model by the name that the quickstart uses, and then starts that agent."""
    plan = make("-n", "chat").stdout
    assert plan.index("holodeck models pull smollm2") < plan.index("holodeck chat examples/quickstart/agent.yaml")


def test_an_old_python_is_one_clear_line(tmp_path):
    """An interpreter older than 3.11 is refused by its version, before anything is made."""
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *python_version*) echo 3.9.18;; *) exit 1;; esac\n')
    old.chmod(0o755)
    done = make("venv", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert "is Python 3.9.18, and HoloDeck needs 3.11 or newer" in done.stderr.splitlines()[0]
    assert not (tmp_path / "venv").exists()


def test_a_missing_python_is_one_clear_line(tmp_path):
    """An interpreter that is not there is named, with what to do."""
    done = make("venv", "PYTHON=/nowhere/python3", f"VENV={tmp_path / 'venv'}")
    assert "there is no '/nowhere/python3' here" in done.stderr.splitlines()[0]


def test_a_python_without_venv_is_one_clear_line(tmp_path):
    """An interpreter that cannot make environments names the package that is missing."""
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; *) exec "{sys.executable}" "$@";; esac\n')
    bare.chmod(0o755)
    done = make("venv", f"PYTHON={bare}", f"VENV={tmp_path / 'venv'}")
    assert "apt-get install python3-venv" in done.stderr.splitlines()[0]


def test_nothing_to_do_runs_nothing(tmp_path):
    """With fresh stamps ``make venv`` starts neither pip nor anything else."""
    version = ".".join(map(str, sys.version_info[:3]))
    for stamp in (f".created-{version}", f".runs-{version}-local"):
        (tmp_path / stamp).touch()
    done = make("venv", f"PYTHON={sys.executable}", f"VENV={tmp_path}")
    assert (done.returncode, done.stdout) == (0, "make: Nothing to be done for 'venv'.\n")


def test_every_requirement_is_pinned_within_its_range():
    """constraints.txt has a version for each requirement of pyproject.toml, and one that it allows."""
    pinned = pins()
    missing = [str(r) for r in requirements() if not r.specifier.contains(pinned.get(canonicalize_name(r.name), "0"), prereleases=True)]
    assert missing == []


def test_every_dependency_of_a_dependency_is_pinned():
    """The pins are complete: whatever the installed distributions require in turn is there too."""
    pinned, seen = pins(), set()
    waiting = [(r.name, frozenset(r.extras)) for r in requirements() if not r.marker or r.marker.evaluate()]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for line in importlib.metadata.requires(name) or []:
            needed = Requirement(line)
            if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                waiting.append((needed.name, frozenset(needed.extras)))
    assert {name for name, _ in seen if canonicalize_name(name) not in pinned} == set()


def imported() -> set[str]:
    """The distributions whose modules the package imports, by their canonical names."""
    provider, found = importlib.metadata.packages_distributions(), set[str]()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {
                n
                for name in names
                if (n := name.partition(".")[0]) not in {*sys.stdlib_module_names, "holodeck", "opentelemetry", "google"}
            }
    return {canonicalize_name(provider[name][0]) for name in found}


def test_what_is_imported_is_required_and_explained():
    """Each distribution that is imported stands in pyproject.toml and in the README's table; so does each that is required."""
    parts = {"pydantic-core": "pydantic", "anthropic": "semantic-kernel", "ollama": "semantic-kernel"}  # come with, and are extras of
    required = {canonicalize_name(requirement.name) for requirement in requirements()}
    assert {parts.get(name, name) for name in imported()} - {"pytest"} <= required
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What each dependency is for")[2].partition("\n## ")[0]
    explained = {canonicalize_name(name) for name in re.findall(r"`([\w-]+)`", table)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    running = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    assert running <= explained


def test_pins_are_names_and_versions_only():
    """One ``name==version`` a line, sorted: no address, no hash, no option."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line)] == []
    assert lines == sorted(lines, key=str.lower)


def test_no_file_names_a_package_index(tracked):
    """No tracked file holds the host of an index that this machine's pip is configured for."""
    settings = subprocess.run([sys.executable, "-m", "pip", "config", "list"], text=True, capture_output=True, check=False).stdout
    settings += " ".join(value for key, value in os.environ.items() if key.startswith(("PIP_", "UV_")) or key.endswith("_INDEX_URL"))
    hosts = set(re.findall(r"https?://(?:[^/@\s'\"]*@)?([^/:,\s'\"]+)", settings)) - {"127.0.0.1", "localhost"}
    default_index = "pypi" + ".org"  # in two pieces, or this file would be found
    assert holding(tracked, {*hosts, default_index, "python" + "hosted.org"}) == []


def test_no_file_names_a_place_on_this_machine(tracked):
    """No tracked file holds the home directory or the place of this checkout."""
    places = {f"{place}/" for place in (ROOT, ROOT.parent, Path.home()) if str(place) not in EVERYWHERE}
    assert holding(tracked, places) == []


def holding(files: list[Path], words: set[str]) -> list[str]:
    """``file: word`` for each of the words that stands in one of the files."""
    texts = [(path, path.read_bytes()) for path in files]
    return [f"{path.relative_to(ROOT)}: {word}" for path, text in texts for word in sorted(words) if word.encode() in text]


def test_the_wheel_is_the_package_and_nothing_else(wheel):
    """It carries the marker for type checkers, the license and the command, and neither tests nor examples."""
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"holodeck"}
    assert "holodeck/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "holodeck = holodeck.cli.main:main" in wheel.read(entry_points).decode()


def test_the_wheel_holds_every_module(wheel):
    """What stands under src is in the wheel, file by file."""
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {name for name in wheel.namelist() if name.endswith(".py")} == sources


@pytest.mark.parametrize("path", EXAMPLES)
def test_each_example_loads(path):
    """The examples are agent files that this version reads without a warning."""
    from holodeck.config import load_agent_config

    loaded = load_agent_config(ROOT / path, {})
    assert (loaded.config.name, loaded.warnings) == (Path(path).parent.name, ())


def test_the_examples_are_the_two_that_the_makefile_starts():
    """Each example is started by a target, and each started example is there."""
    started = re.findall(r"examples/\w+/agent\.yaml", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert sorted(started) == EXAMPLES


def test_the_demo_shows_what_it_promises():
    """The messages of ``make demo`` make one call, two calls, and a call that fails; asked again, the first gets the same answer."""
    from holodeck import Session, load_agent

    messages = re.findall(r"--message '([^']+)'", (ROOT / "Makefile").read_text(encoding="utf-8"))

    async def demo() -> list:
        agent = load_agent(ROOT / "examples/support/agent.yaml", environ={})
        async with agent, Session(agent) as session:
            return [await session.send(message) for message in [*messages, messages[0]]]

    *turns, again = [result.message for result in asyncio.run(demo())]
    assert [[(call.tool_name, call.status.value) for call in turn.tool_calls] for turn in turns] == [
        [("lookup_order", "success")],
        [("check_stock", "success"), ("quote_shipping", "success")],
        [("lookup_order", "success"), ("track_parcel", "failed")],
    ]
    assert (again.content, again.tokens_used) == (turns[0].content, turns[0].tokens_used)
