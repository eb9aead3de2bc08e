"""The command records a real provider's answers and plays them again."""

from __future__ import annotations

import json
from pathlib import Path

from support.agents import write_agent
from support.command import Result, run
from support.model_server import Call, ModelServer, Reply
from support.trees import trees_in


def chat(agent: Path, *args: str | Path, message: str = "Where is order 1042?") -> Result:
    """One turn."""
    return run(["chat", agent, *args, "-m", message])


def test_what_was_recorded_plays_without_the_provider(tmp_path: Path) -> None:
    """The same answer and the same tree of spans, with the server gone and no tool run; another question fails with a diff."""
    with ModelServer() as server:
        server.reply(Reply("Let me look.", tool_calls=[Call("lookup_order", {"order_id": "1042"})]), Reply("It shipped."))
        agent = write_agent(tmp_path, server)
        live = chat(agent, "--record", tmp_path / "rec.yaml", "--trace-file", tmp_path / "live.jsonl")
        assert live.code == 0, live.err
        assert f"recorded: {tmp_path / 'rec.yaml'}" in live.err
    (tmp_path / "tools.py").write_text((tmp_path / "tools.py").read_text().replace('"shipped"', '"lost"'))
    recording = ("--model", f"scripted/{tmp_path / 'rec.yaml'}", "--replay-tools")
    again = chat(agent, *recording, "--trace-file", tmp_path / "again.jsonl")
    assert (again.code, again.out) == (0, live.out), again.err
    assert trees_in(tmp_path / "again.jsonl") == trees_in(tmp_path / "live.jsonl")
    other = chat(agent, *recording, message="Where is order 1043?")
    assert other.code == 1
    lines = [line.strip() for line in other.err.splitlines()]
    place = lines.index("messages[0].text:")
    assert lines[place - 1].startswith("error: ")
    assert lines[place + 1 : place + 3] == ["- Where is order 1042?", "+ Where is order 1043?"]
    (turn,) = map(json.loads, chat(agent, *recording, "--json", message="Where is order 1043?").out.splitlines())
    assert "messages[0].text:\n  - Where is order 1042?\n  + Where is order 1043?" in turn["error"]["message"]


def test_no_turn_is_no_recording(tmp_path: Path) -> None:
    """That there is none is one line, without a file; a recording that was there is left as it was."""
    agent, rec = write_agent(tmp_path), tmp_path / "rec.yaml"
    for arguments, stdin in (([], ""), (["-m", "/help"], None), (["-m", "/call lookup_order order_id=7"], None), (["-m", ""], None)):
        result = run(["chat", agent, "--record", rec, *arguments], stdin)
        assert result.err.splitlines()[-1] == f"nothing was recorded, since no model was asked: {rec} is not written"
        assert not rec.exists()
    before = "recorded:\n  agent: x\nreplies: []\n"
    rec.write_text(before, encoding="utf-8")
    assert f"nothing was recorded, since no model was asked: {rec} is left as it was\n" in run(["chat", agent, "--record", rec], "").err
    assert rec.read_text(encoding="utf-8") == before


def test_what_cannot_be_recorded_is_said_before_the_first_turn(tmp_path: Path) -> None:
    """A directory, --redact alone, --replay-tools without a script: one line, exit 2."""
    agent = write_agent(tmp_path)
    (tmp_path / "device").symlink_to("/dev/null")
    for arguments in (["--record", tmp_path], ["--record", tmp_path / "device"], ["--redact"], ["--replay-tools"]):
        result = chat(agent, *arguments)
        assert (result.code, len(result.err.strip().splitlines())) == (2, 1), result.err
        assert str(arguments[0]) in result.err
    assert (tmp_path / "device").is_char_device()
