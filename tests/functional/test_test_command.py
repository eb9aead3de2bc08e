"""``holodeck test`` through the installed command: cases, reports, baselines, and everything that can be wrong in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from holodeck.lib.yaml_writer import write_yaml
from support.command import Result, Terminal, run
from support.otlp_receiver import OtlpReceiver
from support.scripts import call, scripted_agent, usage
from support.trees import trees_in

LOOK_UP = {"when": {"user": "1042", "round": 1}, "tool_calls": [call("lookup", order_id="1042")], "usage": usage(100, 10), "repeat": True}
SHIPPED = {"when": {"user": "1042", "round": 2}, "text": "It shipped on 24 November.", "usage": usage(120, 10), "repeat": True}
OTHER = {"text": "I do not know.", "usage": usage(50, 5), "repeat": True}
GOOD = {
    "name": "finds an order",
    "input": "Where is order 1042?",
    "expect": {"tools": [{"name": "lookup", "arguments": {"order_id": "1042"}, "times": 1}], "answer": "24 November", "tokens": 900},
}
BAD = {"name": "refunds", "input": "Refund me", "expect": {"tools": ["lookup"], "answer": {"contains": "canary"}}}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent whose own model is a script."""
    return scripted_agent(tmp_path, LOOK_UP, SHIPPED, OTHER)


def write_cases(agent: Path, *cases: dict[str, Any], name: str = "cases.yaml", **more: Any) -> Path:
    """Write a case file beside the agent."""
    path = agent.with_name(name)
    path.write_text(write_yaml({**more, "cases": list(cases)}), encoding="utf-8")
    return path


def test_cases_beside_the_agent_run_and_report(agent: Path, tmp_path: Path) -> None:
    """A green line with tokens, time and trace; a red one with why, what was said and the waterfall; JUnit XML; exit 1."""
    write_cases(agent, GOOD, BAD)
    result = run(["test", agent, "--junit-xml", tmp_path / "report.xml", "--trace-file", tmp_path / "t.jsonl", "-j", "2"])
    assert (result.code, result.err) == (1, "")
    assert re.search(r"^✓ +finds an order +240 +\S+ m?s +[0-9a-f]{32}$", result.out, re.MULTILINE)
    assert re.search(r"^✗ +refunds +55 ", result.out, re.MULTILINE)
    assert "  tools: lookup() was not called: no tool was called\n  answer.contains: 'canary' is not in it; the answer is" in result.out
    assert "  > Refund me\n  invoke_agent support" in result.out
    assert result.out.endswith("1 passed, 1 failed\n")
    suite = ET.parse(tmp_path / "report.xml").getroot()[0]
    assert {k: suite.get(k) for k in ("tests", "failures", "errors")} == {"tests": "2", "failures": "1", "errors": "0"}
    good, bad = suite.findall("testcase")
    assert (good.get("name"), good.find("failure"), bad.get("line")) == ("finds an order", None, "12")
    trace_id = good.find("properties/property[@name='trace_id']").get("value")
    found, refunds = sorted(trees_in(tmp_path / "t.jsonl"), key=lambda tree: tree["attributes"]["holodeck.test.case"])
    assert trace_id in result.out
    assert [node["name"] for node in found["children"]] == ["chat script", "execute_tool lookup", "chat script", "evaluate finds an order"]
    verdicts = [tree["children"][-1] for tree in (found, refunds)]
    assert [verdict["attributes"]["holodeck.test.verdict"] for verdict in verdicts] == ["pass", "fail"]
    assert (verdicts[1]["status"], verdicts[1]["attributes"]["error.type"]) == ("error", "evaluation_failed")
    assert "canary" not in (tmp_path / "t.jsonl").read_text()


def test_verdicts_reach_a_collector(agent: Path) -> None:
    """With --observability the conventions' event stands beside the traces, parented to the root of the evaluated turn."""
    write_cases(agent, GOOD, BAD)
    with OtlpReceiver() as receiver:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "OTEL_TRACES_SAMPLER": "always_off"}
        assert run(["test", agent, "--observability"], env=env).code == 1
        roots = {span.span_id: span for span in receiver.spans if span.name == "invoke_agent support"}
        events = [log for log in receiver.logs if log.event_name == "gen_ai.evaluation.result"]
        verdicts = {log.attributes["gen_ai.evaluation.name"]: log for log in events}
    assert {name: log.attributes["gen_ai.evaluation.score.label"] for name, log in verdicts.items()} == {
        "finds an order": "pass",
        "refunds": "fail",
    }
    for name, log in verdicts.items():
        assert roots[log.span_id].attributes["holodeck.test.case"] == name
    assert verdicts["refunds"].attributes["gen_ai.evaluation.explanation"] == "not as expected: tools, answer.contains"
    assert verdicts["refunds"].attributes["gen_ai.evaluation.score.value"] == pytest.approx(1 / 3)


