"""Whatever a provider, a tool, a file or the environment holds: no traceback, nothing raw on a terminal, spans that can be exported."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from holodeck import Session, load_agent
from holodeck.config import load_agent_config, resolve_telemetry
from holodeck.errors import ConfigError
from holodeck.lib.validation import terminal_safe
from holodeck.models.events import TurnResult
from holodeck.models.observability import ObservabilityConfig
from holodeck.telemetry import create_telemetry
from holodeck.testing.memory import LogCollector
from support.answers import NEXT
from support.model_server import Call, ModelServer, Reply

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e01ef]")
ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates and controls included
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
TOOL = '''
from support.answers import NEXT

def echo(**anything) -> object:
    """Returns whatever the test wants."""
    return NEXT[0]
'''


class Encoding(SpanExporter):
    """Encodes each span as an exporter would, and fails the test if that cannot be done."""

    def __init__(self) -> None:
        self.sent = 0

    def export(self, spans: list[ReadableSpan]) -> SpanExportResult:
        """Encode and decode."""
        request = encode_spans(spans)
        assert type(request).FromString(request.SerializeToString()) == request
        self.sent += len(spans)
        return SpanExportResult.SUCCESS


class World:
    """An agent on a real HTTP model endpoint, with a tool that returns anything; one session for each message."""

    def __init__(self, directory: Path) -> None:
        (directory / "tools.py").write_text(TOOL, encoding="utf-8")
        self.server = ModelServer()
        self.exporter = Encoding()
        self.loop = asyncio.new_event_loop()
        self.directory = directory

    def __enter__(self) -> Self:
        """Start."""
        self.server.__enter__()
        data = {
            "name": "any",
            "model": {"provider": "openai", "name": "m", "endpoint": self.server.url, "timeout": 5},
            "tools": [
                {
                    "name": "echo",
                    "type": "function",
                    "file": "tools.py",
                    "function": "echo",
                    "parameters": {"type": "object", "properties": {}},
                }
            ],
            "observability": {"traces": {"capture_content": True}},
        }
        (self.directory / "agent.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        options = {"span_processors": [SimpleSpanProcessor(self.exporter)]}
        self.agent = load_agent(self.directory / "agent.yaml", environ={}, telemetry_options=options)
        self.loop.run_until_complete(self.agent.open())
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.loop.run_until_complete(self.agent.close())
        self.loop.close()
        self.server.__exit__(None, None, None)

    def say(self, *replies: Reply, result: Any = None) -> TurnResult:
        """One turn, in which the model gives ``replies`` and the tool returns ``result``."""
        NEXT[0] = result
        left = iter(replies)
        self.server.respond = lambda _request: next(left, Reply(text="done"))

        async def turn() -> TurnResult:
            async with Session(self.agent) as session:
                return await session.send("hi")

        return self.loop.run_until_complete(turn())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One world for all examples."""
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made


def harmless(result: TurnResult) -> None:
    """What holds for every turn."""
    texts = [result.message.content if result.message else "", result.error.message if result.error else ""]
    texts += [str(value) for call in result.tool_calls for value in (call.result, call.error_message, call.tool_name) if value]
    for text in texts:
        assert not RAW.search(terminal_safe(text))
        assert "Traceback" not in text
    for call in result.tool_calls:
        assert not RAW.search(call.result or "")
    result.model_dump_json()


ONE_WORLD = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ONE_WORLD
@given(text=ANY_TEXT, identity=ANY_TEXT, model=ANY_TEXT, reason=ANY_TEXT)
def test_any_text_of_a_provider(world: World, text: str, identity: str, model: str, reason: str) -> None:
    """Any reply text, id, model name and finish reason make a turn whose spans can be exported."""
    before = world.exporter.sent
    harmless(world.say(Reply(text=text, id=identity, model=model, finish_reason=reason or "stop")))
    assert world.exporter.sent == before + 2


@ONE_WORLD
@given(name=ANY_TEXT, raw=ANY_TEXT, identity=ANY_TEXT)
def test_any_tool_call_of_a_provider(world: World, name: str, raw: str, identity: str) -> None:
    """Any tool name, argument text and call id are refused or run, never more."""
    before = world.exporter.sent
    harmless(world.say(Reply(tool_calls=[Call(name or "x", raw=raw, id=identity or "c")]), Reply(text="done")))
    assert world.exporter.sent == before + 4


@ONE_WORLD
@given(arguments=st.dictionaries(ANY_TEXT, ANY_JSON, max_size=3))
def test_any_arguments(world: World, arguments: dict[str, Any]) -> None:
    """Any JSON object as arguments makes a turn whose spans can be exported."""
    before = world.exporter.sent
    harmless(world.say(Reply(tool_calls=[Call("echo", arguments, id="c")]), Reply(text="done")))
    assert world.exporter.sent == before + 4


