"""``holodeck trace`` as it is used: on files of the chat, of the collector, and of others."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import HOLODECK, Terminal, run
from support.home import Home
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver, to_json_lines
from support.scripts import call, scripted_agent, usage

_TOOL = {"tool_calls": [call("lookup", order_id="1042")], "usage": usage(100, 10)}
_ANSWER = {"text": "It has been shipped.", "usage": usage(200, 20)}


@pytest.fixture(scope="module")
def spans(tmp_path_factory) -> Path:
    """The trace file of a session of two turns, with content."""
    directory = tmp_path_factory.mktemp("spans")
    agent = scripted_agent(directory, _TOOL, _ANSWER, _ANSWER)
    done = run(["chat", agent, "-m", "Where is order 1042?", "-m", "Thanks", "--trace-file", directory / "t.jsonl", "--capture-content"])
    assert done.code == 0
    return directory / "t.jsonl"


def _ids(spans: Path) -> list[str]:
    return re.findall(r"^([0-9a-f]{32})  ", run(["trace", "list", spans]).out, re.MULTILINE)


def _many(path: Path, traces: int, each: int) -> Path:
    """Spans of a file exporter, a span a line; the root of a trace is its last."""
    with path.open("w", encoding="utf-8") as file:
        for trace in range(1, traces + 1):
            for span in range(each, 0, -1):
                start = 1_754_229_802_000_000_000 + trace * 10**9 + span * 10**5
                fields = {"traceId": f"{trace:032x}", "spanId": f"{span:016x}", "name": f"chat m{span % 7}", "kind": 3}
                fields |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 10**7)}
                fields |= {"parentSpanId": f"{max(span // 8, 1):016x}"} if span > 1 else {}
                values = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai"}
                attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
                attributes.append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}})
                scope = {"scope": {"name": "x"}, "spans": [{**fields, "attributes": attributes}]}
                file.write(json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}) + "\n")
    return path


def test_show_is_the_waterfall_of_the_chat(spans):
    """Every turn, with content, errors and tokens; the chat's own tree has the same lines."""
    result = run(["trace", "show", spans])
    assert (result.code, result.err) == (0, "")
    assert result.out.count("invoke_agent support · ") == 2
    assert "├─ execute_tool lookup" in result.out
    assert "Where is order 1042?" in result.out
    assert "300→30" in result.out
    assert "Where is order" not in run(["trace", "show", spans, "--no-content"]).out


def test_show_one_trace_by_the_beginning_of_its_id(spans):
    """And one that is not there is one line, exit 2."""
    first, second = _ids(spans)
    assert re.findall(r"trace ([0-9a-f]{32})", run(["trace", "show", spans, "--trace-id", second[:12].upper()]).out) == [second]
    result = run(["trace", "show", spans, "--trace-id", "f" * 32])
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+ there is no trace f{32} in it[^\n]+\n", result.err)
    assert first != second


_IDS = ["", " ", "xyz", "0x12", "f" * 33, "12-34", "\u0661"]


@pytest.mark.parametrize("command", ["show", "diff"])
@pytest.mark.parametrize("trace_id", _IDS)
def test_what_is_no_trace_id_is_refused(spans, command, trace_id):
    """It would find nothing, or everything."""
    result = run(["trace", command, spans, "--trace-id", trace_id])
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: [^\n]* is no trace id: write 32 hex digits, or the first of them [^\n]+\n", result.err)


_EMPTY = [b"", b"\n\n", b"{}\n", b'{"resourceSpans": []}\n', b'{"resourceMetrics": []}\n']


@pytest.mark.parametrize("content", _EMPTY)
def test_no_traces_are_said_to_be_none(spans, content, tmp_path):
    """On stderr; an empty list is all right, what was to be looked at and is not there is a failure, and makes no page."""
    listed = run(["trace", "list", "-"], stdin=content)
    assert (listed.code, listed.out, listed.err) == (0, "", "standard input: no traces: there is no span in it\n")
    for more in ([], ["--html", "-"], ["--html", tmp_path / "page.html"], ["--trace-id", "ab"]):
        shown = run(["trace", "show", "-", *more], stdin=content)
        assert (shown.code, shown.err) == (1, "error: standard input: no traces: there is no span in it\n")
        assert shown.out == ("" if more != ["--html", "-"] else shown.out)
    assert list(tmp_path.iterdir()) == []
    compared = run(["trace", "diff", "-", spans, "--exit-code"], stdin=content)
    assert (compared.code, compared.err) == (1, "standard input: no traces: there is no span in it\n")


