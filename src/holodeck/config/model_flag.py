"""``--model PROVIDER/NAME``: another model than the one in the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holodeck.config.substitute import expand
from holodeck.errors import SettingError
from holodeck.lib.document import Document, check_file
from holodeck.lib.problems import choices, nearest, one_line
from holodeck.models.llm import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ModelOverride", "parse_model_flag"]

_IDENTITY: Final = ("provider", "name", "path", "script", "price")
_OF_THE_PROVIDER: Final = ("endpoint", "api_key", "api_version")


@dataclass(frozen=True)
class ModelOverride:
    """The model that the command line names.

    Attributes:
        flag: The flag as the user wrote it.
        provider: Who answers.
        key: ``name``, ``script`` or ``path``: the key of the ``model`` section that ``value`` is for.
        value: Name of the model, or absolute path of a file.
    """

    flag: str
    provider: Provider
    key: str
    value: str

    def apply(self, document: Document, environ: Mapping[str, str]) -> Document:
        """``document`` with this model; what belongs to another provider goes, settings such as ``temperature`` stay."""
        section = document.data.get("model")
        section = section if isinstance(section, dict) else {}
        dropped = _IDENTITY if self._is_provider(section, environ) else _IDENTITY + _OF_THE_PROVIDER
        kept = {key: value for key, value in section.items() if key not in dropped}
        model: dict[str, Any] = {"provider": self.provider.value, self.key: self.value, **kept}
        return replace(document, data=document.data | {"model": model})

    def _is_provider(self, section: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        try:
            return expand(str(section.get("provider")), environ) == self.provider.value
        except ValueError:
            return False

    def error(self, message: str) -> SettingError:
        """The error that ``message`` is about the flag."""
        return SettingError(f"{self.flag}: {message}")


def parse_model_flag(value: str) -> ModelOverride:
    """What ``--model value`` asks for; files are looked for from the current directory.

    Raises:
        SettingError: It is not ``PROVIDER/NAME``, the provider is unknown, the name is no plain text, or its file does not exist.
    """
    flag = f"--model {one_line(value)}"
    known = [provider.value for provider in Provider]
    word, slash, name = value.strip().partition("/")
    if word.lower() not in known:
        raise SettingError(f"{flag}: write PROVIDER/NAME; PROVIDER is {choices(known)}{nearest(word, known)}")
    if not slash or not name.strip():
        raise SettingError(f"{flag}: a name is missing: write {word.lower()}/NAME")
    if not name.isprintable():  # lone surrogates, which stand for bytes that are not UTF-8, are not printable either
        raise SettingError(f"{flag}: the name has controls in it, or is not UTF-8 text: type it again")
    provider, name = Provider(word.lower()), name.strip()
    is_file = provider is Provider.SCRIPTED or (provider is Provider.LOCAL and name.lower().endswith(".gguf"))
    if not is_file:
        return ModelOverride(flag, provider, "name", name)
    path = Path(name).absolute()
    try:
        check_file(path)
    except ValueError as error:
        raise SettingError(f"{flag}: {one_line(str(path), 300)}: {error}") from error
    return ModelOverride(flag, provider, "script" if provider is Provider.SCRIPTED else "path", str(path))
