"""``holodeck doctor`` as it is used."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from support.agents import write_agent
from support.command import HOLODECK, Terminal, run
from support.model_server import ModelServer
from support.net import unused_port
from support.otlp_receiver import OtlpReceiver
from support.scripts import scripted_agent
from support.strangers import Page

_MCP_SERVER = Path(__file__).parents[1] / "tools" / "mcp_example_server.py"
_REPLY = {"text": "hi"}


def _checks(*arguments, **options):
    result = run(["doctor", *arguments, "--json"], **options)
    report = json.loads(result.out)
    assert result.code == (0 if report["ok"] else 1)
    return report, {check["name"]: check for check in report["checks"]}


def test_all_is_well(tmp_path):
    """Every part has its line, and nothing is sent while telemetry stays in the terminal."""
    with OtlpReceiver() as receiver:
        result = run(["doctor", scripted_agent(tmp_path, _REPLY)], env={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url})
        assert receiver.raw == []
        assert receiver.http_connections == 0
    assert (result.code, result.err) == (0, "")
    assert "✓ agent file: " in result.out
    assert "✓ model: scripted/script\n" in result.out
    assert "✓ tool lookup: function\n" in result.out
    assert "- canary: telemetry stays in this terminal" in result.out
    assert result.out.endswith("all is well\n")
    assert "\x1b" not in result.out


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_canary_is_accepted(tmp_path, protocol):
    """With --observability a span and a measurement go to the endpoint, and it is said who took them."""
    agent = scripted_agent(tmp_path, _REPLY)
    with OtlpReceiver() as receiver:
        url = receiver.grpc_url if protocol == "grpc" else receiver.http_url
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        report, checks = _checks(agent, "--observability", env=environment)
        [span] = receiver.spans
        assert [metric.name for metric in receiver.metrics] == ["holodeck.doctor.canary"]
    assert report["ok"]
    assert checks["canary span"]["detail"].startswith(f"accepted by {url}")
    assert ("gRPC OK" if protocol == "grpc" else "HTTP 200") in checks["canary span"]["detail"]
    assert f"http://localhost:16686/trace/{span.trace_id}" in checks["canary span"]["detail"]
    assert checks["canary metric"]["status"] == "ok"


def test_every_setting_has_its_source_and_no_secret(tmp_path):
    """Flag, environment, agent file or default stand beside each; headers, keys and tokens are nowhere."""
    agent = write_agent(
        tmp_path,
        tools=[],
        model={"api_key": "sk-canary-0123456789abcdef"},
        observability={"service_name": "from-file", "exporters": {"otlp": {"timeout_ms": 2500}}},
    )
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://user:hunter2@127.0.0.1:{unused_port()}/base?token=hunter3",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=hunter4",
        "OTEL_RESOURCE_ATTRIBUTES": "api_key=hunter5,team=shop",
    }
    result = run(["doctor", agent, "--observability", "--json"], env=environment)
    settings = {row["name"]: (row["value"], row["source"]) for row in json.loads(result.out)["settings"]}
    assert settings["otlp"] == ("true", "flag --observability")
    assert settings["resource.service.name"] == ("from-file", "agent file")
    assert settings["resource.team"] == ("shop", "env OTEL_RESOURCE_ATTRIBUTES")
    assert settings["traces.timeout"] == ("2.5 s", "agent file")
    assert settings["traces.headers"][0].startswith("x-api-key=[redacted]")
    assert settings["sampler"] == ("parentbased_always_on", "default")
    plain = run(["doctor", agent, "--observability"], env=environment)
    for secret in ("hunter2", "hunter3", "hunter4", "hunter5", "canary-0123"):
        assert secret not in result.out + result.err + plain.out + plain.err


def test_a_key_that_is_missing_is_one_finding_among_others(tmp_path):
    """The rest is checked all the same, and nothing is asked of the model's server."""
    with ModelServer() as server:
        path = write_agent(tmp_path, server, provider="anthropic", model={"api_key": None}, tools=["lookup_order"])
        _, checks = _checks(path)
        assert server.requests == []
        assert checks["key"]["status"] == "failed"
        assert "ANTHROPIC_API_KEY" in checks["key"]["detail"]
        assert checks["tool lookup_order"]["status"] == "ok"
        _, checks = _checks(path, env={"ANTHROPIC_API_KEY": "hunter2hunter2"})
    assert checks["key"] == {"name": "key", "status": "ok", "detail": "ANTHROPIC_API_KEY is set", "fix": ""}


def test_the_models_server_is_asked_without_spending_a_token(tmp_path):
    """It is asked for its models and for nothing else."""
    listed = json.dumps({"data": [{"id": "test-model"}]}).encode()
    with Page(200, listed, {"content-type": "application/json"}) as page:
        agent = write_agent(tmp_path, tools=[], model={"endpoint": f"{page.base_url}/v1"})
        _, checks = _checks(agent)
        assert checks["endpoint"]["status"] == "ok"
        assert "and has test-model" in checks["endpoint"]["detail"]
        _, checks = _checks(write_agent(tmp_path, tools=[], model={"endpoint": f"{page.base_url}/v1", "name": "other"}))
        assert (checks["endpoint"]["status"], "does not list other" in checks["endpoint"]["detail"]) == ("warning", True)
        assert set(page.requests) == {("GET", "/v1/models")}
    with Page(401) as page:
        _, checks = _checks(write_agent(tmp_path, tools=[], model={"endpoint": f"{page.base_url}/v1"}))
    assert "does not accept the key" in checks["endpoint"]["detail"]
    _, checks = _checks(write_agent(tmp_path, tools=[]))
    assert (checks["endpoint"]["status"], "nobody listens" in checks["endpoint"]["detail"]) == ("failed", True)


