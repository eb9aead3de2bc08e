"""Recording and replaying with a real model endpoint: the same tree of spans, and a diff where a request is another."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holodeck import Session, load_agent
from holodeck.backends.script import load_script
from holodeck.errors import ConfigError, SettingError
from holodeck.models.events import TurnResult
from holodeck.recording import record, replay
from support.agents import write_agent
from support.model_server import Call, Fault, ModelServer, Reply, Usage
from support.trees import trees_in


def chat(file: Path, *messages: str, to: Path | None = None, redact: bool = False, tools: bool = False, **options: Any) -> list[TurnResult]:
    """One conversation, recorded to ``to`` if that is given."""

    async def talk() -> list[TurnResult]:
        agent = load_agent(file, environ={"PATH": "/usr/bin:/bin"}, **options)
        replay(agent, tools=tools)
        recorder = record(agent, to, redact=redact) if to else None
        async with agent, Session(agent) as session:
            results = [await session.send(message) for message in messages]
        if recorder:
            recorder.save()
        return results

    return asyncio.run(talk())


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A real model endpoint."""
    with ModelServer() as running:
        yield running


QUESTIONS = ("Where is 1042?", "Thanks")


@pytest.fixture
def recorded(tmp_path: Path, server: ModelServer) -> tuple[Path, Path]:
    """An agent, and the recording of two turns with it: a failed and a good tool, cached tokens, a reply in pieces."""
    calls = [Call("lookup_order", {"order_id": "1042"}), Call("fails", {"reason": "no"})]
    server.reply(
        Reply(text="Let me look.", tool_calls=calls, usage=Usage(100, 20, cached=64, reasoning=8)),
        Reply(text="It shipped with the parcel 0123.", chunks=7, usage=(150, 12)),
        Reply(text="You are welcome.", usage=None, finish_reason="length"),
    )
    agent = write_agent(tmp_path, server)
    results = chat(agent, *QUESTIONS, to=tmp_path / "rec.yaml", trace_file=tmp_path / "live.jsonl")
    assert [result.error for result in results] == [None, None]
    return agent, tmp_path / "rec.yaml"


