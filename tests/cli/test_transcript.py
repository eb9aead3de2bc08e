"""What /save writes."""

from __future__ import annotations

import asyncio
import io
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from holodeck.cli.commands.transcript import as_json, as_markdown, save
from holodeck.cli.console import Notes
from holodeck.models.chat import Message, MessageRole
from holodeck.models.events import TurnError, TurnResult
from holodeck.models.tool_execution import ToolExecution

_HOSTILE = "before\n```\n# not a heading\n````\n<script>`"


def _conversation(*turns: TurnResult) -> Any:
    config = SimpleNamespace(name="support", model=SimpleNamespace(label="scripted/script"))
    notes = Notes(io.StringIO())
    asked = [f"question {turn.number}" for turn in turns]
    return SimpleNamespace(agent=SimpleNamespace(config=config), asked=asked, turns=list(turns), notes=notes, complain=notes.error)


def _turn(*calls: ToolExecution, error: str = "") -> TurnResult:
    failure = TurnError(error_type="x", message=error) if error else None
    message = Message(role=MessageRole.ASSISTANT, content="Answer.", tool_calls=list(calls))
    return TurnResult(number=1, message=message, tool_calls=list(calls), error=failure)


def _fences(text: str) -> list[str]:
    """What stands in the blocks of code, by CommonMark's rule: a block ends with a fence as long as the one that began it."""
    blocks, rest = [], text
    while opened := re.search(r"^(`{3,})(\w*)\n", rest, re.MULTILINE):
        body, _, rest = rest[opened.end() :].partition(f"\n{opened.group(1)}\n")
        blocks.append(body)
    return blocks


def test_arguments_and_results_of_tools_are_kept():
    """Each tool has its arguments and what it returned, or why it failed; the answer follows."""
    worked = ToolExecution(tool_name="lookup", parameters={"id": 7, "deep": {"a": ["ü"]}}).running().succeeded("the result", 0.1)
    broken = ToolExecution(tool_name="fails").running().failed("no way", 0.1)
    text = as_markdown(_conversation(_turn(worked, broken)))
    arguments, result, reason = _fences(text)
    assert json.loads(arguments) == worked.parameters
    assert (result, reason) == ("the result", "no way")
    assert text.index("### Tool `lookup`\n") < text.index("### Tool `fails` (failed)\n") < text.index("\nAnswer.\n")


def test_no_result_ends_its_block():
    """However many backticks are in it, what a tool returned stays code."""
    call = ToolExecution(tool_name="odd`name", parameters={"text": _HOSTILE}).running().succeeded(_HOSTILE, 0.1)
    text = as_markdown(_conversation(_turn(call)))
    arguments, result = _fences(text)
    assert json.loads(arguments) == {"text": _HOSTILE}
    assert result == _HOSTILE
    assert "### Tool `` odd`name ``\n" in text


def test_an_error_of_many_lines_is_a_block():
    """The lines of a diff stay lines."""
    assert _fences(as_markdown(_conversation(_turn(error="differs:\n  - a\n  + b")))) == ["differs:\n  - a\n  + b"]
    assert "\n*no answer*\n" in as_markdown(_conversation(_turn(error="no answer")))


@pytest.mark.parametrize("name", ["x.json", "x.md"])
def test_what_utf8_cannot_hold_is_written_all_the_same(tmp_path, name):
    """Half a character, as a tool may return it, is no reason to lose the rest."""
    conversation = _conversation(_turn(ToolExecution(tool_name="t").running().succeeded("a", 0.1)))
    conversation.asked[0] = "half \ud83d a character"
    asyncio.run(save(conversation, str(tmp_path / name)))
    assert "half \\ud83d a character" in (tmp_path / name).read_text(encoding="utf-8")


def test_the_json_is_that_of_the_turns():
    """What was asked stands beside the turn."""
    (turn,) = json.loads(as_json(_conversation(_turn())))["turns"]
    assert (turn["turn"], turn["asked"], turn["message"]["content"]) == (1, "question 1", "Answer.")
