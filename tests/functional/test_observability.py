"""Telemetry through the door: the installed command, real OTLP receivers, real files."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.agents import write_agent
from support.command import run
from support.model_server import Call, Fault, ModelServer, Reply, Usage
from support.otlp_receiver import OtlpReceiver, SilentPort, unused_port
from support.scripts import call, scripted_agent, usage

SCRIPT = (
    {"when": {"user": "order"}, "text": "Let me look.", "tool_calls": [call("lookup", order_id="1042")], "usage": usage(100, 10)},
    {"text": "It shipped.", "usage": usage(150, 5), "repeat": True},
)


def environment(receiver: OtlpReceiver, protocol: str) -> dict[str, str]:
    """Where a receiver is, in the variables of the specification."""
    endpoint = receiver.grpc_url if protocol == "grpc" else receiver.http_url
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}


def traces(path: Path) -> list[dict[str, Any]]:
    """The spans of a trace file."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [s for line in lines for r in line["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_observability_delivers_every_signal_with_the_same_trace_ids(protocol: str, tmp_path: Path) -> None:
    """With --observability each turn's spans, metrics and logs reach the receiver; the footer's trace id is theirs."""
    with OtlpReceiver() as receiver:
        path = scripted_agent(tmp_path, *SCRIPT)
        done = run(["chat", path, "--observability", "-m", "my order", "-m", "thanks"], env=environment(receiver, protocol))
        assert (done.code, done.out) == (0, "Let me look.\n\nIt shipped.\nIt shipped.\n")
        shown = re.findall(r"trace ([0-9a-f]{32})", done.err)
        assert len(shown) == 2
        assert set(shown) == {s.trace_id for s in receiver.spans}
        assert set(shown) <= {log.trace_id for log in receiver.logs}
        assert receiver.tree(shown[0]) == (
            "invoke_agent support",
            [("chat script", []), ("execute_tool lookup", []), ("chat script", [])],
        )
        tokens = [p for m in receiver.metrics if m.name == "gen_ai.client.token.usage" for p in m.points]
        assert {p.attributes["gen_ai.token.type"]: p.sum for p in tokens} == {"input": 400, "output": 20}
        second = next(s for s in receiver.spans if s.trace_id == shown[1] and not s.parent_id)
        first = next(s for s in receiver.spans if s.trace_id == shown[0] and not s.parent_id)
        assert [(link[0], link[1]) for link in second.links] == [(first.trace_id, first.span_id)]
        assert {s.resource["service.name"] for s in receiver.spans} == {"holodeck"}


def test_without_the_flag_nothing_is_sent(tmp_path: Path) -> None:
    """An endpoint variable alone turns nothing on."""
    with OtlpReceiver() as receiver:
        done = run(["chat", scripted_agent(tmp_path, *SCRIPT), "-m", "my order"], env=environment(receiver, "http/protobuf"))
        assert done.code == 0
        assert (receiver.raw, receiver.http_connections) == ([], 0)


@pytest.mark.parametrize(
    ("flags", "env", "file", "sent"),
    [
        ([], {"OTEL_TRACES_EXPORTER": "otlp"}, {}, True),
        ([], {}, {"enabled": True}, True),
        ([], {"OTEL_TRACES_EXPORTER": "console"}, {"enabled": True}, False),
        ([], {"OTEL_TRACES_EXPORTER": "none"}, {"enabled": True}, False),
        (["--no-observability"], {"OTEL_TRACES_EXPORTER": "otlp"}, {"enabled": True}, False),
        (["--observability"], {"OTEL_TRACES_EXPORTER": "none"}, {"enabled": False}, True),
        (["--observability"], {"OTEL_SDK_DISABLED": "true"}, {}, False),
    ],
)
def test_command_line_beats_environment_beats_file(
    flags: list[str], env: dict[str, str], file: dict[str, Any], *, sent: bool, tmp_path: Path
) -> None:
    """The switch has one precedence, and OTEL_SDK_DISABLED beats everything."""
    with OtlpReceiver() as receiver:
        path = scripted_agent(tmp_path, *SCRIPT, observability=file)
        done = run(["chat", path, "-m", "my order", *flags], env=environment(receiver, "http/protobuf") | env)
        assert (done.code, done.out) == (0, "Let me look.\n\nIt shipped.\n")
        assert bool(receiver.spans) is sent


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_SPAN_LINK_COUNT_LIMIT", "abc"),
        ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "-3"),
        ("OTEL_METRICS_EXEMPLAR_FILTER", "bogus"),
        ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "99999"),
        ("OTEL_METRIC_EXPORT_TIMEOUT", "abc"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
    ],
)
def test_garbage_in_a_variable_matters_where_something_is_sent(variable: str, value: str, tmp_path: Path) -> None:
    """With --observability it is one line and exit code 2; without, the chat goes on, at most with a warning of one line."""
    path = scripted_agent(tmp_path, *SCRIPT)
    strict = run(["chat", path, "--observability", "-m", "my order"], env={variable: value})
    assert (strict.code, strict.out, strict.err.count("\n")) == (2, "", 1)
    assert strict.err.startswith(f"error: {variable}: ")
    lax = run(["chat", path, "-m", "my order"], env={variable: value})
    assert (lax.code, lax.out) == (0, "Let me look.\n\nIt shipped.\n")
    assert lax.err.count(variable) == (variable != "OTEL_METRIC_EXPORT_TIMEOUT")


