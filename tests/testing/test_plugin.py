"""The pytest plugin through the door: real pytest runs, as a project that installs HoloDeck has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.scripts import scripted_agent


def run_pytest(directory: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    """Run pytest in ``directory``; exit code and output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *arguments]
    keep = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=directory, env=keep | environ, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with an agent, and no settings for pytest."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    scripted_agent(tmp_path, {"text": "Hello.", "repeat": True})
    return tmp_path


def write(project: Path, name: str, text: str) -> None:
    """Write a test file."""
    (project / name).write_text(text, encoding="utf-8")


def test_a_failure_shows_what_the_agent_did(project: Path) -> None:
    """The test's own line, the nearest match, each message with its waterfall and answer; the others pass; nothing warns."""
    write(
        project,
        "test_agent.py",
        """\
LOOK_UP = {"tool_calls": [{"name": "lookup", "arguments": {"order_id": "1042"}}]}

def test_fails(chat):
    conversation = chat(script=["Good morning.", LOOK_UP, "It shipped."])
    conversation.send("Hello")
    trace = conversation.send("Where is 1043?")
    trace.tool("lookup", order_id="1043")

def test_passes(chat):
    assert chat().send("Hi").text == "Hello."

def test_needs_no_agent():
    assert True
""",
    )
    code, output = run_pytest(project)
    assert code == 1
    assert "1 failed, 2 passed" in output
    assert '>       trace.tool("lookup", order_id="1043")' in output
    assert 'E       AssertionError: lookup(order_id="1043") was not called; the nearest call is lookup(order_id="1042")' in output
    shown = output.partition("HoloDeck traces")[2]
    for line in (
        "> Hello\ninvoke_agent support",
        "< Good morning.",
        "> Where is 1043?\ninvoke_agent support",
        "├─ execute_tool lookup",
        "< It shipped.",
    ):
        assert line in shown
    assert "def tool(" not in output


def test_what_a_model_says_does_not_reach_the_terminal_raw(project: Path) -> None:
    """Escape sequences in messages and answers are left out where pytest shows the traces."""
    write(
        project,
        "test_escapes.py",
        """\
def test_fails(chat):
    assert chat(script=["\\x1b[31mred\\x1b]0;title\\x07 answer"]).send("hi").error is not None
""",
    )
    code, output = run_pytest(project)
    assert (code, "< red answer" in output) == (1, True), output
    assert "\x1b" not in output


def test_it_works_beside_a_global_provider_and_in_several_processes(project: Path) -> None:
    """With providers set for the process, a current span elsewhere, hostile variables and -n 3, every test sees its own spans only."""
    write(
        project,
        "conftest.py",
        """\
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

class Refuses:
    def on_start(self, span, parent_context=None): raise AssertionError("a span of an agent went to the global provider")
    def on_end(self, span): pass
    def _on_ending(self, span): pass
    def shutdown(self): pass
    def force_flush(self, timeout_millis=0): return True

def pytest_configure():
    provider = TracerProvider()
    provider.add_span_processor(Refuses())
    trace.set_tracer_provider(provider)
""",
    )
    write(
        project,
        "test_many.py",
        """\
import pytest

@pytest.mark.parametrize("number", range(12))
@pytest.mark.holodeck(sequential_ids=True, fake_clock=True)
def test_own_spans(number, chat, telemetry):
    trace = chat(script=[f"Answer {number}."]).send("Hi")
    assert (trace.text, trace.result.trace_id, len(telemetry.spans)) == (f"Answer {number}.", f"{1:032x}", 2)
""",
    )
    code, output = run_pytest(project, "-n", "3", OTEL_SDK_DISABLED="true", OTEL_TRACES_EXPORTER="otlp", OTEL_TRACES_SAMPLER="always_off")
    assert (code, "12 passed" in output) == (0, True), output


def test_a_span_that_leaks_fails_its_test(project: Path) -> None:
    """A span that is still current or open says which it is, in the test that left it."""
    write(
        project,
        "test_leaks.py",
        """\
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider

def test_open(telemetry):
    provider = TracerProvider()
    provider.add_span_processor(telemetry.options()["span_processors"][0])
    provider.get_tracer("t").start_span("left open")

def test_current(telemetry):
    span = TracerProvider().get_tracer("t").start_span("forgotten")
    context.attach(trace.set_span_in_context(span))

def test_next_one_is_told(telemetry):
    pass
""",
    )
    code, output = run_pytest(project)
    assert code == 1
    assert "a span is current after the test: forgotten" in output
    assert "a span is current before the test: forgotten" in output
    assert "spans are still open after the test: left open" in output


def test_wrong_markers_and_scripts_are_errors(project: Path) -> None:
    """A misspelt option does not silently do nothing."""
    write(
        project,
        "test_marks.py",
        """\
import pytest

@pytest.mark.holodeck(sequential=True)
def test_unknown(chat):
    pass

@pytest.mark.holodeck("agent.yaml")
def test_positional(chat):
    pass

def test_bad_script(chat):
    chat(script=[{"text": "x", "fualt": {}}])

@pytest.mark.holodeck(script=["From the marker."])
class TestMarked:
    def test_class(self, chat):
        assert chat().send("x").text == "From the marker."

    @pytest.mark.holodeck(script=["Nearer."])
    def test_method(self, chat):
        assert chat().send("x").text == "Nearer."
""",
    )
    code, output = run_pytest(project)
    assert code == 1
    assert "@pytest.mark.holodeck: sequential is unknown; there are agent, fake_clock, script, sequential_ids" in output
    assert "@pytest.mark.holodeck: arguments need names" in output
    assert "script.yaml:3: replies[0].fualt: unknown key; did you mean 'fault'?" in output
    assert "2 passed" in output


def test_an_unrelated_suite_pays_next_to_nothing(project: Path) -> None:
    """Importing the plugin costs at most 20 ms of CPU over pytest itself, and imports nothing heavy."""
    code = """\
import sys, time
import pytest
before, start = set(sys.modules), time.process_time()
import holodeck.testing.plugin
print(time.process_time() - start, *sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *modules = done.stdout.split()
    assert float(seconds) <= 0.02
    assert not {"pydantic", "opentelemetry", "semantic_kernel", "openai", "yaml", "rich", "click", "asyncio"} & set(modules)


def test_interrupted_turns_end(project: Path) -> None:
    """A test that is stopped in the middle of a turn leaves no open span and does not hang."""
    write(
        project,
        "test_slow.py",
        """\
import pytest

@pytest.mark.timeout(3, method="signal", func_only=True)
def test_slow(chat):
    chat(script=[{"text": "Too late.", "delay": 60}]).send("Hi")
""",
    )
    code, output = run_pytest(project)
    assert code == 1
    assert "Timeout" in output
    assert "still open" not in output
    assert "1 failed" in output
