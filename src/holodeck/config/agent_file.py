"""An agent file, loaded: read, checked, completed from the environment, with the files it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from holodeck.config.credentials import complete_models, endpoint_variable, require_keys
from holodeck.config.endpoint import parse_endpoint
from holodeck.config.files import read_instructions, resolve_files
from holodeck.config.ignored import leave_out_ignored
from holodeck.config.model_flag import ModelOverride, parse_model_flag
from holodeck.config.problems import KeyedError
from holodeck.config.substitute import substitute
from holodeck.config.telemetry import resolve_telemetry
from holodeck.lib.strict_yaml import read_yaml
from holodeck.models.agent import AgentConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holodeck.lib.document import Document

__all__ = ["LoadedAgent", "load_agent_config"]


@dataclass(frozen=True)
class LoadedAgent:
    """An agent file with everything that it names.

    Attributes:
        path: The agent file as the user gave it.
        directory: Absolute directory of the agent file; relative paths in it start here.
        config: The agent; its paths are absolute, its keys and endpoints completed from the environment.
        instructions: The system prompt, inline or from its file; None if there is none.
        warnings: One line for each group of keys that are known and not acted upon.
        document: The file as it was read, with the line of each key.
    """

    path: Path
    directory: Path
    config: AgentConfig
    instructions: str | None
    warnings: tuple[str, ...]
    document: Document = field(repr=False, compare=False)


def load_agent_config(path: Path | str, environ: Mapping[str, str], *, model: str | None = None) -> LoadedAgent:
    """Load an agent file.

    Args:
        path: The YAML file.
        environ: Environment variables for ``${VAR}``, keys and endpoints.
        model: ``PROVIDER/NAME``: replaces the file's model (not that of prompt tools that name their own).
            When the provider changes, what belongs to the file's provider (endpoint, key, …) is dropped unread.

    Raises:
        AgentFileError: The file, or a file that it names, cannot be used; names file, line and key, and says what to write.
        SettingError: ``model`` or an environment variable means nothing.
    """
    path = Path(path)
    override = None if model is None else parse_model_flag(model)
    document, warnings = leave_out_ignored(read_yaml(path))
    if override:
        document = override.apply(document, environ)
    document = substitute(document, environ)
    complete_models(document, environ)
    config = _validate(document, override)
    require_keys(document, config, override)
    _check_observability(document, config)
    directory = path.absolute().parent
    resolve_files(document, config, directory)
    return LoadedAgent(path, directory, config, read_instructions(document, config), warnings, document)


def _validate(document: Document, override: ModelOverride | None) -> AgentConfig:
    try:
        return AgentConfig.model_validate(document.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if override and first["loc"] == ("model",) and first["type"] == "value_error":
            message = str(first["ctx"]["error"])
            hint = (
                f", or the environment variable {variable}" if "'endpoint" in message and (variable := endpoint_variable(override)) else ""
            )
            raise override.error(message + hint) from error
        raise document.error(error, AgentConfig) from error


def _check_observability(document: Document, config: AgentConfig) -> None:
    """Whatever the environment says later, what the file says has to make sense, also while export is off."""
    key = ("observability", "exporters", "otlp", "endpoint")
    try:
        if written := (config.observability.exporters.otlp.endpoint or "").strip():
            parse_endpoint(written, lambda message: KeyedError(key, message))  # also where no signal goes there
        resolve_telemetry(config.observability, {}, observability=True)
    except KeyedError as problem:
        raise document.at(problem.path, problem.reason) from problem
