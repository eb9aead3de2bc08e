"""``holodeck test`` through the installed command: cases, reports, baselines, and everything that can be wrong in a file."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from holodeck.lib.yaml_writer import write_yaml
from support.command import HOLODECK, Process, Result, Terminal, run
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
    path = agent.parent / name
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


FLIPS = """
import itertools
_sides = itertools.cycle(["heads", "tails"])

def flip() -> str:
    "Another side each time."
    return next(_sides)
"""


def test_repetitions_count_how_often_a_case_passes(tmp_path: Path) -> None:
    """What passes every other time fails, unless the file or the option says that half is enough; three quarters are not."""
    (tmp_path / "flips.py").write_text(FLIPS)
    tool = {"name": "flip", "type": "function", "file": "flips.py", "function": "flip"}
    replies = [{"when": {"round": 1}, "tool_calls": [call("flip")], "repeat": True}, {"text": "Flipped.", "repeat": True}]
    agent = scripted_agent(tmp_path, *replies, tools=[tool])
    heads = {"name": "heads", "input": "Flip.", "expect": {"tools": [{"name": "flip", "result": "heads"}]}}
    write_cases(agent, heads, {**heads, "name": "half", "pass_rate": 0.5}, {"name": "any", "input": "Flip."})
    result = run(["test", agent, "--repeat", "4", "-j", "1"])
    assert result.code == 1
    assert [line.split()[:3] for line in result.out.splitlines() if re.match(r"[✓✗] +\w+ +\d/", line)] == [
        ["✗", "heads", "2/4"], ["✓", "half", "2/4"], ["✓", "any", "4/4"],
    ]  # fmt: skip
    assert "result: expected something with 'heads' in it" in result.out
    codes = {rate: run(["test", agent, "-k", "heads", "--repeat", "4", "--pass-rate", rate]).code for rate in ("0.5", "0.75")}
    assert codes == {"0.5": 0, "0.75": 1}


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
    more = run(["test", agent, "--baseline", baseline, "--tolerance", "tokens=50%"])
    assert (more.code, "baseline.tokens" in more.out, "baseline.tools" in more.out) == (1, False, True)
    write_cases(agent, GOOD, {**GOOD, "name": "new"})
    new = run(["test", agent, "--baseline", baseline, "-k", "new"])
    assert (new.code, "baseline: this case was never accepted: --update accepts it" in new.out) == (1, True)


def test_a_tolerance_of_the_command_line_leaves_the_others_of_the_file(agent: Path, tmp_path: Path) -> None:
    """Of what an option does not name, the file's part counts, when it is compared and when it is written."""
    write_cases(agent, GOOD)
    baseline = tmp_path / "baseline.yaml"
    case = {"tools": ["lookup"], "tokens": 200, "duration": 1000.0}
    baseline.write_text(write_yaml({"tolerance": {"tokens": 0.5, "cost": 0.3}, "cases": {"cases.yaml::finds an order": case}}))
    assert run(["test", agent, "--baseline", baseline, "--tolerance", "duration=3"]).code == 0
    assert run(["test", agent, "--baseline", baseline, "--tolerance", "tokens=0.1"]).code == 1
    assert run(["test", agent, "--baseline", baseline, "--tolerance", "duration=3", "--update"]).code == 0
    assert yaml.safe_load(baseline.read_text())["tolerance"] == {"tokens": 0.5, "cost": 0.3, "duration": 3.0}


