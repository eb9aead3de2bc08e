"""What MCP servers say, as HoloDeck uses it: names of tools, contents of results."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from holodeck.errors import ToolError
from holodeck.models.tool_name import MAX_TOOL_NAME, with_plain_characters
from holodeck.tools.results import as_text

if TYPE_CHECKING:
    from collections.abc import Container

    from mcp.types import CallToolResult

    from holodeck.tools.schema import SchemaCheck

__all__ = ["may_be_offered_as", "offered_name", "result_text", "usable_schema"]

_UNCUT: Final = MAX_TOOL_NAME - 7
"""Characters of a name that a hash never replaces."""


def offered_name(server: str, tool: str, taken: Container[str]) -> str:
    """The name under which a server's tool is offered: ``{server}-{tool}``, in the 64 characters that model providers allow.

    Other characters than letters, digits, ``_`` and ``-`` become ``_``. A name that is too long, or that the same server has used already
    (``a.b`` and ``a_b``), ends in six hex digits of its hash.
    """
    whole = f"{server}-{tool}"
    name = with_plain_characters(whole)
    if len(name) <= MAX_TOOL_NAME and name not in taken:
        return name
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{name[:_UNCUT]}-{digest}"


def may_be_offered_as(server: str, name: str) -> bool:
    """Whether ``name`` may be what a tool of ``server`` is offered as; for those who cannot ask the server."""
    return name.startswith(f"{server}-"[:_UNCUT])


def usable_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], SchemaCheck | None]:
    """What a model is offered of a server's schema, and what checks arguments.

    Where the server's is no schema, or not about objects, any object is offered: with it a provider would refuse all requests of the agent.
    """
    from holodeck.tools.schema import SchemaCheck, UnusableSchemaError  # noqa: PLC0415 - see there

    try:
        schema = json.loads(json.dumps({"type": "object"} | schema, allow_nan=False))
        if schema["type"] != "object":
            raise UnusableSchemaError("type", "is not object")
        check = SchemaCheck(schema, is_foreign=True)
    except UnusableSchemaError as exc:
        return (schema if exc.is_valid else {"type": "object"}), None
    except (ValueError, RecursionError):
        return {"type": "object"}, None
    return schema, check


def result_text(result: CallToolResult) -> str:
    """The text of a result: its text parts a line each, other parts described, structured content where there is no text.

    Raises:
        ToolError: The server marked the result as an error.
    """
    parts = [_part_text(part) for part in result.content]
    if result.structuredContent is not None and not any(part.type == "text" for part in result.content):
        parts.append(as_text(result.structuredContent))
    text = as_text("\n".join(parts))
    if result.isError:
        raise ToolError(text or "the tool reported an error without a message")
    return text


def _part_text(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        return f"[{part.type} {part.mimeType}, {_size(part.data)} bytes]"
    if part.type == "resource_link":
        return f"[resource {part.uri}]"
    resource = part.resource
    if (text := getattr(resource, "text", None)) is not None:
        return f"[resource {resource.uri}]\n{text}"
    return f"[resource {resource.uri} {resource.mimeType or 'of unknown type'}, {_size(resource.blob)} bytes]"


def _size(base64: str) -> int:
    """Bytes that a base64 text stands for."""
    return len(base64) * 3 // 4 - base64[-2:].count("=")
