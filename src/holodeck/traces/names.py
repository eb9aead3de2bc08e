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
    "KINDS",
    "MCP_METHOD",
    "MODEL_OPERATIONS",
    "NUMBERED",
    "OPERATION",
    "OUTPUT_TOKENS",
    "TIME_TO_FIRST_CHUNK",
    "TURN_COST",
    "TURN_NUMBER",
    "holds_content",
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

INPUT_TOKENS: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",  # OpenInference
    "llm.usage.prompt_tokens",  # the first OpenLLMetry
)
OUTPUT_TOKENS: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
)
CACHED_TOKENS: Final = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
)

KINDS: Final = {
    "openinference.span.kind": {"llm": "chat", "embedding": "embeddings", "tool": "execute_tool", "agent": "invoke_agent"},
    "llm.request.type": {"completion": "text_completion", "embedding": "embeddings"},
    "traceloop.span.kind": {"tool": "execute_tool", "agent": "invoke_agent", "workflow": "invoke_workflow"},
}
"""What says which operation a span of an older writer is, and those of its values that have another name now.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md, https://github.com/traceloop/openllmetry
"""

MODEL_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion", "embeddings"})
"""Operations that are one request to a model; token usage of other operations is a total of these and is not added again."""
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
EMBEDDINGS: Final = "embeddings"

CONTENT: Final = (
    ("system", ("gen_ai.system_instructions",)),
    ("input", ("gen_ai.input.messages", "gen_ai.prompt", "input.value", "traceloop.entity.input")),
    ("arguments", ("gen_ai.tool.call.arguments", "tool.parameters")),
    ("result", ("gen_ai.tool.call.result",)),
    ("output", ("gen_ai.output.messages", "gen_ai.completion", "output.value", "traceloop.entity.output")),
)
"""Captured content in the order in which it is shown: a label, and the attributes that hold it."""
NUMBERED: Final = {
    "input": ("gen_ai.prompt.{}.content", "llm.input_messages.{}.message.content", "llm.prompts.{}.content"),
    "output": ("gen_ai.completion.{}.content", "llm.output_messages.{}.message.content", "llm.completions.{}.content"),
}
"""The same where each message has attributes of its own, from 0 on."""
_CONTENT: Final = frozenset(key for _, keys in CONTENT for key in keys)
_CONTENT_BEGINS: Final = tuple(pattern.partition("{")[0] for patterns in NUMBERED.values() for pattern in patterns)


def holds_content(key: str) -> bool:
    """Whether the attribute ``key`` may hold what was said, asked or returned."""
    return key in _CONTENT or key.startswith(_CONTENT_BEGINS)