def test_test_cases_in_the_agent_file_run(agent: Path) -> None:
    """test_cases of the agent file run: expected_tools in any order, ground_truth in the answer; what is for others is said once."""
    data = yaml.safe_load(agent.read_text())
    data["test_cases"] = [
        {"input": "Where is order 1042?", "expected_tools": ["lookup"], "ground_truth": "24 November", "evaluations": [{"metric": "f1"}]},
        {"name": "wrong", "input": "x", "ground_truth": "24 November"},
    ]
    agent.write_text(yaml.safe_dump(data))
    result = run(["test", agent])
    assert result.code == 1
    assert result.out.endswith("1 passed, 1 failed\n")
    assert re.fullmatch(r"warning: \S+agent.yaml:\d+: 'evaluations' of test cases is not acted upon\n", result.err)


def test_repetitions_count_how_often_a_case_passes(agent: Path) -> None:
    """A model that varies: one conversation in two is right, and half is enough where the file says so."""
    replies = [{"text": "It shipped.", "when": {"message": "Where?"}}, {"text": "No idea.", "repeat": True}]
    (agent.parent / "varies.yaml").write_text(yaml.safe_dump({"replies": replies}))
    case = {"name": "knows", "script": "varies.yaml", "input": ["Where?", "Where?"], "expect": {"answer": "shipped"}}
    write_cases(agent, case, GOOD, {**GOOD, "name": "half", "input": ["Where is order 1042?"], "pass_rate": 0.5})
    result = run(["test", agent, "--repeat", "3", "-j", "2"])
    assert result.code == 1
    assert [line.split()[1:3] for line in result.out.splitlines() if re.match(r"✓|✗ +\w+ +\d/", line)] == [
        ["knows", "0/3"], ["finds", "an"], ["half", "3/3"],
    ]  # fmt: skip
    assert run(["test", agent, "-k", "finds*", "--repeat", "2", "--pass-rate", "0.5"]).code == 0


def test_baselines_are_accepted_compared_and_kept(agent: Path, tmp_path: Path) -> None:
    """--update writes; the same run passes; more tokens and other tools fail with both; a tolerance lets them pass; a new case fails."""
    write_cases(agent, GOOD)
    baseline = tmp_path / "baseline.yaml"
    missing = run(["test", agent, "--baseline", baseline])
    assert (missing.code, "--update writes it" in missing.err) == (2, True)
    accepted = run(["test", agent, "--baseline", baseline, "--update"])
    assert (accepted.code, "accepted: 1 cases" in accepted.err) == (0, True)
    assert yaml.safe_load(baseline.read_text())["cases"]["cases.yaml::finds an order"]["tools"] == ["lookup"]
    assert run(["test", agent, "--baseline", baseline, "--tolerance", "duration=500%"]).code == 0
    scripted_agent(
        tmp_path, {**LOOK_UP, "usage": usage(150, 10), "tool_calls": [call("lookup", order_id="1042"), call("where", "b")]}, SHIPPED
    )
    worse = run(["test", agent, "--baseline", baseline])
    assert worse.code == 1
    assert "baseline.tokens: was 240, and is 290 (+21%); accepted are 10% more" in worse.out
    assert "baseline.tools: \n    - lookup\n    + lookup, where" in worse.out
    write_cases(agent, GOOD, {**GOOD, "name": "new"})
    assert "new" in run(["test", agent, "--baseline", baseline, "-k", "new"]).out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "cases:\n  - name: x\n    input: hi\n    expect:\n      answr: x\n",
            "cases.yaml:5: cases[0].expect.answr: unknown key; did you mean 'answer'?",
        ),
        ("cases:\n  - name: x\n", "cases.yaml:2: cases[0].input: the key 'input' is missing"),
        ("cases:\n  - input: hi\n    expect: {tools: [{name: x, times: many}]}\n", "cases.yaml:3: cases[0].expect.tools[0].times"),
        ("cases:\n  - input: hi\n    script: no.yaml\n", "cases.yaml:3: cases[0].script: "),
        ("cases:\n  - input: hi\n    script: bad.yaml\n", "bad.yaml:2: replies[0].txt: unknown key"),
        ("cases:\n  - input: hi\n    recording: script.yaml\n", "this is a script and no recording"),
        ("cases:\n  - input: hi\n    recording: other.yaml\n", "cases.yaml:2: "),
        ("cases:\n  - {input: hi\n", "cases.yaml:"),
        ("replies: []\n", "cases.yaml:1: replies: unknown key"),
        ("cases:\n  - input: ran out\n    script: short.yaml\n", "cases.yaml:2: case 'ran out': "),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_and_exit_2(content: str, words: str, agent: Path) -> None:
    """File, line, key, what to do: never a silent pass."""
    (agent.parent / "bad.yaml").write_text("replies:\n  - txt: x\n")
    (agent.parent / "short.yaml").write_text("replies:\n  - when: {user: other}\n    text: x\n")
    (agent.parent / "other.yaml").write_text("recorded: {agent: sales, model: {provider: openai, name: gpt-x}}\nreplies:\n  - text: x\n")
    path = agent.with_name("cases.yaml")
    path.write_text(content)
    result = run(["test", agent, path])
    assert result.code == 2, result.out + result.err
    assert len(result.err.strip().splitlines()) == 1
    assert words in result.err