@pytest.mark.parametrize("flags", [[], ["--observability"]])
@pytest.mark.parametrize("value", ["bogus", ""])
def test_a_provider_that_is_not_there_does_not_hang_the_chat(value: str, flags: list[str], tmp_path: Path) -> None:
    """OTEL_PYTHON_TRACER_PROVIDER names a provider that OpenTelemetry would look for while a library is imported."""
    done = run(["chat", scripted_agent(tmp_path, *SCRIPT), "-m", "hi", *flags], env={"OTEL_PYTHON_TRACER_PROVIDER": value})
    assert (done.code, done.out) == (2, "")
    assert "unset it" in done.err


def test_the_doctor_shows_every_limit_and_who_set_it(tmp_path: Path) -> None:
    """Variables that change what is recorded are among the settings that the doctor lists."""
    environ = {"OTEL_SPAN_LINK_COUNT_LIMIT": "7", "OTEL_BLRP_MAX_QUEUE_SIZE": "9", "OTEL_METRICS_EXEMPLAR_FILTER": "always_off"}
    done = run(["doctor", scripted_agent(tmp_path, *SCRIPT), "--json"], env=environ)
    shown = {each["name"]: (each["value"], each["source"]) for each in json.loads(done.out)["settings"]}
    assert shown["limits.links"] == ("7", "env OTEL_SPAN_LINK_COUNT_LIMIT")
    assert shown["limits.span_attributes"] == ("256", "default")
    assert shown["log_max_queue_size"] == ("9", "env OTEL_BLRP_MAX_QUEUE_SIZE")
    assert shown["exemplar_filter"] == ("always_off", "env OTEL_METRICS_EXEMPLAR_FILTER")


def test_agent_file_settings_reach_the_wire(tmp_path: Path) -> None:
    """Endpoint, protocol, headers, compression, service name and resource attributes of the agent file are what the receiver sees."""
    with OtlpReceiver() as receiver:
        observability = {
            "enabled": True,
            "service_name": "shop",
            "resource_attributes": {"deployment.environment.name": "test"},
            "exporters": {
                "otlp": {"endpoint": receiver.http_url, "protocol": "http", "headers": {"x-team": "blue"}, "compression": "gzip"}
            },
        }
        done = run(["chat", scripted_agent(tmp_path, *SCRIPT, observability=observability), "-m", "my order"])
        assert done.code == 0
        assert {a.headers.get("x-team") for a in receiver.raw} == {"blue"}
        assert {a.headers.get("content-encoding") for a in receiver.raw} == {"gzip"}
        assert {(s.resource["service.name"], s.resource["deployment.environment.name"]) for s in receiver.spans} == {("shop", "test")}


@pytest.mark.parametrize(("section", "missing"), [("traces", "traces"), ("metrics", "metrics"), ("logs", "logs")])
def test_each_signal_can_be_switched_off(section: str, missing: str, tmp_path: Path) -> None:
    """traces, metrics and logs have a switch of their own."""
    with OtlpReceiver() as receiver:
        path = scripted_agent(tmp_path, *SCRIPT, observability={"enabled": True, section: {"enabled": False}})
        run(["chat", path, "-m", "my order"], env=environment(receiver, "http/protobuf"))
        assert {a.signal for a in receiver.raw} == {"traces", "metrics", "logs"} - {missing}


