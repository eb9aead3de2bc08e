"""What things may cost, in figures that are the same on every machine: modules imported, calls made, blocks kept, spans and bytes written.

A budget is what is needed today plus the headroom that its comment names. One that is exceeded means that something became dearer: make it
cheaper, or raise the budget and say in the commit what it buys. Times are measured by ``make bench``, not here.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelReply
from holodeck.models.observability import TelemetrySettings
from holodeck.telemetry import create_telemetry
from support.telemetry import CALL, ENDPOINT, EXECUTION, HISTORY, RESOURCE, SPEC, USAGE, agent_config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holodeck.telemetry import Telemetry

SUPPORT = str(Path(__file__).parent.parent / "examples" / "support" / "agent.yaml")
ASK = ["chat", SUPPORT, "-m", "Where is order 1042?"]

# What costs more than a hundredth of a second to import, and is not needed everywhere.
HEAVY = [
    "aiohttp",
    "aiortc",
    "anthropic",
    "asyncio",
    "av",
    "azure",
    "cryptography",
    "docstring_parser",
    "google",
    "grpc",
    "httpx",
    "httpx2",
    "jinja2",
    "jsonschema",
    "mcp",
    "numpy",
    "ollama",
    "openai",
    "opentelemetry",
    "prompt_toolkit",
    "pybars",
    "pydantic",
    "pygments",
    "requests",
    "rich",
    "scipy",
    "semantic_kernel",
    "starlette",
    "xllamacpp",
    "yaml",
]


def imported(code: str, tmp_path: Path) -> tuple[int, set[str]]:
    """How many modules an interpreter has after ``code`` that it did not have before, and which of the heavy ones are among them."""
    program = (
        f"import sys\nbefore = set(sys.modules)\n{code}\nnew = set(sys.modules) - before\n"
        f"import json\nprint('\\n@' + json.dumps([len(new), [name for name in {HEAVY!r} if name in new]]))"
    )
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "OTEL_SDK_DISABLED": "", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100, env=home, stdin=subprocess.DEVNULL
    )
    line = next((line for line in (done.stdout + done.stderr).splitlines() if line.startswith("@[")), "")
    assert line, done.stderr
    count, names = json.loads(line[1:])
    return count, set(names)


def command(*arguments: str) -> str:
    """Code that runs the command in this interpreter."""
    return f"from holodeck.cli.main import run\nrun({list(arguments)!r})"


SHELL = f"import holodeck.cli.run, holodeck.cli.shell\nfrom holodeck.api import load_agent\nload_agent({SUPPORT!r})"
OPENAI = "from holodeck.backends.kernel import load\nload('holodeck.backends.openai')"

# Modules: needed today + about 15 %, which leaves room for a feature and for other Python versions.
GRAPHS = {
    "--help": (command("--help"), 95, set()),
    "--version": (command("--version"), 85, set()),
    "chat --help": (command("chat", "--help"), 100, set()),
    "schema": (command("schema"), 290, {"pydantic", "yaml"}),
    "models list": (command("models", "list"), 400, {"asyncio", "pydantic", "rich", "yaml"}),
    "prompt": (SHELL, 750, {"asyncio", "docstring_parser", "jsonschema", "prompt_toolkit", "pydantic", "rich", "yaml"}),
    "openai client": (
        OPENAI,
        900,
        {"aiohttp", "asyncio", "httpx2", "numpy", "openai", "opentelemetry", "pydantic", "semantic_kernel", "yaml"},
    ),
    "scripted turn": (
        command(*ASK),
        1200,
        {"aiohttp", "asyncio", "docstring_parser", "httpx2", "jsonschema", "numpy", "openai", "opentelemetry", "pydantic", "rich"}
        | {"semantic_kernel", "yaml"},
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_command_imports_what_it_needs_and_no_more(name: str, tmp_path: Path) -> None:
    """Each command stays within its number of modules and loads no heavy package that is not on its list."""
    code, budget, allowed = GRAPHS[name]
    count, heavy = imported(code, tmp_path)
    assert heavy <= allowed
    assert count <= budget


class Null(SpanExporter):
    """Takes spans and forgets them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Accept."""
        return SpanExportResult.SUCCESS


def telemetry_into(exporter: SpanExporter, *, capture: bool = False) -> Telemetry:
    """Telemetry that ends in ``exporter``."""
    settings = TelemetrySettings(resource=RESOURCE, console=False, capture_content=capture)
    return create_telemetry(settings, span_processors=[SimpleSpanProcessor(exporter)], metric_readers=[InMemoryMetricReader()])


def new_session() -> ChatSession:
    """A session without a history: telemetry reads none."""
    number = UUID("00000000-0000-4000-8000-000000000001")
    return ChatSession.model_construct(agent_config=agent_config(), state=SessionState.ACTIVE, message_count=0, session_id=number)


QUESTION = Message(role=MessageRole.USER, content="Where is order 1042?")
REPLY = ModelReply(text="Shipped.", finish_reason="stop", response_id="r-1", response_model="gpt-x", usage=USAGE)
ANSWER = Message(role=MessageRole.ASSISTANT, content="Shipped.", tool_calls=[EXECUTION], tokens_used=USAGE)
RESULT = TurnResult(number=1, message=ANSWER, tool_calls=[EXECUTION], usage=USAGE, model_requests=2)


def record_turn(telemetry: Telemetry, session: ChatSession) -> None:
    """Two requests, a tool between them, and the root."""
    with telemetry.turn(session, 1, QUESTION) as turn:
        for part in (1, 2):
            with turn.request(ENDPOINT, lambda: HISTORY, [SPEC]) as request:
                request.first_chunk()
                request.answered(REPLY)
            if part == 1:
                with turn.tool(CALL, SPEC) as tool:
                    tool.finished(EXECUTION)
        turn.finished(RESULT)


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions ``work`` calls, Python's and C's, in this thread."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


# Calls: needed today (2,700 and 6,600 on Python 3.11) + about a quarter, since other versions of Python and of the SDK count differently.
@pytest.mark.parametrize(("capture", "budget"), [(False, 3_400), (True, 8_200)], ids=["no content", "content captured"])
def test_recording_a_turn_makes_a_bounded_number_of_calls(capture: bool, budget: int) -> None:
    """What telemetry does for a turn of two requests and a tool, in calls."""
    telemetry, session = telemetry_into(Null(), capture=capture), new_session()
    for _ in range(3):
        record_turn(telemetry, session)
    assert calls_of(lambda: record_turn(telemetry, session)) <= budget


def test_recording_keeps_nothing_of_a_turn() -> None:
    """Turns leave no memory behind: fewer than one block in three turns, once the metrics know their attributes."""
    telemetry, session = telemetry_into(Null()), new_session()
    for _ in range(50):
        record_turn(telemetry, session)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(300):
        record_turn(telemetry, session)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100


# Bytes: needed today + a fifth, for an attribute or two more.
@pytest.mark.parametrize(("capture", "budget"), [(False, 3_200), (True, 4_800)], ids=["no content", "content captured"])
def test_a_turn_is_four_spans_of_bounded_size(capture: bool, budget: int) -> None:
    """A span for the turn, each request and each tool, and no other; their size as OTLP in bytes."""
    exporter = InMemorySpanExporter()
    record_turn(telemetry_into(exporter, capture=capture), new_session())
    spans = exporter.get_finished_spans()
    assert sorted(span.name.split(" ")[0] for span in spans) == ["chat", "chat", "execute_tool", "invoke_agent"]
    assert encode_spans(spans).ByteSize() <= budget
