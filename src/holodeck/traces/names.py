"""The attribute names that the reader looks at: the current GenAI conventions first, then the names that older writers use.

Names are listed from the newest to the oldest; the first that stands on a span counts.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CACHED_TOKENS",
    "CONTENT",
    "CONVERSATION",
    "EMBEDDINGS",
    "ERROR_TYPE",
    "EXCEPTION_MESSAGE",
    "EXCEPTION_TYPE",
    "EXECUTE_TOOL",
    "INPUT_TOKENS",
    "INVOKE_AGENT",
    "MCP_METHOD",
    "MODEL_OPERATIONS",
    "OPERATION",
    "OUTPUT_TOKENS",
    "TIME_TO_FIRST_CHUNK",
    "TURN_COST",
    "TURN_NUMBER",
]

OPERATION: Final = "gen_ai.operation.name"
CONVERSATION: Final = "gen_ai.conversation.id"
TURN_NUMBER: Final = "holodeck.turn.number"
TURN_COST: Final = "holodeck.turn.cost_usd"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
ERROR_TYPE: Final = "error.type"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
MCP_METHOD: Final = "mcp.method.name"

INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
CACHED_TOKENS: Final = ("gen_ai.usage.cache_read.input_tokens",)

MODEL_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion", "embeddings"})
"""Operations that are one request to a model; token usage of other operations is a total of these and is not added again."""
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
EMBEDDINGS: Final = "embeddings"

CONTENT: Final = (
    ("system", ("gen_ai.system_instructions",)),
    ("input", ("gen_ai.input.messages", "gen_ai.prompt")),
    ("arguments", ("gen_ai.tool.call.arguments",)),
    ("result", ("gen_ai.tool.call.result",)),
    ("output", ("gen_ai.output.messages", "gen_ai.completion")),
)
"""Captured content in the order in which it is shown: a label, and the attributes that hold it."""