def test_width_and_ascii(spans):
    """As wide as asked for, and nothing but ASCII; an ASCII console and the C locale get that by themselves."""
    for options, env in ((["--ascii"], {}), ([], {"PYTHONIOENCODING": "ascii"}), ([], {"LC_ALL": "C"}), ([], {"LANG": "C"})):
        result = run(["trace", "show", spans, "--width", "40", *options], env=env)
        assert result.out.isascii()
        assert max(map(len, result.out.splitlines())) <= 40
    assert run(["trace", "show", spans, "--width", "5"]).code == 2


def test_standard_input_and_what_others_write(spans, tmp_path):
    """A pipe will do; so will the collector's form of the same spans, with metrics and logs between them."""
    piped = run(["trace", "show", "-"], stdin=spans.read_bytes())
    assert piped.out == run(["trace", "show", spans]).out
    agent = scripted_agent(tmp_path, _TOOL, _ANSWER)
    with OtlpReceiver() as receiver:
        run(["chat", agent, "-m", "x", "--observability"], env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url})
        to_json_lines(receiver, tmp_path / "collector.jsonl")
    assert "└─ chat script" in run(["trace", "show", tmp_path / "collector.jsonl"]).out


@pytest.mark.parametrize(
    ("content", "line"),
    [("garbage\n", 1), ("\n\n{}\n[1]\n", 4), ('{"resourceSpans": 3}\n', 1), ('{"a": ' * 3000 + "\n", 1), ("\x00\xff\n", 1)],
)
@pytest.mark.parametrize("command", ["show", "list", "diff"])
def test_garbage_is_one_line_with_its_number(tmp_path, content, line, command):
    """Whatever it is: which file, which line, exit 2."""
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content.encode("latin-1"))
    result = run(["trace", command, path, *([path] if command == "diff" else [])])
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(rf"error: [^\n]*bad\.jsonl: line {line}: [^\n]+\n", result.err)


def test_a_torn_last_line_does_not_hide_the_rest(spans, tmp_path):
    """A process that was killed while it wrote: what it had written before is shown, and the line is named."""
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(spans.read_bytes()[:-40])
    result = run(["trace", "show", torn])
    assert result.code == 2
    assert result.out.count("invoke_agent support · ") == 1
    assert re.search(r"error: .*torn\.jsonl: line \d+: ", result.err)


def test_a_file_that_is_not_there(tmp_path):
    """One line, exit 2; so is a directory, and no file at all."""
    for arguments in ([tmp_path / "none"], [tmp_path], []):
        result = run(["trace", "show", *arguments])
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_a_reader_that_goes_away(tmp_path):
    """It has what it wanted: quiet, exit 0."""
    many = _many(tmp_path / "many.jsonl", 400, 8)
    for command in ("show", "list"):
        result = run(["-c", f'set -o pipefail; "$0" trace {command} "{many}" | head -1', HOLODECK], program=["bash"])
        assert (result.code, result.err, result.out.count("\n")) == (0, "", 1)


def test_list_has_a_line_for_each_trace(spans):
    """Id, time, turn, duration, spans, tokens; wide in a pipe, folded in a terminal."""
    lines = run(["trace", "list", spans]).out.splitlines()
    assert len(lines) == 2
    pattern = r"[0-9a-f]{32}  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  invoke_agent support  turn 1 · [^·]+ · 4 spans · 300→30 tokens · 1 tool"
    assert re.fullmatch(pattern, lines[0])
    with Terminal(["trace", "list", spans], columns=40) as terminal:
        assert terminal.wait_exit() == 0
        shown = [row for row in terminal.screen if row]
    assert [row.strip() for row in shown if re.fullmatch(r"  [0-9a-f]{32}", row)] == _ids(spans)


@pytest.mark.parametrize("columns", [40, 120])
def test_a_dumb_terminal_has_its_width(spans, columns):
    """It has no cursor, it does have a width; COLUMNS counts more."""
    rows = {}
    for term, env in (("dumb", {}), ("xterm", {}), ("dumb", {"COLUMNS": "60"})):
        with Terminal(["trace", "show", spans], columns=columns, lines=60, env={"TERM": term, **env}) as terminal:
            assert terminal.wait_exit() == 0
            rows[term, *env] = [row for row in terminal.screen if row]
    assert rows["dumb",] == rows["xterm",]
    assert max(map(len, rows["dumb",])) <= columns
    assert rows["dumb", "COLUMNS"] != rows["dumb",]


