"""The way from a turn to Jaeger."""

from __future__ import annotations

import re

import pytest

from support.command import Terminal, run
from support.otlp_receiver import OtlpReceiver
from support.scripts import scripted_agent


@pytest.fixture
def agent(tmp_path):
    """An agent that answers twice."""
    return scripted_agent(tmp_path, {"text": "first"}, {"text": "second"})


def test_trace_prints_the_address_in_full(agent):
    """Of the turn that is shown, on one line; the agent file and the environment say where Jaeger is."""
    with OtlpReceiver() as receiver:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        arguments = ["chat", agent, "--observability", "-m", "one", "-m", "two", "-m", "/trace 1"]
        said = run(arguments, env=environment).err
        first = re.findall(r"· trace ([0-9a-f]{32})", said)[0]
        assert f"in Jaeger: http://localhost:16686/trace/{first}\n" in said
        said = run(arguments, env=environment | {"HOLODECK_JAEGER_URL": "https://jaeger.example.com/ui/"}).err
        assert re.search(r"^in Jaeger: https://jaeger\.example\.com/ui/trace/[0-9a-f]{32}$", said, re.MULTILINE)
        assert "in Jaeger" not in run(arguments, env=environment | {"HOLODECK_JAEGER_URL": "none"}).err


def test_without_observability_there_is_no_link(agent):
    """Jaeger knows nothing of such a turn."""
    assert "in Jaeger" not in run(["chat", agent, "-m", "one", "-m", "/trace"], env={"HOLODECK_JAEGER_URL": "http://localhost:1"}).err


def test_the_footers_id_is_a_link_in_a_terminal(agent):
    """OSC 8 with the address; in a pipe nothing of it."""
    with OtlpReceiver() as receiver:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        with Terminal(["chat", agent, "--observability"], env=environment, columns=120) as terminal:
            terminal.wait_for("> ")
            terminal.line("one")
            terminal.wait_for(re.compile(r"trace [0-9a-f]{32}"), timeout=30)
            assert re.search(rb"\x1b\]8;[^;]*;http://localhost:16686/trace/[0-9a-f]{32}\x1b\\", terminal.raw)
        assert "]8;" not in run(["chat", agent, "--observability", "-m", "one"], env=environment).err


def test_an_address_that_is_none_is_refused(agent):
    """One line, exit 2."""
    result = run(["chat", agent, "--observability", "-m", "one"], env={"HOLODECK_JAEGER_URL": "localhost:16686"})
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: HOLODECK_JAEGER_URL: [^\n]+\n", result.err)