def test_no_case_is_exit_5(agent: Path) -> None:
    """As pytest has it: nothing that ran is no success."""
    assert (run(["test", agent]).code, run(["test", agent]).err) == (
        5,
        "error: no case ran: name case files, or write cases.yaml beside the agent\n",
    )
    write_cases(agent, GOOD)
    assert run(["test", agent, "-k", "nothing"]).err == "error: no case ran: -k matches none\n"


def test_options_that_mean_nothing_are_refused(agent: Path, tmp_path: Path) -> None:
    """Before anything runs, in one line that names the option."""
    write_cases(agent, GOOD)
    for arguments in (
        ["--update"],
        ["--tolerance", "tokens=0.1"],
        ["--tolerance", "speed=1", "--baseline", tmp_path / "b.yaml", "--update"],
        ["--junit-xml", tmp_path],
        ["no-such-cases.yaml"],
    ):
        result = run(["test", agent, *arguments])
        assert (result.code, len(result.err.strip().splitlines())) == (2, 1), result.err
        assert str(arguments[0]) in result.err
    assert run(["test", "nowhere.yaml"]).code == 2


def test_a_thousand_cases_take_seconds(agent: Path) -> None:
    """Cases with a tool call and three expectations: at most 8 s of CPU more than one case takes."""
    write_cases(agent, *({**GOOD, "name": f"case {number}"} for number in range(1000)))
    one, all_of_them = run(["test", agent, "-k", "case 7"], timeout=100), run(["test", agent, "-j", "4"], timeout=100)
    assert (all_of_them.code, all_of_them.out.splitlines()[-1]) == (0, "1000 passed")
    assert all_of_them.cpu - one.cpu <= 8


def test_a_terminal_shows_progress_and_colour(agent: Path) -> None:
    """The bar goes when the table comes; with CI set there is none."""
    slow = {"name": "slow", "input": "x", "script": "slow.yaml"}
    (agent.parent / "slow.yaml").write_text(yaml.safe_dump({"replies": [{"text": "x", "delay": 0.4, "repeat": True}]}))
    write_cases(agent, *({**slow, "name": f"slow {n}"} for n in range(4)))
    with Terminal(["test", agent]) as terminal:
        terminal.wait_for("4 passed", timeout=30)
        terminal.wait_exit(timeout=30)
        raw = terminal.raw
    assert b"testing" in raw
    assert b"\x1b[" in raw


def test_the_schemas_know_the_examples() -> None:
    """`holodeck schema cases` and `holodeck schema script` accept what the examples hold, and refuse a wrong key."""
    from jsonschema import Draft202012Validator

    from holodeck.lib.strict_yaml import read_yaml

    support = Path(__file__).parents[2] / "examples" / "support"
    schemas = {kind: Draft202012Validator(json.loads(run(["schema", kind]).out)) for kind in ("cases", "script")}
    for path in (support / "cases").glob("*.yaml"):
        assert [error.message for error in schemas["cases"].iter_errors(read_yaml(path).data)] == []
    for path in [support / "script.yaml", *(support / "recordings").glob("*.yaml"), *(support / "scripts").glob("*.yaml")]:
        assert [error.message for error in schemas["script"].iter_errors(read_yaml(path).data)] == []
    assert not schemas["cases"].is_valid({"cases": [{"input": "x", "expect": {"toolz": []}}]})
    assert schemas["script"].schema["$defs"]["Reply"]["properties"]["expect"]["description"]


def run_in_examples(*arguments: str) -> Result:
    """The command as a user runs it in a checkout."""
    return run(list(arguments), cwd=Path(__file__).parents[2], timeout=100)


def test_the_examples_pass_as_a_user_runs_them() -> None:
    """`holodeck test examples/support/agent.yaml` and `pytest examples/support`."""
    import sys

    cases = run_in_examples("test", "examples/support/agent.yaml", "-j", "4")
    assert (cases.code, cases.out.splitlines()[-1]) == (0, "7 passed"), cases.out
    tests = run(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/support"],
        program=[sys.executable],
        cwd=Path(__file__).parents[2],
        timeout=100,
    )
    assert (tests.code, "9 passed" in tests.out) == (0, True), tests.out + tests.err