def test_colours_only_in_a_terminal(spans):
    """And none where NO_COLOR is set."""
    assert "\x1b" not in run(["trace", "show", spans]).out
    with Terminal(["trace", "show", spans]) as terminal:
        assert terminal.wait_exit() == 0
        assert b"\x1b[34m" in terminal.raw
    with Terminal(["trace", "show", spans], env={"NO_COLOR": "1"}) as terminal:
        assert terminal.wait_exit() == 0
        assert b"\x1b[34m" not in terminal.raw


def test_diff(spans, tmp_path):
    """Nothing is different from itself; a tool less is, and --exit-code says so."""
    same = run(["trace", "diff", spans, spans, "--exit-code"])
    assert (same.code, same.out) == (0, "no difference in 6 spans\n")
    result = run(["trace", "diff", spans, "--turn", "2", "--turn", "1", "--exit-code", "--slower", "100000"])
    assert result.code == 1
    assert re.search(r"^\+   execute_tool lookup ", result.out, re.MULTILINE)
    assert re.search(r"^2 added", result.out.splitlines()[-1])
    assert run(["trace", "diff", spans, "--turn", "2", "--turn", "1"]).code == 0
    first, second = _ids(spans)
    by_id = run(["trace", "diff", spans, "--trace-id", second, "--trace-id", first, "--exit-code", "--slower", "100000"])
    assert (by_id.code, by_id.out) == (1, result.out)


def test_diff_says_what_it_needs(spans):
    """Two sides, no more and no less."""
    for arguments in ([], ["--turn", "1"], ["--turn", "1", "--turn", "9"], ["--turn", "1", "--turn", "2", "--turn", "1"]):
        result = run(["trace", "diff", spans, *arguments])
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_html(spans, tmp_path):
    """One page, whole or not at all; with one name only that is the file to read, and never to be written to."""
    page = tmp_path / "page.html"
    assert run(["trace", "show", spans, "--html", page]).code == 0
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    assert written.count('<tr class="s') == 6
    before = spans.read_bytes()
    assert run(["trace", "show", "--html", spans]).out == written
    assert run(["trace", "show", spans, "--html", spans]).code == 2
    assert spans.read_bytes() == before
    (tmp_path / "bad.jsonl").write_text("garbage\n", encoding="utf-8")
    assert run(["trace", "show", tmp_path / "bad.jsonl", "--html", tmp_path / "none.html"]).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "page.html"]


def test_html_takes_the_place_of_nothing_but_a_file(spans, tmp_path):
    """A device is written to, and a link leads to the page as before."""
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "link.html").symlink_to("page.html")
    for name in ("device", "link.html"):
        assert run(["trace", "show", spans, "--html", tmp_path / name]).code == 0
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "device").is_char_device()
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_spool_and_flush(tmp_path):
    """Spans that a run could not deliver are listed, and sent to where they were meant to go, once."""
    agent = scripted_agent(tmp_path, _TOOL, _ANSWER)
    home = Home(tmp_path / "home")
    home.path.mkdir()
    assert "no span waits to be sent\n" in run(["trace", "spool"], home=home.path).out
    with OtlpReceiver() as receiver:
        receiver.refuse(503)
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        run(["chat", agent, "-m", "x", "--observability"], env=environment, home=home.path)
        facts = r"4 spans wait · \d+ KiB · oldest [^·\n]+"
        one = rf"{receiver.http_url}/v1/traces \(http/protobuf\)\n  {facts}\n  1 ended process\nin \S+/spool\n"
        assert re.fullmatch(one, run(["trace", "spool"], home=home.path).out)
        run(["chat", agent, "-m", "x", "--observability"], env=environment, home=home.path)
        with_token = environment | {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret-token"}
        run(["chat", agent, "-m", "x", "--observability"], env=with_token, home=home.path)
        other = environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url.replace("127.0.0.1", "localhost")}
        run(["chat", agent, "-m", "x", "--observability"], env=other, home=home.path)
        grouped = run(["trace", "spool"], home=home.path).out
        assert len(re.findall(r"^http://", grouped, re.MULTILINE)) == 2
        assert re.search(
            r"/v1/traces \(http/protobuf\)\n  12 spans wait · .*\n  \d ended process.* · 2 sets of headers, each sent", grouped
        )
        assert re.search(r"localhost:\d+/v1/traces \(http/protobuf\)\n  4 spans wait · ", grouped)
        assert "secret-token" not in grouped
        nobody = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{unused_port()}"}
        elsewhere = run(["trace", "spool", "flush"], env=nobody, home=home.path)
        assert elsewhere.code == 0
        assert "no spans delivered" in elsewhere.out
        assert re.search(r"\d other queues not touched", elsewhere.out)
        receiver.accept()
        sent = run(["trace", "spool", "flush"], env=environment, home=home.path)
        assert sent.code == 0
        assert "8 spans delivered to http://127.0.0.1:" in sent.out
        assert "2 other queues not touched" in sent.out
        assert len(receiver.spans) == 8
        assert "4 spans delivered to http://127.0.0.1:" in run(["trace", "spool", "flush"], env=with_token, home=home.path).out
        left = run(["trace", "spool"], home=home.path).out
        assert re.findall(r"^http://(\w+)", left, re.MULTILINE) == ["localhost"]
        assert run(["trace", "spool", "flush"], env=other, home=home.path).code == 0
        assert "no span waits to be sent\n" in run(["trace", "spool"], home=home.path).out