def test_each_case_has_its_own_place_in_a_baseline(agent: Path, tmp_path: Path) -> None:
    """Files of one name in two directories, cases of one name in a file: none takes another's place, from wherever it is run."""
    hello = {"name": "same", "input": "Hello"}
    write_cases(agent, hello, hello, {**hello, "name": "same (2)"})
    (agent.parent / "more").mkdir()
    write_cases(agent, GOOD, name="more/cases.yaml")
    baseline = tmp_path / "baseline.yaml"
    files = ["cases.yaml", "more", "more/cases.yaml", "./cases.yaml"]
    result = run(["test", "agent.yaml", *files, "--baseline", baseline, "--update"], cwd=agent.parent)
    assert (result.code, result.out.splitlines()[-1]) == (0, "4 passed"), result.out + result.err
    names = ["cases.yaml::same", "cases.yaml::same (2)", "cases.yaml::same (3)", "more/cases.yaml::finds an order"]
    assert sorted(yaml.safe_load(baseline.read_text())["cases"]) == names
    again = run(["test", agent, agent.parent / "more", "--baseline", baseline, "--tolerance", "duration=99"])
    assert again.code == 0, again.out


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
        ("cases:\n  - input: 20\n", 'cases.yaml:2: cases[0].input: must be text, and YAML reads it as a number: quote it: "20"'),
        ("cases:\n  - input: true\n", 'must be text, and YAML reads it as true or false: quote it: "true"'),
        ("cases:\n  - input: ~\n", "cases.yaml:2: cases[0].input: there is no value: write one, or take the key out"),
        ("cases:\n  - input:\n", "cases.yaml:2: cases[0].input: there is no value"),
        ("cases:\n  - input: [a, 1.10]\n", 'cases[0].input[1]: must be text, and YAML reads it as a number: quote it: "1.10"'),
        ("cases:\n  - input: {a: b}\n", "cases[0].input: must be text, or a list of turns"),
        ("cases:\n  - input: []\n", "cases[0].input: needs at least 1 entry"),
        ("cases:\n  - input: '  '\n", "cases[0].input: must be text that is not empty"),
        ('cases:\n  - input: "a\\ab"\n', "cases[0].input: The message contains the control character U+0007"),
        (f"cases:\n  - input: {'x' * 10_001}\n", "cases[0].input: The message has 10,001 characters; the limit is 10,000"),
        ("cases:\n  - {name: ' ', input: hi}\n", "cases[0].name: must be text that is not empty"),
        ("cases:\n  - {name: 20, input: hi}\n", 'cases[0].name: must be text, and YAML reads it as a number: quote it: "20"'),
        (
            "cases:\n  - input: hi\n    expect: {answer: 20}\n",
            'cases[0].expect.answer: must be text, and YAML reads it as a number: quote it: "20"',
        ),
        (
            "cases:\n  - input: hi\n    expect: {answer: {excludes: [a, no, 3]}}\n",
            'expect.answer.excludes[2]: must be text, and YAML reads it as a number: quote it: "3"',
        ),
        (
            "cases:\n  - input: hi\n    expect: {tools: [404]}\n",
            'expect.tools[0]: must be text, and YAML reads it as a number: quote it: "404"',
        ),
        (
            "cases:\n  - input: hi\n    expect:\n      tools:\n        - name: x\n          arguments: {a: {pattern: 3}}\n",
            'cases.yaml:6: cases[0].expect.tools[0].arguments.a.pattern: must be text, and YAML reads it as a number: quote it: "3"',
        ),
        ("cases:\n  - input: hi\n    expect: {never: [~]}\n", 'never[0]: must be text, and YAML reads it as nothing: quote it: "~"'),
        ("cases:\n  - input: hi\n    expect: {answer: null}\n", "expect.answer: there is no value: write one, or take the key out"),
        ("cases:\n  - input: [{user: hi, expect: }]\n", "cases[0].input[0].expect: there is no value"),
        ("cases:\n  - input: hi\n    expect: {answer: {pattern: 'a(?!b)'}}\n", "RE2, which has no look-around and no back-references: "),
        ("cases: &a [{input: hi}]\nprices: *a\n", "cases.yaml:2: prices: must be a mapping"),
        ("", "cases.yaml: the file is empty"),
        ("cases:\n", "cases.yaml:1: cases: must be a list"),
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
    write_cases(agent, GOOD, {"name": "order [1]", "input": "Hello"})
    none = run(["test", agent, "-k", "nothing"])
    assert (none.code, none.err) == (5, "error: no case ran: -k matches none\n")
    assert run(["test", agent, "-k", "ORDER [1*"]).out.splitlines()[-1] == "1 passed"


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


