"""The attribute names that HoloDeck writes itself; ``opentelemetry-util-genai`` writes the rest of ``gen_ai.*``.

What the GenAI conventions lack stands under ``holodeck.*``, each with its type and a description, in this file only. From here come the
list of names for checkers (``python -m holodeck.telemetry --names``), the table in ``docs/telemetry.md`` (``--table``) and the
registry in OpenTelemetry Weaver's format under ``docs/semconv`` (``--registry``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ATTRIBUTES", "SCOPE", "Attribute", "names", "registry", "table"]

SCOPE: Final = "holodeck"
"""Name of the instrumentation scope of every span, metric and log record."""

# GenAI conventions: names that the helper library takes as content only, or not at all.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
CONVERSATION: Final = "gen_ai.conversation.id"
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

# SDK conventions: how the span queue fares.
COMPONENT_TYPE: Final = "otel.component.type"
COMPONENT_NAME: Final = "otel.component.name"
ERROR_TYPE: Final = "error.type"
PROCESSED: Final = "otel.sdk.processor.span.processed"
QUEUE_SIZE: Final = "otel.sdk.processor.span.queue.size"
EXPORTED: Final = "otel.sdk.exporter.span.exported"

SESSION_STATE: Final = "holodeck.session.state"
SESSION_MESSAGES: Final = "holodeck.session.message_count"
TURN_NUMBER: Final = "holodeck.turn.number"
TURN_REQUESTS: Final = "holodeck.turn.model_requests"
TURN_TOOLS: Final = "holodeck.turn.tool_calls"
TURN_INPUT: Final = "holodeck.turn.input_tokens"
TURN_OUTPUT: Final = "holodeck.turn.output_tokens"
TURN_COST: Final = "holodeck.turn.cost_usd"
MESSAGE_ROLE: Final = "holodeck.message.role"
MESSAGE_LENGTH: Final = "holodeck.message.length"
ANSWER_LENGTH: Final = "holodeck.answer.length"
TOOL_STATUS: Final = "holodeck.tool.status"
TOOL_TIME: Final = "holodeck.tool.execution_time"
TOOL_ORIGINAL: Final = "holodeck.tool.name_original"
USAGE_UNAVAILABLE: Final = "holodeck.usage.unavailable"
LINK_TYPE: Final = "holodeck.link.type"
TEST_CASE: Final = "holodeck.test.case"
TEST_VERDICT: Final = "holodeck.test.verdict"


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of ours.

    Attributes:
        name: Its full name.
        type: Weaver's type: string, int, double or boolean.
        brief: What it says, in one sentence.
        example: One value, as YAML.
        spans: Operations whose spans carry it (``link``: links between turns).
    """

    name: str
    type: str
    brief: str
    example: str
    spans: tuple[str, ...]


_TURN: Final = ("invoke_agent",)
ATTRIBUTES: Final = (
    Attribute(SESSION_STATE, "string", "State of the chat session when the turn ended.", "active", _TURN),
    Attribute(SESSION_MESSAGES, "int", "User and assistant messages in the session when the turn ended.", "4", _TURN),
    Attribute(TURN_NUMBER, "int", "Number of the turn in its session, from 1.", "2", _TURN),
    Attribute(TURN_REQUESTS, "int", "Requests that the turn sent to models.", "2", _TURN),
    Attribute(TURN_TOOLS, "int", "Tool executions of the turn.", "1", _TURN),
    Attribute(TURN_INPUT, "int", "Input tokens of all model requests of the turn; absent if any is unknown.", "420", _TURN),
    Attribute(TURN_OUTPUT, "int", "Output tokens of all model requests of the turn; absent if any is unknown.", "38", _TURN),
    Attribute(TURN_COST, "double", "US dollars for all model requests of the turn; absent if any is unknown.", "0.0018", _TURN),
    Attribute(MESSAGE_ROLE, "string", "Role of the message that began the turn.", "user", _TURN),
    Attribute(MESSAGE_LENGTH, "int", "Length in characters of the message that began the turn.", "24", _TURN),
    Attribute(ANSWER_LENGTH, "int", "Length in characters of the assistant's answer; absent if there is none.", "180", _TURN),
    Attribute(TOOL_STATUS, "string", "Status of the tool execution: success, failed, or denied by the user.", "success", ("execute_tool",)),
    Attribute(TOOL_TIME, "double", "Seconds that the tool ran.", "0.12", ("execute_tool",)),
    Attribute(
        TOOL_ORIGINAL,
        "string",
        "What the model called where the agent has no such tool (gen_ai.tool.name is then _OTHER); content.",
        "get_wether",
        ("execute_tool",),
    ),
    Attribute(USAGE_UNAVAILABLE, "boolean", "True where the provider reported no token usage.", "true", ("chat", "invoke_agent")),
    Attribute(LINK_TYPE, "string", "What a link between spans means: previous_turn.", "previous_turn", ("link",)),
    Attribute(TEST_CASE, "string", "Name of the test case that the turn is part of.", "asks for an order", ("invoke_agent", "evaluate")),
    Attribute(TEST_VERDICT, "string", "Verdict on the test case: pass or fail.", "pass", ("evaluate",)),
)
"""Every ``holodeck.*`` attribute that is ever written."""


def names() -> list[str]:
    """The names of all ``holodeck.*`` attributes."""
    return [attribute.name for attribute in ATTRIBUTES]


def table() -> str:
    """The attributes as a Markdown table."""
    rows = [f"| `{a.name}` | {a.type} | {', '.join(a.spans)} | {a.brief} |" for a in ATTRIBUTES]
    return "\n".join(["| attribute | type | on | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def registry() -> str:
    """The attributes as a registry in OpenTelemetry Weaver's YAML format (definition group)."""
    entries = [
        f"      - id: {a.name}\n        type: {a.type}\n        stability: development\n"
        f"        brief: {a.brief!r}\n        examples: [{a.example}]\n"
        for a in ATTRIBUTES
    ]
    head = (
        "groups:\n  - id: registry.holodeck\n    type: attribute_group\n    display_name: HoloDeck\n"
        "    brief: What HoloDeck adds to the GenAI conventions.\n"
    )
    return head + "    attributes:\n" + "".join(entries)