def test_trace_file_of_good_and_bad_turns(tmp_path: Path) -> None:
    """--trace-file holds every span of good, failed and truncated turns, in a file for its owner only, and is appended to."""
    out = tmp_path / "t.jsonl"
    with ModelServer() as server:
        path = write_agent(tmp_path, server, model={"timeout": 2})
        server.reply(Reply(tool_calls=[Call("lookup_order", {"order_id": "1"}, id="a"), Call("fails", {}, id="b")], usage=Usage(5, 5)))
        server.reply(Reply(text="done"), Fault.truncate_after(2), Fault(status=500), Fault.silence())
        done = run(["chat", path, "--trace-file", out, "-m", "one", "-m", "two", "-m", "three", "-m", "four"], env={"OPENAI_API_KEY": "k"})
        assert done.code == 1
        server.reply(Reply(text="again"))
        assert run(["chat", path, "--trace-file", out, "-m", "five"], env={"OPENAI_API_KEY": "k"}).code == 0
    spans = traces(out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert len({s["traceId"] for s in spans}) == 5
    failed = [s for s in spans if s["status"].get("code") == 2 and s["name"].startswith("chat")]
    kinds = [a["value"]["stringValue"] for s in failed for a in s["attributes"] if a["key"] == "error.type"]
    assert kinds == ["truncated_stream", "500", "timeout"]


def test_console_as_lines_for_programs(tmp_path: Path) -> None:
    """pretty_print: false writes one OTLP/JSON line a span on stderr instead of the footer."""
    path = scripted_agent(tmp_path, *SCRIPT, observability={"exporters": {"console": {"pretty_print": False}}})
    done = run(["chat", path, "-m", "my order"])
    lines = [line for line in done.err.splitlines() if line.startswith("{")]
    assert len(lines) == 4
    assert all("resourceSpans" in json.loads(line) for line in lines)
    assert "first token" not in done.err


def test_console_can_be_switched_off(tmp_path: Path) -> None:
    """console.enabled: false leaves no footer."""
    path = scripted_agent(tmp_path, *SCRIPT, observability={"exporters": {"console": {"enabled": False}}})
    assert "first token" not in run(["chat", path, "-m", "my order"]).err


def test_timestamps_are_shown_when_asked_for(tmp_path: Path) -> None:
    """include_timestamps adds clock times to the tree."""
    plain = run(["chat", scripted_agent(tmp_path / "a", *SCRIPT), "-v", "-m", "my order"]).err
    observability = {"exporters": {"console": {"include_timestamps": True}}}
    timed = run(["chat", scripted_agent(tmp_path / "b", *SCRIPT, observability=observability), "-v", "-m", "my order"]).err
    assert not re.search(r"\d\d:\d\d:\d\d", plain)
    assert re.search(r"\d\d:\d\d:\d\d", timed)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("kind", ["refused", "silent"])
def test_a_dead_collector_does_not_hold_the_exit_back(protocol: str, kind: str, tmp_path: Path) -> None:
    """With a collector that refuses or is silent the answer comes as ever, leaving is quick, one line says what was not delivered."""
    path = scripted_agent(tmp_path, *SCRIPT)
    base = ["chat", path, "-m", "my order"]
    without = run(base)
    with SilentPort() as silent:
        url = silent.base_url if kind == "silent" else f"http://127.0.0.1:{unused_port()}"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        done = run([*base, "--observability"], env=env)
    assert (done.code, done.out) == (0, without.out)
    assert done.duration < without.duration + 3
    said = [line for line in done.err.splitlines() if "4 " in line and "spans" in line]
    assert len(said) == 1
    assert "Traceback" not in done.err


def test_content_is_on_no_signal_unless_asked_for(tmp_path: Path) -> None:
    """Without --capture-content neither the message, the answer, the arguments nor the result leave; with it they do, redacted."""
    canary = "canary-4711"
    script = (
        {"text": f"Say {canary}.", "tool_calls": [call("lookup", order_id=canary)], "usage": usage(1, 1)},
        {"text": f"Answer {canary} to a@b.example.", "usage": usage(1, 1)},
    )
    for flags, expected in (([], False), (["--capture-content"], True)):
        with OtlpReceiver() as receiver:
            out = tmp_path / f"{expected}.jsonl"
            path = scripted_agent(tmp_path / str(expected), *script, instructions={"inline": f"Know {canary}."})
            args = ["chat", path, "--observability", "--trace-file", out, "-m", f"tell {canary}", *flags]
            assert run(args, env=environment(receiver, "http/protobuf")).code == 0
            sent = b"".join(a.body for a in receiver.raw) + out.read_bytes()
            assert (canary.encode() in sent) is expected
            assert b"a@b.example" not in sent


def test_the_environment_opens_the_gate_and_the_file_does_too(tmp_path: Path) -> None:
    """The environment variable and traces.capture_content are the same switch as the flag; redaction patterns work."""
    ways = (
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}, {}),
        ({}, {"traces": {"capture_content": True, "redaction_patterns": ["ORD-[0-9]+"]}}),
    )
    for number, (env, observability) in enumerate(ways):
        out = tmp_path / f"{number}.jsonl"
        path = scripted_agent(tmp_path / str(number), *SCRIPT, observability=observability)
        run(["chat", path, "--trace-file", out, "-m", "my order ORD-77"], env=env)
        text = out.read_text(encoding="utf-8")
        assert "my order" in text
        assert ("ORD-77" in text) is (not observability)


