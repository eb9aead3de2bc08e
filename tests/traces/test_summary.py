"""A trace in figures."""

from holodeck.traces import TraceSummary, Usage, summarise, usage_of
from traces.spans import START, TRACE, chat, record, tree, turn


def test_a_turn_in_figures() -> None:
    """Tokens are summed over the model requests, tools and errors are counted, the turn is named."""
    assert summarise(turn()) == TraceSummary(
        trace_id=TRACE,
        name="invoke_agent support",
        start=START,
        duration=2.41,
        spans=5,
        input_tokens=1924,
        output_tokens=96,
        tool_calls=2,
        errors=1,
        conversation_id="c-1",
        turn=3,
        requests=2,
    )


def test_totals_on_other_spans_are_not_added() -> None:
    """Some writers repeat the sum on the agent's span; it is counted once."""
    total = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}
    root = tree(record(1, None, "invoke_agent a", 0, 9, attributes=total), chat(2, 1, 1, 2, (10, 5)))
    assert (summarise(root).input_tokens, summarise(root).output_tokens) == (10, 5)


def test_one_unknown_usage_makes_the_sum_unknown() -> None:
    """A request that does not say what it took is not taken for 0."""
    root = tree(record(1, None, "invoke_agent a", 0, 9), chat(2, 1, 1, 2, (10, 5)), chat(3, 1, 3, 4))
    assert (summarise(root).input_tokens, summarise(root).output_tokens) == (None, None)


def test_no_request_takes_no_tokens() -> None:
    """Where no model was asked, nothing is unknown."""
    summary = summarise(tree(record(1, None, "GET /", 0, 9)))
    assert (summary.requests, summary.input_tokens, summary.turn, summary.conversation_id) == (0, 0, None, "")


def test_embeddings_have_no_output() -> None:
    """An embeddings request reports no output tokens, and none are missing."""
    attributes = {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 7}
    assert usage_of([record(1, None, "embeddings m", 0, 1, attributes=attributes)]) == Usage(requests=1, input_tokens=7)


def test_an_mcp_request_is_part_of_its_tool_call() -> None:
    """The client span of an MCP server carries the tool's operation, but is no second call; on its own it is one."""
    mcp = {"gen_ai.operation.name": "execute_tool", "mcp.method.name": "tools/call"}
    inside = tree(record(1, None, "execute_tool read", 0, 9), record(2, 1, "tools/call read", 1, 8, attributes=mcp))
    assert summarise(inside).tool_calls == 1
    assert summarise(tree(record(2, None, "tools/call read", 1, 8, attributes=mcp))).tool_calls == 1


def test_a_conversation_is_found_below_the_root() -> None:
    """Other people's roots may be a web request; the conversation is then named further down."""
    root = tree(record(1, None, "POST /chat", 0, 9), chat(2, 1, 1, 2, conversation__id="c-7"))
    assert summarise(root).conversation_id == "c-7"
