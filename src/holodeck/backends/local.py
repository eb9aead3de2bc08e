"""The ``local`` provider: a GGUF model run in this process by llama.cpp (``xllamacpp``, extra ``[local]``).

The library serves an OpenAI-compatible API inside the process, on a loopback port and behind a random key; Semantic Kernel's OpenAI
connector talks to it like to any other server.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.request import ProxyHandler, Request, build_opener

from holodeck.backends.connectors import Connection
from holodeck.backends.model_store import MODELS, resolve
from holodeck.backends.openai import connection_to
from holodeck.errors import ConfigError
from holodeck.models.llm import LLMConfig

__all__ = ["local_connection"]

_CONTEXT: Final = 4096
_BIG_FILE: Final = 300_000_000  # bytes; a smaller model is fastest on one thread


def local_connection(config: LLMConfig, environ: Mapping[str, str]) -> Connection:
    """Load the model and connect to it.

    Raises:
        ConfigError: The extra, the model file, or a processor that can run it is missing.
    """
    path = resolve(config, environ)
    server, key = _start(path, config.title)
    address = server.listening_address
    connection = connection_to(config, f"{address}/v1", key, through_proxy=False)
    connection.url = ""  # in this process: there is no server to name
    connection.tools = _supports_tools(address, key)
    holder = [server]
    connection.closers.append(holder.clear)  # the server stops when nothing refers to it
    connection.notices = _notices(config, connection.tools)
    return connection


def _notices(config: LLMConfig, tools: bool) -> list[str]:
    stored = MODELS.get(config.name)
    lines = [stored.notice] if stored and stored.notice else []
    if not tools:
        lines.append(f"{config.title} cannot call tools")
    return lines


def _start(path: Path, name: str) -> tuple[Any, str]:
    _check_processor()
    # OpenMP threads spin while they wait; on a busy machine that slows a small model a hundredfold. Read when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    library = _library()
    key = secrets.token_hex(16)
    try:
        return library.Server(_parameters(library, path, name, key)), key
    except Exception as error:
        raise ConfigError(f"{path}: llama.cpp cannot load this model ({error}): is it a GGUF chat model?") from error


def _library() -> Any:
    try:
        import xllamacpp  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        if "libgomp" in str(error):
            raise ConfigError("provider 'local' needs the OpenMP runtime: apt-get install libgomp1") from error
        raise ConfigError("provider 'local' needs llama.cpp: pip install 'holodeck[local]'") from error
    return xllamacpp


def _parameters(library: Any, path: Path, name: str, key: str) -> Any:
    cores = os.cpu_count() or 1
    parameters = library.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {name}  # otherwise its answers say that they are from a file on this machine
    parameters.n_ctx, parameters.n_parallel = _CONTEXT, 1
    parameters.cpuparams.n_threads = 1 if path.stat().st_size < _BIG_FILE else max(cores // 2, 1)
    parameters.cpuparams_batch.n_threads = cores
    parameters.use_jinja, parameters.endpoint_props, parameters.ui, parameters.verbosity = True, True, False, -1
    parameters.api_keys = [key]
    return parameters


def _check_processor() -> None:
    # The wheels are compiled for AVX2 and die of SIGILL without it, taking the chat along.
    info = Path("/proc/cpuinfo")
    if platform.machine() in ("x86_64", "AMD64") and info.exists() and " avx2" not in info.read_text(encoding="utf-8", errors="replace"):
        raise ConfigError("provider 'local' needs a processor with AVX2: use another provider, e.g. --model ollama/NAME")


def _supports_tools(address: str, key: str) -> bool:
    request = Request(f"{address}/props", headers={"Authorization": f"Bearer {key}"})  # noqa: S310 - our own server, on loopback
    with build_opener(ProxyHandler({})).open(request, timeout=10) as response:
        properties = json.load(response)
    return bool(properties.get("chat_template_caps", {}).get("supports_tools"))