def test_spans_of_the_users_code_join_the_turn(tmp_path: Path) -> None:
    """In the command, spans that a tool makes with OpenTelemetry's API are part of the turn's trace."""
    (tmp_path / "own.py").write_text(
        "from opentelemetry import trace\n"
        "def own() -> str:\n"
        "    with trace.get_tracer('mine').start_as_current_span('my work'):\n"
        "        return 'done'\n",
        encoding="utf-8",
    )
    tool = {"name": "own", "type": "function", "file": "own.py", "function": "own"}
    path = scripted_agent(tmp_path, {"tool_calls": [call("own")]}, {"text": "ok"}, tools=[tool])
    out = tmp_path / "t.jsonl"
    assert run(["chat", path, "--trace-file", out, "-m", "hi"]).code == 0
    spans = {s["name"]: s for s in traces(out)}
    assert spans["my work"]["parentSpanId"] == spans["execute_tool own"]["spanId"]


def test_a_trace_file_that_cannot_be_written_is_said_before_the_first_turn(tmp_path: Path) -> None:
    """A directory as --trace-file is a configuration error."""
    done = run(["chat", scripted_agent(tmp_path, *SCRIPT), "--trace-file", tmp_path, "-m", "hi"])
    assert (done.code, done.out) == (2, "")
    assert "--trace-file" in done.err


def test_a_trace_file_may_be_a_pipe(tmp_path: Path) -> None:
    """Its reader gets every line; without one the chat says so at once, and does not wait for one."""
    pipe, agent = tmp_path / "pipe", scripted_agent(tmp_path, *SCRIPT)
    os.mkfifo(pipe)
    done = run(["chat", agent, "--trace-file", pipe, "-m", "hi"], timeout=20)
    assert (done.code, done.err) == (2, f"error: --trace-file {pipe}: nobody reads this pipe: start its reader first\n")
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = run(["chat", agent, "--trace-file", pipe, "-m", "hi"], timeout=20)
    assert done.code == 0
    assert os.read(reading, 1_000_000).count(b"invoke_agent") >= 1
    os.close(reading)


def test_the_local_model_answers_and_is_measured(tmp_path: Path) -> None:
    """A real model in process answers, with real token counts on its spans."""
    from holodeck.backends.model_store import installed

    if installed("smollm2", os.environ) is None:
        if os.environ.get("HOLODECK_REQUIRE_MODEL"):
            pytest.fail("the local model is not there: holodeck models pull smollm2")
        pytest.skip("the local model is not there: holodeck models pull smollm2")
    out = tmp_path / "t.jsonl"
    path = tmp_path / "agent.yaml"
    path.write_text("name: tiny\nmodel: {provider: local, name: smollm2, temperature: 0.0, max_tokens: 40}\n", encoding="utf-8")
    cache = {"HOLODECK_CACHE_DIR": str(installed("smollm2", os.environ).parents[1])}
    done = run(["chat", path, "--trace-file", out, "-m", "Say hello.", "-m", "And again."], env=cache, timeout=120)
    assert done.code == 0
    assert done.out.strip()
    chats = [s for s in traces(out) if s["name"].startswith("chat")]
    counts = [int(a["value"]["intValue"]) for s in chats for a in s["attributes"] if a["key"] == "gen_ai.usage.output_tokens"]
    assert len(counts) == 2
    assert all(0 < n <= 40 for n in counts)
    answered = {a["value"]["stringValue"] for s in chats for a in s["attributes"] if a["key"] == "gen_ai.response.model"}
    assert answered == {"smollm2"}  # and no path of this machine


def test_help_and_version_import_next_to_nothing() -> None:
    """--help and --version load neither Semantic Kernel, OpenTelemetry, openai, pydantic, rich nor prompt_toolkit."""
    # The command ends with os._exit, so the imports are looked at in an atexit callback.
    program = (
        "import atexit, sys\n"
        "from holodeck.cli.main import main\n"
        "atexit.register(lambda: sys.stderr.write('|'.join(sorted(set(sys.modules)))))\n"
        "main()\n"
    )
    for flag in ("--help", "--version"):
        done = subprocess.run([sys.executable, "-c", program, flag], capture_output=True, text=True, check=False)
        loaded = set(done.stderr.split("|"))
        assert "click" in loaded
        assert not {"semantic_kernel", "opentelemetry", "openai", "pydantic", "rich", "prompt_toolkit", "yaml"} & loaded