def test_what_is_no_report_is_not_written_over(agent: Path) -> None:
    """A report takes the place of a report, and not of a case file that was named by mistake."""
    cases = write_cases(agent, GOOD)
    before = cases.read_text()
    refused = run(["test", agent, "--junit-xml", cases])
    assert (refused.code, refused.out) == (2, "")
    assert "this file holds something else than a report: name another one" in refused.err
    assert cases.read_text() == before
    report = agent.with_name("report.xml")
    assert [run(["test", agent, "--junit-xml", report]).code for _ in range(2)] == [0, 0]


def test_a_script_that_runs_out_is_said_once(agent: Path) -> None:
    """On stderr, where the file and the case are named; not again in the report, which has the waterfall."""
    (agent.parent / "short.yaml").write_text("replies:\n  - when: {user: other}\n    text: x\n")
    out = {"name": "runs out", "input": "hi", "script": "short.yaml"}
    expected = {**out, "name": "expects it", "input": [{"user": "hi", "expect": {"error": "script_exhausted"}}]}
    write_cases(agent, out, expected, GOOD)
    result = run(["test", agent, "--junit-xml", agent.with_name("report.xml"), "--repeat", "2"])
    assert result.code == 2
    sentence = "the script has no reply left for request 1 of this turn"
    assert (result.err.count(sentence), result.out.count(sentence)) == (1, 0)
    assert "✗ script_exhausted: the script has no reply left for the request" in result.out
    assert result.out.endswith("2 passed, 1 failed\n")
    node = ET.parse(agent.with_name("report.xml")).getroot().find(".//testcase[@name='runs out']/error")
    assert sentence in node.get("message")
    assert sentence not in node.text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_has_run_is_reported_when_a_signal_ends_it(number: int, code: int, agent: Path, tmp_path: Path) -> None:
    """The cases that have ended are shown and written, the others are skipped; nothing is accepted."""
    (agent.parent / "hangs.yaml").write_text(yaml.safe_dump({"replies": [{"text": "x", "delay": 60, "repeat": True}]}))
    first = {"name": "first", "input": [f"Turn {n}" for n in range(3)], "expect": {"answer": "never said"}}
    write_cases(agent, first, {"name": "hangs", "input": "x", "script": "hangs.yaml"}, {**GOOD, "name": "after it"})
    spans = tmp_path / "spans.jsonl"
    arguments = [
        "test",
        agent,
        "--junit-xml",
        tmp_path / "report.xml",
        "--trace-file",
        spans,
        "--baseline",
        tmp_path / "b.yaml",
        "--update",
    ]
    with Process(arguments, stdin=False) as process:
        deadline = time.monotonic() + 30
        while "evaluate first" not in (spans.read_text() if spans.exists() else ""):
            assert time.monotonic() < deadline, "the first case has not ended"
            time.sleep(0.02)
        process.signal(number)
        result = process.wait(timeout=30)
    assert result.code == code
    assert "answer.contains: 'never said' is not in it" in result.out
    assert result.out.endswith("0 passed, 1 failed, 2 not run\n")
    (suite,) = ET.parse(tmp_path / "report.xml").getroot()
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "2",
    }  # fmt: skip
    assert [case.get("name") for case in suite if case.find("skipped") is not None] == ["hangs", "after it"]
    assert not (tmp_path / "b.yaml").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_inside_of_a_tool_is_no_fault_of_the_tool(number: int, code: int, tmp_path: Path) -> None:
    """It ends the run wherever it comes."""
    source = f"import os, time\nasync def ends() -> str:\n    os.kill(os.getpid(), {int(number)})\n    time.sleep(0.05)\n    return 'x'\n"
    (tmp_path / "ends.py").write_text(source)
    tool = {"name": "ends", "type": "function", "file": "ends.py", "function": "ends"}
    agent = scripted_agent(tmp_path, {"tool_calls": [call("ends")]}, {"text": "x", "delay": 60}, tools=[tool])
    write_cases(agent, {"name": "ends", "input": "x"})
    result = run(["test", agent], timeout=30)
    assert (result.code, result.out.endswith("0 passed, 1 not run\n")) == (code, True), result


