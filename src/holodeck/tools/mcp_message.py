"""Messages of MCP servers, read such that one bad message is one failed request.

What the ``mcp`` package cannot read it leaves out, and the request that waits for it waits until its time is over. Here an answer that is
JSON, but not MCP, becomes an error answer to its request; and what UTF-8 cannot carry becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from holodeck.lib.validation import exportable

if TYPE_CHECKING:
    from mcp.types import JSONRPCMessage

__all__ = ["DIED", "FAULT", "NOT_MCP", "fault", "fault_type", "read_message"]

FAULT: Final = -32_050
"""JSON-RPC error code of an answer that we have written in the server's place; ``data["error_type"]`` says what happened."""
DIED: Final = "mcp_server_died"
"""``error.type``: the server, or the way to it, is gone."""
NOT_MCP: Final = "mcp_invalid_answer"
"""``error.type``: the server said something that is not MCP."""

_ERROR_TYPE: Final = re.compile(rf"[1-5]\d\d|{DIED}|{NOT_MCP}")


def fault(message: str, error_type: str) -> dict[str, Any]:
    """The ``error`` member of an answer that we write in the server's place.

    Args:
        message: What the server did, e.g. "answered HTTP 500".
        error_type: An HTTP status, or one of the constants here.
    """
    return {"code": FAULT, "message": message, "data": {"error_type": error_type}}


def fault_type(data: object) -> str | None:
    """The ``error.type`` in what :func:`fault` made; None for anything else: a server may use the same code."""
    found = data.get("error_type") if isinstance(data, dict) else None
    return found if isinstance(found, str) and _ERROR_TYPE.fullmatch(found) else None


def read_message(content: bytes, number: str | int | None = None) -> JSONRPCMessage:
    """A message of a server.

    Args:
        content: JSON; what is not UTF-8 in it becomes U+FFFD.
        number: The id of the request that it answers, where the transport knows; an answer with another id gets this one.

    Raises:
        ValueError: It is not JSON, or neither a message nor the answer to a request.
    """
    from mcp.types import JSONRPCMessage  # noqa: PLC0415 - 0.3 s that an agent without MCP need not pay

    text = content.decode("utf-8", "replace")
    try:
        message = JSONRPCMessage.model_validate_json(text)
    except ValueError:
        value = _json(text)
    else:
        if number is None or getattr(message.root, "id", number) == number:
            return message
        value = _json(text)
    return _repaired(value, number)


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=str)
        return json.loads(exportable(json.dumps(value, ensure_ascii=False)))
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _repaired(value: Any, number: str | int | None) -> JSONRPCMessage:
    from mcp.types import JSONRPCMessage  # noqa: PLC0415 - as above

    is_answer = isinstance(value, dict) and "jsonrpc" in value and "method" not in value
    if is_answer and number is not None:
        value["id"] = number
    try:
        return JSONRPCMessage.model_validate(value)
    except ValueError:
        if not is_answer or not isinstance(value.get("id"), int | str):
            raise
        broken = {"jsonrpc": "2.0", "id": value["id"], "error": fault("gave an answer that is not MCP", NOT_MCP)}
        return JSONRPCMessage.model_validate(broken)