def test_flush_needs_somewhere_to_go():
    """With telemetry switched off there is nothing to do."""
    result = run(["trace", "spool", "flush"], env={"OTEL_SDK_DISABLED": "true"})
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("command", ["show", "list", "diff"])
def test_nothing_heavy_is_loaded(spans, command):
    """Reading spans needs neither Semantic Kernel nor OpenTelemetry's SDK, nor anything of a model."""
    arguments = ["trace", command, str(spans), *([str(spans)] if command == "diff" else [])]
    code = (
        "import sys; from holodeck.cli.main import run; code = run(sys.argv[1:]); "
        "heavy = {'semantic_kernel', 'opentelemetry', 'openai', 'mcp', 'prompt_toolkit', 'pydantic', 'genai_prices'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("traces", "each"), [(12_500, 8), (1, 100_000)])
def test_a_hundred_thousand_spans_begin_to_show_at_once(tmp_path, traces, each):
    """Within two seconds of CPU, in less than 300 MB: as many traces, and as a single one."""
    path = _many(tmp_path / "many.jsonl", traces, each)
    for _ in range(3):  # the machine may be busy with something else
        taken, memory = _first_line(path)
        assert memory < 300_000_000
        if taken < 2.0:
            return
    raise AssertionError(f"{taken} s of CPU before the first line")


def _first_line(path: Path) -> tuple[float, int]:
    """CPU seconds until the first line is there, and the most memory in bytes until the last one is."""
    process = subprocess.Popen([HOLODECK, "trace", "show", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    with process.stdout as out, process.stderr as err:
        assert out.readline().startswith(b"chat m1 ")
        taken, memory, lines = _cpu(process.pid), 0, 0
        for lines, _ in enumerate(out, 1):
            if lines % 5_000 == 0:
                memory = max(memory, _memory(process.pid))
        assert lines >= 100_000
        assert (process.wait(), err.read()) == (0, b"")
    return taken, memory


def _memory(pid: int) -> int:
    """Most memory so far, in bytes. Not the rusage of the child: that counts what its parent had when it was forked."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found.group(1)) * 1024 if found else 0


def _cpu(pid: int) -> float:
    """User and system CPU seconds of a running process (Linux); 0 elsewhere."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _shapes(text: str) -> dict[str, bytes]:
    requests = [json.loads(line) for line in text.splitlines()]
    return {
        "array": json.dumps(requests).encode(),
        "array over lines": json.dumps(requests, indent=2).encode(),
        "with a byte order mark": b"\xef\xbb\xbf" + json.dumps(requests).encode(),
        "packed": gzip.compress(text.encode()),
        "packed array": gzip.compress(json.dumps(requests).encode()),
    }


@pytest.mark.parametrize("shape", ["array", "array over lines", "with a byte order mark", "packed", "packed array"])
def test_other_shapes_of_a_file(spans, tmp_path, shape):
    """An array of requests, one request over many lines, and any of it packed with gzip: from a file and through a pipe."""
    data = _shapes(spans.read_text())[shape]
    (tmp_path / "t").write_bytes(data)
    expected = run(["trace", "show", spans]).out
    assert run(["trace", "show", tmp_path / "t"]).out == expected
    assert run(["trace", "show", "-"], stdin=data).out == expected
    assert run(["trace", "diff", tmp_path / "t", spans]).out.startswith("no difference in ")


def test_one_request_over_many_lines(spans, tmp_path):
    """As a tool for JSON prints it."""
    first = spans.read_text().splitlines()[0]
    (tmp_path / "one").write_text(first)
    (tmp_path / "pretty").write_text(json.dumps(json.loads(first), indent=2))
    assert run(["trace", "list", tmp_path / "pretty"]).out == run(["trace", "list", tmp_path / "one"]).out != ""


@pytest.mark.parametrize("data", [gzip.compress(b"x" * 10_000)[:-9], b"\x1f\x8bnot packed at all"], ids=["torn", "not packed"])
def test_a_damaged_package_is_one_line(tmp_path, data):
    """It names the file."""
    (tmp_path / "t.gz").write_bytes(data)
    done = run(["trace", "show", tmp_path / "t.gz"])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "t.gz: " in done.err


def test_list_and_show_as_json(spans):
    """A line for each trace; the spans of the second with depth and attributes, on request without content."""
    listed = [json.loads(line) for line in run(["trace", "list", spans, "--json"]).out.splitlines()]
    assert [(t["turn"], t["span_count"], t["input_tokens"], t["tool_calls"], t["cost_usd"]) for t in listed] == [
        (1, 4, 300, 1, None),
        (2, 2, 200, 0, None),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", t["start"]) and 0 < t["duration"] < 60 for t in listed)
    done = run(["trace", "show", spans, "--json", "--trace-id", listed[1]["trace_id"]])
    (shown,) = [json.loads(line) for line in done.out.splitlines()]
    assert {**listed[1], "spans": shown["spans"]} == shown
    assert [(s["depth"], s["name"], s["operation"], s["kind"], s["status"], s["output_tokens"]) for s in shown["spans"]] == [
        (0, "invoke_agent support", "invoke_agent", "internal", "unset", None),
        (1, "chat script", "chat", "client", "unset", 20),
    ]
    assert "Thanks" in done.out
    assert "Thanks" not in run(["trace", "show", spans, "--json", "--no-content"]).out


def test_diff_as_json(spans):
    """One object: whether anything counts, how often each kind occurs, and both sides of each difference."""
    done = run(["trace", "diff", spans, "--turn", "1", "--turn", "2", "--json", "--exit-code", "--slower", "1000000"])
    data = json.loads(done.out)
    assert (done.code, data["different"], data["compared"]) == (1, True, 4)
    counted = {kind: count for kind, count in data["counts"].items() if kind != "faster"}
    assert counted == {"removed": 2, "more tokens": 1}
    (more,) = [d for d in data["differences"] if "more tokens" in d["kinds"]]
    assert (more["before"]["input_tokens"], more["after"]["input_tokens"], more["depth"]) == (100, 200, 1)
    (tool,) = [d for d in data["differences"] if d["before"]["name"] == "execute_tool lookup"]
    assert (tool["kinds"], tool["after"]) == (["removed"], None)
    same = json.loads(run(["trace", "diff", spans, spans, "--json"]).out)
    assert same == {"different": False, "counts": {}, "compared": 6, "differences": []}


def test_json_of_odd_values_is_json(tmp_path):
    """What JSON cannot carry is written as OTLP/JSON writes it; failures say why; unknown times are null."""
    values = {"nan": {"doubleValue": "NaN"}, "inf": {"doubleValue": "-Infinity"}, "bytes": {"bytesValue": "AAEC"}}
    values["list"] = {"arrayValue": {"values": [{"doubleValue": "Infinity"}]}}
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "n\u001b[2J", "status": {"code": 2, "message": "broken"}}
    span["attributes"] = [{"key": key, "value": value} for key, value in values.items()]
    (tmp_path / "t").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    done = run(["trace", "show", "--json", tmp_path / "t"])
    (shown,) = json.loads(done.out, parse_constant=pytest.fail)["spans"]
    assert shown["attributes"] == {"nan": "NaN", "inf": "-Infinity", "bytes": "AAEC", "list": ["Infinity"]}
    assert (shown["start"], shown["duration"], shown["error"]) == (None, None, "broken")
    assert "\x1b" not in done.out


def test_html_or_json(spans):
    """Not both."""
    done = run(["trace", "show", spans, "--json", "--html", "x.html"])
    assert (done.code, done.out) == (2, "")
    assert "--html and --json" in done.err


def test_no_content_holds_for_other_writers(tmp_path):
    """Neither text, page nor JSON has what OpenInference and OpenLLMetry put on spans."""
    keys = ("input.value", "gen_ai.prompt.0.content", "llm.output_messages.0.message.content", "traceloop.entity.output", "tool.parameters")
    attributes = [{"key": key, "value": {"stringValue": f"canary {key}"}} for key in keys]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "LLM", "attributes": attributes}
    (tmp_path / "t").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    for form in ([], ["--json"], ["--html", "-"]):
        assert "canary" in run(["trace", "show", tmp_path / "t", *form]).out
        assert "canary" not in run(["trace", "show", tmp_path / "t", *form, "--no-content"]).out
