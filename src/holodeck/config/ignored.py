"""Keys that agent files carry for other programs: known here, and not acted upon.

One table; the loader leaves the keys out with one warning line a group, and the JSON Schema accepts them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from holodeck.models import agent, cost, llm, observability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holodeck.lib.document import Document
    from holodeck.lib.problems import KeyPath

__all__ = ["ELSEWHERE", "IGNORED_KEYS", "IGNORED_TOOL_TYPES", "IgnoredKeys", "leave_out_ignored"]


@dataclass(frozen=True)
class IgnoredKeys:
    """Keys of one section.

    Attributes:
        model: Name of the pydantic model of the section.
        place: Where the section stands; ``*`` is every entry of a list.
        keys: Key → what to write instead, or "".
    """

    model: str
    place: tuple[str, ...]
    keys: dict[str, str]


ELSEWHERE: Final = {"test_cases": "Run by 'holodeck test'."}
"""Keys of the agent that are acted upon, and not here: they are left out without a word."""
_PROVIDER_KEYS: Final = {"auth_provider": "use 'api_key'"}

IGNORED_KEYS: Final = (
    IgnoredKeys(
        "AgentConfig",
        (),
        dict.fromkeys(
            (
                "author", "claude", "deployment", "embedding_provider", "evaluations", "execution", "openai", "response_format",
                "test_cases", "test_cases_file", "tool_filtering", "vectorstores", "version",
            ),
            "",
        ),
    ),
    IgnoredKeys("LLMConfig", ("model",), _PROVIDER_KEYS),
    IgnoredKeys("LLMConfig", ("tools", "*", "model"), _PROVIDER_KEYS),
    IgnoredKeys(
        "McpTool",
        ("tools", "*"),
        {
            "config": "",
            "encoding": "",
            "env_file": "use 'env'",
            "is_retrieval": "",
            "load_prompts": "",
            "load_tools": "",
            "registry_name": "",
            "request_timeout": "use 'timeout'",
            "sse_read_timeout": "use 'timeout'",
            "terminate_on_close": "",
        },
    ),
    IgnoredKeys("TracesConfig", ("observability", "traces"), {"capture_evaluation_content": ""}),
    IgnoredKeys("MetricsConfig", ("observability", "metrics"), {"include_semantic_kernel_metrics": ""}),
    IgnoredKeys("LogsConfig", ("observability", "logs"), {"filter_namespaces": "", "include_trace_context": ""}),
    IgnoredKeys("ExportersConfig", ("observability", "exporters"), {"azure_monitor": "use 'otlp'", "prometheus": "use 'otlp'"}),
)  # fmt: skip

IGNORED_TOOL_TYPES: Final = ("hierarchical_document", "vectorstore")
"""Types of tools that are left out whole."""

# Mappings whose keys are the user's own: an empty value there is a value.
_FREE: Final = frozenset({"env", "headers", "parameters", "resource_attributes"})


def leave_out_ignored(document: Document) -> tuple[Document, tuple[str, ...]]:
    """``document`` without the keys and tools that are not acted upon, and without keys that have no value.

    Returns:
        The document, and one warning line for each group that was left out.
    """
    found: dict[str, list[int]] = {}
    document = _without_tools(document, found)
    data = _without_nothing(document.data)
    for group in IGNORED_KEYS:
        for path, section in _sections(data, group.place):
            if group.model == "McpTool" and section.get("type") != "mcp":
                continue
            for key in [key for key in group.keys if key in section]:
                del section[key]
                if key not in ELSEWHERE:
                    _note(found, document, (*path, key), _what(group, key))
    first = sorted((min(lines), what) for what, lines in found.items())
    return replace(document, data=data), tuple(f"{document.file}:{line}: {what}" for line, what in first)


def _note(found: dict[str, list[int]], document: Document, path: KeyPath, what: str) -> None:
    found.setdefault(what, []).append(document.line(path))


def _what(group: IgnoredKeys, key: str) -> str:
    dotted = ".".join((*(part for part in group.place if part != "*"), key))
    advice = f": {group.keys[key]}" if group.keys[key] else ""
    return f"'{dotted}' is not acted upon{advice}"


def _without_tools(document: Document, found: dict[str, list[int]]) -> Document:
    tools = document.data.get("tools")
    if not isinstance(tools, list):
        return document
    kept = []
    for index, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind in IGNORED_TOOL_TYPES:
            _note(found, document, ("tools", index), f"tools of type '{kind}' are not acted upon")
        else:
            kept.append(index)
    data = document.data | {"tools": [tools[index] for index in kept]}
    return replace(document, data=data, renumbered={("tools",): tuple(kept)})


def _without_nothing(value: Any) -> Any:
    """A copy without keys that have no value (``tools:`` with nothing behind it); the user's own mappings stay as they are.

    A key that nobody knows stays: it is misspelt, with a value or without.
    """
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if item is not None or key not in _known()}
        return {key: item if key in _FREE and item is not None else _without_nothing(item) for key, item in kept.items()}
    return [_without_nothing(item) for item in value] if isinstance(value, list) else value


@functools.cache
def _known() -> frozenset[str]:
    """Every key that some section has."""
    found = [value for module in (agent, cost, llm, observability) for value in vars(module).values()]
    keys = {key for model in found if isinstance(model, type) and issubclass(model, BaseModel) for key in model.model_fields}
    return frozenset(keys.union(*(group.keys for group in IGNORED_KEYS)))


def _sections(data: Any, place: tuple[str, ...], path: KeyPath = ()) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    if not place:
        if isinstance(data, dict):
            yield path, data
    elif place[0] == "*":
        for index, item in enumerate(data if isinstance(data, list) else ()):
            yield from _sections(item, place[1:], (*path, index))
    elif isinstance(data, dict) and place[0] in data:
        yield from _sections(data[place[0]], place[1:], (*path, place[0]))