def test_tools_are_loaded_and_servers_started_within_a_bound(tmp_path):
    """What works, what does not load, and what never answers, each on its line; what is printed meanwhile spoils no report."""
    tools = [
        {"name": "files", "type": "mcp", "command": sys.executable, "args": [str(_MCP_SERVER), "stdio"]},
        {"name": "mute", "type": "mcp", "command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]},
        {"name": "nobody", "type": "mcp", "command": "there-is-no-such-command"},
    ]
    agent = scripted_agent(tmp_path, _REPLY, tools=tools)
    with (tmp_path / "tools.py").open("a", encoding="utf-8") as file:
        file.write("print('loaded')\n")
    report, checks = _checks(agent, "--timeout", "8")
    assert not report["ok"]
    assert checks["tool lookup"]["status"] == "ok"
    assert re.search(r"offers \d+ tools: ", checks["tool files"]["detail"])
    assert (checks["tool mute"]["status"], "8 s" in checks["tool mute"]["detail"]) == ("failed", True)
    assert re.search(r"agent\.yaml:\d+: tools\[7\]\.command: .*there-is-no-such-command", checks["tool nobody"]["detail"])


def test_an_agent_file_that_cannot_be_used(tmp_path):
    """That is a finding with line and key, not the end of the visit."""
    agent = tmp_path / "agent.yaml"
    agent.write_text("name: x\nmodle: {provider: openai}\n", encoding="utf-8")
    report, checks = _checks(agent)
    assert "agent.yaml:2: modle" in checks["agent file"]["detail"]
    assert checks["queue"]["status"] == "ok"
    assert not report["ok"]


@pytest.mark.parametrize("columns", [80, 40])
def test_the_report_fits_the_terminal(tmp_path, columns):
    """No word is cut, at 80 and at 40 columns."""
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{unused_port()}"}
    agent = scripted_agent(tmp_path, _REPLY)
    with Terminal(["doctor", agent, "--observability"], columns=columns, lines=120, env=environment) as terminal:
        assert terminal.wait_exit(30) == 1
        shown = terminal.screen
    words = " ".join(" ".join(shown).split())
    assert "start the collector, or name the port on which it listens" in words
    assert "2 of 11 checks failed" in words
    assert "will be made when it is needed (mode 0700" in words or columns == 40  # where the path is broken anywhere
    assert all(len(line) <= columns for line in shown)
    assert not any(re.search(r"\bobservab$|\bdefaul$", line) for line in shown)


def _state(directory, *, limit=""):
    """What the doctor says of a state directory."""
    command = f'{limit} exec "$0" doctor --json'
    result = run(["-c", command, HOLODECK], program=["bash"], env={"HOLODECK_STATE_DIR": str(directory)})
    checks = {check["name"]: check for check in json.loads(result.out)["checks"]}
    return result.code, checks["state directory"]


def test_the_state_directory(tmp_path):
    """It can be made, or written to: with its mode, and nothing is left in it."""
    state = tmp_path / "new" / "state"
    code, check = _state(state)
    assert (code, check["status"]) == (0, "ok")
    assert re.fullmatch(rf"{state} will be made when it is needed \(mode 0700; [\d,]+ MB free\)", check["detail"])
    assert not state.parent.exists()
    state.mkdir(parents=True, mode=0o700)
    code, check = _state(state)
    assert (code, check["status"]) == (0, "ok")
    assert check["detail"].startswith(f"{state} can be written to (mode 0700; ")
    state.chmod(0o777)
    code, check = _state(state)
    assert (code, check["status"], check["fix"]) == (0, "warning", f"chmod 700 {state}")
    assert list(state.iterdir()) == []


def test_a_state_directory_that_cannot_be_used(tmp_path):
    """A file in its place or above it, a disk that takes nothing: that fails, with what to do."""
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    for directory, limit, words in (
        (tmp_path / "file", "", "is no directory"),
        (tmp_path / "file" / "below", "", f"cannot be made: {tmp_path / 'file'} is no directory"),
        (tmp_path / "full", "ulimit -f 0;", "cannot be written to (File too large)"),
    ):
        code, check = _state(directory, limit=limit)
        assert (code, check["status"]) == (1, "failed")
        assert words in check["detail"]
        assert "set HOLODECK_STATE_DIR to a directory you may write to" in check["fix"]


def test_usage_errors():
    """An option that is not there is exit code 2."""
    assert run(["doctor", "--nope"]).code == 2
    assert run(["doctor", "--timeout", "0"]).code == 2


def test_a_setting_that_means_nothing(tmp_path):
    """It is one line among the findings."""
    report, checks = _checks("--observability", env={"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    assert "OTEL_EXPORTER_OTLP_PROTOCOL" in checks["telemetry settings"]["detail"]
    assert not report["ok"]