@ONE_WORLD
@given(result=ANY_JSON | st.binary(max_size=20) | st.sampled_from([object(), {1, 2}, 2**70, b"\xff", float("nan"), ...]))
def test_any_result_of_a_tool(world: World, result: Any) -> None:
    """Whatever a tool returns reaches the model as text, and its span can be exported."""
    turn = world.say(Reply(tool_calls=[Call("echo", {}, id="c")]), Reply(text="done"), result=result)
    harmless(turn)
    assert turn.error is None
    assert [call.status.value for call in turn.tool_calls] == ["success"]


VARIABLES = [
    "OTEL_SDK_DISABLED",
    "OTEL_CONFIG_FILE",
    "OTEL_PROPAGATORS",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    *(f"OTEL_{signal}_EXPORTER" for signal in ("TRACES", "METRICS", "LOGS")),
    *(
        f"OTEL_EXPORTER_OTLP_{signal}{name}"
        for signal in ("", "TRACES_", "METRICS_", "LOGS_")
        for name in (
            *("ENDPOINT", "PROTOCOL", "HEADERS", "TIMEOUT", "COMPRESSION", "INSECURE"),
            *("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"),
        )
    ),
    *(
        f"OTEL_{processor}_{name}"
        for processor in ("BSP", "BLRP")
        for name in ("MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "SCHEDULE_DELAY", "EXPORT_TIMEOUT")
    ),
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_METRIC_EXPORT_TIMEOUT",
    "OTEL_METRICS_EXEMPLAR_FILTER",
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
    *(f"OTEL_{kind}ATTRIBUTE_COUNT_LIMIT" for kind in ("", "SPAN_", "EVENT_", "LINK_", "LOGRECORD_")),
    *(f"OTEL_{kind}ATTRIBUTE_VALUE_LENGTH_LIMIT" for kind in ("", "SPAN_", "LOGRECORD_")),
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
    "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT",
    "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED",
    "OTEL_PYTHON_TRACER_PROVIDER",
    "OTEL_PYTHON_METER_PROVIDER",
]
# Without OTLP only these can stop a chat: the first decides whether content is recorded, with the others it would never begin.
ALWAYS_STRICT = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "OTEL_PYTHON_TRACER_PROVIDER", "OTEL_PYTHON_METER_PROVIDER"}
ODD = ["http://", "http://[::1", "h:4317", "1e999", "-1", "0", "999999999999999", "%zz=1", "a=b=c", "zipkin", "none,otlp"]
ANY_VALUE = st.text(st.characters(exclude_characters="\x00"), max_size=40) | st.sampled_from(ODD)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(VARIABLES), value=ANY_VALUE)
def test_any_value_of_an_otel_variable(name: str, value: str) -> None:
    """Any value is a setting from which telemetry can be made, or one clear error that is a single line."""
    said = ""
    try:
        resolved = resolve_telemetry(ObservabilityConfig(), {name: value}, observability=True)
        nowhere = resolved.model_copy(update=dict.fromkeys(("traces", "metrics", "logs")))
        create_telemetry(nowhere, metric_readers=[InMemoryMetricReader()], log_processors=[LogCollector()]).shutdown()
    except ConfigError as error:
        said = error.message
        assert name in said or name.replace("OTLP_TRACES", "OTLP").replace("OTLP_METRICS", "OTLP").replace("OTLP_LOGS", "OTLP") in said
    assert "\n" not in said
    assert not RAW.search(said)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from([name for name in VARIABLES if name not in ALWAYS_STRICT]), value=ANY_VALUE)
def test_no_value_of_an_otel_variable_stops_a_chat_that_sends_nothing(name: str, value: str) -> None:
    """Where nothing leaves over OTLP a value that means nothing is at most a warning, of one line."""
    assume(name != "OTEL_TRACES_EXPORTER" or "otlp" not in value.lower())
    resolved = resolve_telemetry(ObservabilityConfig(), {name: value})
    assert resolved.traces is resolved.metrics is resolved.logs is None
    assert not any(RAW.search(line) or "\n" in line for line in resolved.warnings)


FILES = (
    st.binary(max_size=200)
    | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))
    | ANY_JSON.map(lambda value: yaml.dump({"name": value}, allow_unicode=True).encode("utf-8", "surrogatepass"))
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=FILES)
def test_any_agent_file(tmp_path: Path, content: bytes) -> None:
    """Any bytes are an agent, or one clear error that names the file."""
    path = tmp_path / "agent.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load_agent_config(path, {})
    assert str(path) in raised.value.message
    assert "\n" not in raised.value.message
    assert not RAW.search(raised.value.message)
