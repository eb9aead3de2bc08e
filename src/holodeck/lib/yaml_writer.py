"""Plain values → YAML that :mod:`holodeck.lib.strict_yaml` reads back as the same values."""

from __future__ import annotations

from typing import Any

import yaml

from holodeck.lib.strict_yaml import core_scalar

__all__ = ["write_yaml"]


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes what YAML 1.2 would not read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    if style is None and not isinstance(core_scalar(value), str):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def write_yaml(value: Any) -> str:
    """``value`` (mappings, lists, text, numbers, booleans, None) as YAML; keys keep their order, text of several lines is a block."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