def test_a_recording_gives_the_same_tree_of_spans(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    """Names, kinds, statuses and every attribute are those of the real provider."""
    agent, recording = recorded
    chat(agent, *QUESTIONS, model=f"scripted/{recording}", trace_file=tmp_path / "again.jsonl", capture_content=True)
    chat(agent, *QUESTIONS, model=f"scripted/{recording}", trace_file=tmp_path / "again2.jsonl")
    live = trees_in(tmp_path / "live.jsonl")
    names = [child["name"] for child in live[0]["children"]]
    assert names == ["chat test-model", "execute_tool lookup_order", "execute_tool fails", "chat test-model"]
    assert live[0]["children"][0]["attributes"]["gen_ai.provider.name"] == "openai"
    assert trees_in(tmp_path / "again2.jsonl") == live
    assert trees_in(tmp_path / "again.jsonl") != live


@pytest.mark.parametrize("provider", ["anthropic", "ollama", "azure_openai"])
def test_every_provider_can_be_recorded(provider: str, tmp_path: Path, server: ModelServer) -> None:
    """What a provider reports in its own way (ids, cache, finish reasons) is on the spans of the replay, too."""
    usage = Usage(100, 20, cached=30, cache_write=20) if provider == "anthropic" else Usage(100, 20)
    server.reply(Reply("Hm.", tool_calls=[Call("lookup_order", {"order_id": "1"})], usage=usage), Reply("Shipped.", usage=usage))
    agent = write_agent(tmp_path, server, provider=provider)
    chat(agent, "Where?", to=tmp_path / "rec.yaml", trace_file=tmp_path / "live.jsonl")
    (result,) = chat(agent, "Where?", model=f"scripted/{tmp_path / 'rec.yaml'}", trace_file=tmp_path / "again.jsonl")
    assert result.error is None
    assert _without_ids(trees_in(tmp_path / "again.jsonl")) == _without_ids(trees_in(tmp_path / "live.jsonl"))


def _without_ids(trees: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A provider that sends no ids gets ours, which differ from run to run."""
    for tree in trees:
        for node in (tree, *tree["children"]):
            node["attributes"] = {k: v for k, v in node["attributes"].items() if k not in ("gen_ai.tool.call.id", "gen_ai.response.id")}
    return trees


def test_a_recording_is_a_script_with_what_was_asked_and_what_tools_returned(recorded: tuple[Path, Path]) -> None:
    """Pieces, usage, ids, finish reasons, results of tools and the requests stand in the file, readable by its owner only."""
    _, recording = recorded
    script = load_script(recording)
    first, second, third = script.replies
    assert script.recorded is not None
    assert (script.recorded.agent, script.recorded.model.provider, script.recorded.model.name) == ("support", "openai", "test-model")
    assert first.usage is not None
    counts = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 64, "reasoning_tokens": 8}
    assert first.usage.model_dump(exclude_none=True) == counts
    assert json.loads(first.tool_calls[0].result or "") == {"order_id": "1042", "status": "shipped"}
    assert (first.tool_calls[1].error_type, first.tool_calls[1].result) == ("ValueError", None)
    assert (second.chunks, third.usage, third.finish_reason) == (7, None, "length")
    assert second.expect is not None
    assert second.expect.messages is not None
    assert [(m.role, m.name) for m in second.expect.messages] == [("tool", "lookup_order"), ("tool", "fails")]
    assert recording.stat().st_mode & 0o777 == 0o600


def test_a_changed_agent_fails_with_a_diff(recorded: tuple[Path, Path]) -> None:
    """New instructions and a tool that is described in another way make other requests."""
    agent, recording = recorded
    text = agent.read_text().replace("You answer questions about orders.", "You answer in French.")
    agent.write_text(text.replace("Look up an order by its id.", "Finds an order."))
    (result,) = chat(agent, QUESTIONS[0], model=f"scripted/{recording}")
    assert result.error is not None
    assert result.error.error_type == "request_differs"
    place, *differences = result.error.message.splitlines()
    assert place.startswith(f"{recording}:")
    assert differences[:4] == [
        "instructions:",
        "  - You answer questions about orders.",
        "  + You answer in French.",
        "tool lookup_order:",
    ]
    assert [line for line in differences if line.startswith(("  - ", "  + "))][2:] == [
        '  -  "description": "Look up an order by its id.",',
        '  +  "description": "Finds an order.",',
    ]


def test_a_recording_that_ends_says_so(recorded: tuple[Path, Path]) -> None:
    """One question more than was recorded: the file, the request, what to do."""
    agent, recording = recorded
    *_, result = chat(agent, *QUESTIONS, "And 1043?", model=f"scripted/{recording}")
    assert result.error is not None
    assert result.error.message == (
        f"{recording}: the script has no reply left for request 1 of this turn ('And 1043?'): add one to its 'replies'"
    )


def test_a_recording_of_another_agent_is_refused(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    """It stops before the first turn, with one line that names both agents."""
    _, recording = recorded
    with pytest.raises(ConfigError, match="recording of the agent 'support', and the agent here is 'sales'"):
        load_agent(write_agent(tmp_path / "other", name="sales"), model=f"scripted/{recording}")


def test_tools_are_replayed_on_request(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    """Results and failures come from the recording and nothing is run; with live tools a new result is a request that differs."""
    agent, recording = recorded
    (tmp_path / "tools.py").write_text((tmp_path / "tools.py").read_text().replace('"shipped"', '"lost"'))
    (live,) = chat(agent, QUESTIONS[0], model=f"scripted/{recording}")
    assert live.error is not None
    assert "lost" in live.error.message
    chat(agent, *QUESTIONS, model=f"scripted/{recording}", tools=True, trace_file=tmp_path / "again.jsonl")
    assert trees_in(tmp_path / "again.jsonl") == trees_in(tmp_path / "live.jsonl")


def test_tools_of_a_server_are_replayed_without_the_server(tmp_path: Path, server: ModelServer) -> None:
    """An MCP server is recorded once; when tools are replayed it is not started."""
    marker, starter = tmp_path / "started", tmp_path / "serve.py"
    source = Path(__file__).parents[1] / "tools" / "mcp_example_server.py"
    starter.write_text(
        f"import pathlib, runpy\npathlib.Path({str(marker)!r}).touch()\nrunpy.run_path({str(source)!r}, run_name='__main__')\n"
    )
    tool = {"name": "ex", "type": "mcp", "command": sys.executable, "args": [str(starter), "stdio"]}
    agent = write_agent(tmp_path, server, tools=[tool])
    server.reply(Reply(tool_calls=[Call("ex-ok", {"text": "ha", "times": 2})]), Reply(text="Haha."))
    (live,) = chat(agent, "Laugh", to=tmp_path / "rec.yaml", trace_file=tmp_path / "live.jsonl")
    assert live.tool_calls[0].result == "haha"
    marker.unlink()
    (again,) = chat(agent, "Laugh", model=f"scripted/{tmp_path / 'rec.yaml'}", tools=True, trace_file=tmp_path / "again.jsonl")
    assert (again.error, again.tool_calls[0].result, marker.exists()) == (None, "haha", False)
    assert trees_in(tmp_path / "again.jsonl") == trees_in(tmp_path / "live.jsonl")


def test_prompt_tools_side_by_side_find_their_own_replies(tmp_path: Path, server: ModelServer) -> None:
    """Requests of prompt tools are told apart by what they ask, in whatever order they come; their own model is played, too."""
    own = {"provider": "openai", "name": "other-model", "endpoint": server.url, "api_key": "k"}
    tools = [
        {"name": "sum_up", "type": "prompt", "template": "Sum up: {{text}}"},
        {"name": "praise", "type": "prompt", "template": "Praise: {{text}}", "model": own},
    ]
    agent = write_agent(tmp_path, server, tools=tools)

    def respond(request: Any) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "user" and "Where" in last["content"]:
            return Reply(tool_calls=[Call("sum_up", {"text": "A"}), Call("praise", {"text": "B"}), Call("sum_up", {"text": "C"})])
        return Reply(text=last["content"] if last["role"] == "user" else "Done.")

    server.respond = respond
    (live,) = chat(agent, "Where?", to=tmp_path / "rec.yaml", trace_file=tmp_path / "live.jsonl")
    asked = len(server.requests)
    (again,) = chat(agent, "Where?", model=f"scripted/{tmp_path / 'rec.yaml'}", tools=True, trace_file=tmp_path / "again.jsonl")
    assert (again.error, len(server.requests)) == (None, asked)
    assert (
        [call.result for call in again.tool_calls] == [call.result for call in live.tool_calls] == ["Sum up: A", "Praise: B", "Sum up: C"]
    )
    assert _without_ids(trees_in(tmp_path / "again.jsonl")) == _without_ids(trees_in(tmp_path / "live.jsonl"))


def test_secrets_are_hidden_on_request_and_the_recording_still_plays(tmp_path: Path, server: ModelServer) -> None:
    """No secret of the user, the model or a tool is in the file, and a request with the secret in it still fits."""
    server.reply(Reply(tool_calls=[Call("weather", {"city": "anna@example.com"})]), Reply(text="Your token sk-abcdefghijklmnop1234."))
    agent = write_agent(tmp_path, server, observability={"traces": {"redaction_patterns": ["canary-[0-9]+"]}})
    question = "My password: hunter2, mail me at anna@example.com about canary-17"
    chat(agent, question, to=tmp_path / "rec.yaml", redact=True)
    text = (tmp_path / "rec.yaml").read_text()
    assert not [secret for secret in ("hunter2", "anna@example.com", "sk-abc", "canary-17") if secret in text]
    (again,) = chat(agent, question, model=f"scripted/{tmp_path / 'rec.yaml'}", tools=True)
    assert again.error is None
    assert again.message is not None
    assert again.message.content == "Your token [redacted]."


SECRETIVE = '''
def look(text: str = "anna@example.com", password: str = "hunter2hunter2") -> str:
    """Asks bob@example.com with sk-abcdefghij0123456789."""
    return '{"p\\\\u0061ssword": "hunter2", "keys": {"api_keys": ["topsecret"]}}'
'''


def test_secrets_of_tools_are_hidden_and_the_recording_still_plays(tmp_path: Path, server: ModelServer) -> None:
    """What a tool says of itself, its defaults, arguments in lists, and results that are JSON."""
    (tmp_path / "secretive.py").write_text(SECRETIVE, encoding="utf-8")
    tool = {"name": "look", "type": "function", "file": "secretive.py", "function": "look"}
    agent = write_agent(tmp_path, server, tools=[tool])
    server.reply(Reply(tool_calls=[Call("look", {"text": "x"})]), Reply(text="Done."))
    chat(agent, "Look", to=tmp_path / "rec.yaml", redact=True)
    text = (tmp_path / "rec.yaml").read_text()
    assert not [secret for secret in ("hunter2", "anna@", "bob@", "sk-abc", "topsecret") if secret in text]
    (again,) = chat(agent, "Look", model=f"scripted/{tmp_path / 'rec.yaml'}")
    assert again.error is None


def test_a_failure_of_the_provider_is_recorded_and_played(tmp_path: Path, server: ModelServer) -> None:
    """The same error type on the same spans, and the same words."""
    server.reply(Fault(status=429), Fault.reset_after(3))
    agent = write_agent(tmp_path, server)
    live = chat(agent, "a", "b", to=tmp_path / "rec.yaml", trace_file=tmp_path / "live.jsonl")
    again = chat(agent, "a", "b", model=f"scripted/{tmp_path / 'rec.yaml'}", trace_file=tmp_path / "again.jsonl")
    assert [result.error for result in again] == [result.error for result in live]
    assert [t["attributes"]["error.type"] for t in trees_in(tmp_path / "again.jsonl")] == ["429", "connection_reset"]


def test_what_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    """A directory, and a file in a directory that is not there."""
    agent = load_agent(write_agent(tmp_path))
    for path in (tmp_path, tmp_path / "no" / "x.yaml"):
        with pytest.raises(SettingError, match="--record"):
            record(agent, path)


def test_a_session_without_answers_leaves_an_older_recording_alone(recorded: tuple[Path, Path]) -> None:
    """Nothing was asked, so nothing is written."""
    agent, recording = recorded
    before = recording.read_text()
    chat(agent, to=recording)
    assert recording.read_text() == before
