"""What a session takes: ``/usage``, the cost in the footer, and budgets."""

from __future__ import annotations

import json
import re

import pytest

from support.agents import write_agent
from support.command import run
from support.model_replies import Reply, Usage
from support.model_server import ModelServer
from support.scripts import scripted_agent, usage

_PRICE = {"input": 1.0, "output": 10.0, "cached_input": 0.5}
_MODEL = {"provider": "scripted", "name": "m", "script": "script.yaml"}
_PROMPT = {"name": "shorten", "type": "prompt", "template": "Shorten: {{text}}"}


def _replies(number: int = 3) -> list[dict]:
    return [{"text": f"answer {n}", "usage": usage(1000, 100) | {"cached_tokens": 400, "reasoning_tokens": 30}} for n in range(number)]


def _priced(directory, *replies, **changes):
    return scripted_agent(directory, *replies, model=_MODEL | {"price": _PRICE}, **changes)


def test_usage_by_turn_model_and_tool(tmp_path):
    """Each turn, model and prompt tool has its line, and the session; cached and reasoning tokens stand apart, cached ones cost once."""
    call = {"tool_calls": [{"name": "shorten", "arguments": {"text": "long"}}], "usage": usage(2000, 200)}
    agent = _priced(tmp_path, call, *_replies(), tools=[_PROMPT])
    result = run(["chat", agent, "-m", "one", "-m", "two", "-m", "/usage"])
    assert result.code == 0
    table = result.err[result.err.index("turn 1  ") :]
    rows = dict(re.findall(r"^(turn \d|model m|tool shorten|session) +(.+)$", table, re.MULTILINE))
    part = "1,000 + 100 tokens (400 cached, 30 reasoning) · 1 request · $0.0018"
    assert rows == {
        "turn 1": "4,000 + 400 tokens (800 cached, 60 reasoning) · 3 requests · $0.0076",
        "turn 2": part,
        "model m": "5,000 + 500 tokens (1,200 cached, 90 reasoning) · 4 requests · $0.0094",
        "tool shorten": part,
        "session": "5,000 + 500 tokens (1,200 cached, 90 reasoning) · 4 requests · $0.0094",
    }


def test_a_turn_without_a_model_has_no_row(tmp_path):
    """A tool that was called by hand takes nothing; the other turns keep their numbers."""
    agent = _priced(tmp_path, *_replies())
    result = run(["chat", agent, "-m", "/call where", "-m", "/usage", "-m", "one", "-m", "/usage"])
    assert "nothing has been asked yet" in result.err
    assert re.findall(r"^turn (\d) .*request", result.err, re.MULTILINE) == ["2"]


def test_the_footer_has_the_cost(tmp_path):
    """Where it is known; the JSON has it, too."""
    agent = _priced(tmp_path, *_replies())
    assert "1,000 + 100 tokens · $0.0018 · trace" in run(["chat", agent, "-m", "one"]).err
    assert json.loads(run(["chat", agent, "--json", "-m", "one"]).out)["cost_usd"] == pytest.approx(0.0018)


def test_an_unknown_price_is_no_price(tmp_path):
    """Neither footer nor table nor JSON makes an amount up."""
    agent = scripted_agent(tmp_path, *_replies())
    result = run(["chat", agent, "-m", "one", "-m", "/usage"])
    assert "$" not in result.err
    assert re.search(r"^session +1,000 \+ 100 tokens \(400 cached, 30 reasoning\) · 1 request$", result.err, re.MULTILINE)
    assert json.loads(run(["chat", agent, "--json", "-m", "one"]).out)["cost_usd"] is None


def test_usage_before_anything_was_asked(tmp_path):
    """It says so."""
    assert "nothing has been asked yet" in run(["chat", _priced(tmp_path, *_replies()), "-m", "/usage"]).err


def test_a_name_from_the_provider_is_harmless(tmp_path):
    """The name of the model that answered comes from outside."""
    with ModelServer() as server:
        server.reply(Reply("hi", model="evil\x1b[2J\u202ename", usage=Usage(3, 4)))
        result = run(["chat", write_agent(tmp_path, server), "-m", "one", "-m", "/usage"])
    assert "model evil" in result.err
    assert "\x1b" not in result.err
    assert "\u202e" not in result.err


@pytest.mark.parametrize(
    ("flag", "limit", "said"),
    [
        ("--max-cost", "0.003", "This session has taken $0.0036 of its $0.0030 and ends here (--max-cost sets it)."),
        ("--max-tokens", "2200", "This session has taken 2,200 of its 2,200 tokens and ends here (--max-tokens sets it)."),
    ],
)
def test_a_budget_ends_the_session_politely(tmp_path, flag, limit, said):
    """The turn that reaches it is shown whole, the next one is not begun, and that is no failure."""
    agent = _priced(tmp_path, *_replies(5))
    result = run(["chat", agent, flag, limit], "one\ntwo\nthree\nfour\n")
    assert (result.code, result.out) == (0, "answer 0\nanswer 1\n")
    assert result.err.splitlines()[-1] == said


def test_a_budget_that_cannot_be_kept_is_refused(tmp_path):
    """Without a price dollars cannot be counted: one line, before anything is sent."""
    result = run(["chat", scripted_agent(tmp_path, *_replies()), "--max-cost", "1", "-m", "one"])
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: --max-cost: [^\n]*scripted/m?[^\n]*price[^\n]*--max-tokens\n", result.err)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "cheap"])
def test_a_budget_is_an_amount(tmp_path, value):
    """Anything else is refused in one line."""
    result = run(["chat", _priced(tmp_path, *_replies()), "--max-cost", value, "-m", "one"])
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_a_turn_that_nobody_counted_ends_a_session_with_a_budget(tmp_path):
    """What is left of the budget could not be said any more."""
    agent = _priced(tmp_path, {"text": "one"}, *_replies())
    result = run(["chat", agent, "--max-tokens", "5000"], "a\nb\n")
    assert (result.code, result.out) == (0, "one\n")
    assert "did not say how many tokens it took" in result.err


def test_a_failed_request_is_not_held_against_a_budget(tmp_path):
    """A turn that fails before anything was answered took nothing that is known: the session goes on."""
    agent = _priced(tmp_path, {"fault": {"status": 503}}, *_replies())
    result = run(["chat", agent, "--max-cost", "1"], "a\nb\n")
    assert (result.code, result.out) == (1, "answer 0\n")
    assert "ends here" not in result.err


def test_the_price_of_another_model_is_dropped(tmp_path):
    """--model names another model: the file's price is not its price."""
    agent = _priced(tmp_path, *_replies())
    result = run(["chat", agent, "--model", f"scripted/{tmp_path / 'script.yaml'}", "-m", "one"])
    assert result.code == 0
    assert "$" not in result.err
