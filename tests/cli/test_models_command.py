"""The models commands, without a download."""

from __future__ import annotations

import pytest

from holodeck.backends import model_store
from holodeck.cli.main import run
from holodeck.models.llm import Provider


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The directory of pulled models, not yet there."""
    monkeypatch.setenv("HOLODECK_CACHE_DIR", str(tmp_path))
    return tmp_path / "models"


def _put(cache, name: str) -> None:
    cache.mkdir(exist_ok=True)
    with (cache / f"{name}.gguf").open("wb") as file:
        file.truncate(model_store.MODELS[name].size)


def test_the_list_has_every_model(cache, capsys):
    """Name, size, whether it is here, licence, and what it is, in one line."""
    assert run(["models", "list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("smollm2"))
    assert line.split()[:5] == ["smollm2", "98", "MB", "no", "Apache-2.0"]
    _put(cache, "smollm2")
    run(["models", "list"])
    assert " yes " in capsys.readouterr().out


def test_the_list_says_how_to_name_every_provider(cache, capsys):
    """No provider is forgotten."""
    run(["models", "list"])
    out = capsys.readouterr().out
    assert all(f"--model {provider.value}/" in out for provider in Provider)


def test_a_model_that_is_here_is_not_fetched(cache, capsys):
    """Pulling again says where it is."""
    _put(cache, "smollm2")
    assert run(["models", "pull", "smollm2"]) == 0
    assert capsys.readouterr().out == f"smollm2 is on this machine: {cache / 'smollm2.gguf'}\n"


def test_an_unknown_model_is_one_line(cache, capsys):
    """The error names those that there are; exit 2."""
    assert run(["models", "pull", "nope"]) == 2
    assert capsys.readouterr().err.startswith("error: There is no local model 'nope': use one of smollm2")


def test_progress_without_a_terminal_is_a_line_a_tenth(cache, capsys, monkeypatch):
    """Each tenth is said once, on stderr, and the file's place on stdout."""

    def pull(name, environ, *, on_progress):
        for percent in (0, 5, 10, 14, 55, 100, 100):
            on_progress(percent * 1_000_000, 100_000_000)
        return cache / "smollm2.gguf"

    monkeypatch.setattr(model_store, "pull", pull)
    assert run(["models", "pull", "smollm2"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[1:] == ["smollm2: 10 of 100 MB", "smollm2: 55 of 100 MB", "smollm2: 100 of 100 MB"]
    assert said.out == f"smollm2 is on this machine now: {cache / 'smollm2.gguf'}\n"