@pytest.mark.parametrize(("case", "code"), [(GOOD, 0), (BAD, 1)])
def test_a_reader_that_goes_away_changes_no_verdict(case: dict[str, Any], code: int, agent: Path, tmp_path: Path) -> None:
    """``holodeck test … | head -1``: the exit code and the file are those of the run."""
    write_cases(agent, *({**case, "name": f"case {n}"} for n in range(300)))
    report, status = tmp_path / "report.xml", tmp_path / "status"
    command = '"$0" test "$1" -j 4 --junit-xml "$2" 2>&1 | (exec <&-); echo "${PIPESTATUS[0]}" > "$3"'
    result = run(["-c", command, HOLODECK, agent, report, status], program=["bash"], timeout=100)
    assert (result.code, result.err) == (0, "")
    assert status.read_text() == f"{code}\n"
    assert ET.parse(report).getroot()[0].get("tests") == "300"


def test_hostile_text_breaks_no_report(agent: Path, tmp_path: Path) -> None:
    """Controls, markup and the end of a CDATA section in names, answers and expectations: whole XML, and no escape in the terminal."""
    hostile = "]]> <b> & \x1b[31mred\x1b]0;title\x07 \x01 \U0001f600 \u202e"
    (agent.parent / "hostile.yaml").write_text(write_yaml({"replies": [{"text": hostile, "repeat": True}]}))
    case = {"name": f"{hostile}\nline 2", "input": "hi", "script": "hostile.yaml", "expect": {"answer": f"{hostile} more"}}
    write_cases(agent, case)
    result = run(["test", agent, "--junit-xml", tmp_path / "report.xml"])
    assert result.code == 1
    assert set("\x1b\x07\x01\u202e") & set(result.out + result.err) == set()
    assert re.search(r"^✗ ]]> <b> & red +\S+ line 2  \S*cases.yaml:2$", result.out, re.MULTILINE)
    node = ET.parse(tmp_path / "report.xml").getroot()[0][0]
    assert node.get("name").startswith("]]> <b> & \ufffd[31mred")
    assert "\n< ]]> <b> & \ufffd[31mred" in node.find("failure").text


def test_a_narrow_terminal_shows_whole_names(agent: Path) -> None:
    """At 40 columns names, tokens and times stay, and nothing is wider; the trace stands with what failed."""
    write_cases(agent, GOOD, BAD)
    with Terminal(["test", agent], env={"CI": "1", "NO_COLOR": "1"}, columns=40) as terminal:
        terminal.wait_for("1 passed, 1 failed", timeout=30)
        terminal.wait_exit(timeout=30)
        raw = terminal.raw.decode()
    text = re.sub(r"\x1b\[[0-9;]*m|\r", "", raw)
    assert max(map(len, text.splitlines())) <= 40
    assert re.search(r"^✓ +finds an order +240 +\S+ m?s$", text, re.MULTILINE)
    assert re.search(r"^  trace [0-9a-f]{32}$", text, re.MULTILINE)
    assert "\x1b[3" not in raw


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
    shown = {}
    for ci in ("", "1"):
        with Terminal(["test", agent], env={"CI": ci}) as terminal:
            terminal.wait_for("4 passed", timeout=30)
            terminal.wait_exit(timeout=30)
            shown[ci] = terminal.raw
    assert {ci: b"testing" in raw for ci, raw in shown.items()} == {"": True, "1": False}
    assert [b"\x1b[32m" in raw for raw in shown.values()] == [True, True]


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
    for expect, valid in (
        ({"toolz": []}, False), ({"answer": None}, False), ({"tokens": {"min": None, "max": 1}}, False), ({"never": []}, False),
        ({"answer": "x"}, True), ({"tokens": 3}, True), ({"tools": ["x", {"name": "y", "times": 1}]}, True), ({}, True),
    ):  # fmt: skip
        assert schemas["cases"].is_valid({"cases": [{"input": "x", "expect": expect}]}) is valid, expect
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
