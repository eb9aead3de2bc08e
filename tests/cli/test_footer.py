"""The line under an answer."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from holodeck.cli.console import Notes
from holodeck.cli.footer import facts_of, show_footer, show_link, trace_link
from holodeck.config import resolve_telemetry
from holodeck.models.events import TurnResult
from holodeck.models.observability import ObservabilityConfig, TelemetrySettings
from holodeck.models.token_usage import TokenUsage
from holodeck.models.tool_execution import ToolExecution

_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def _settings(url: str, **environ: str) -> TelemetrySettings:
    return resolve_telemetry(ObservabilityConfig(), {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url, **environ}, observability=True)


def test_every_fact_is_there():
    """Duration, time to first token, tokens in and out, tools with those that failed."""
    calls = [ToolExecution(tool_name="a").running().succeeded("x", 0.1), ToolExecution(tool_name="b").failed("x", 0.1)]
    result = TurnResult(
        number=1, duration=2.411, time_to_first_token=0.812, usage=TokenUsage.of(1412, 96), tool_calls=calls, model_requests=2
    )
    assert list(facts_of(result, ascii_only=False)) == ["2.41 s", "first token 812 ms", "1,412 + 96 tokens", "2 tools (1 failed)"]


def test_what_is_not_known_is_said_or_left_out():
    """Unknown usage is never zero; a turn without text has no first token."""
    assert list(facts_of(TurnResult(number=1, duration=0.5, model_requests=1), ascii_only=False)) == ["500 ms", "tokens unknown"]


def test_the_trace_id_is_never_broken():
    """Where it does not fit beside the facts it has a line of its own."""
    for width, lines in ((120, 1), (80, 1), (60, 2), (40, 2)):
        file = io.StringIO()
        notes = Notes(file)
        notes.console = Console(file=file, width=width, force_terminal=True, color_system=None)
        show_footer(notes, TurnResult(number=1, duration=0.5, trace_id=_TRACE, model_requests=1), TelemetrySettings())
        shown = file.getvalue().splitlines()
        assert len(shown) == lines
        assert shown[-1].endswith(f"trace {_TRACE}")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_local_collector_has_its_jaeger_beside_it(host):
    """The trace id leads to the page in Jaeger."""
    assert trace_link(_TRACE, _settings(f"http://{host}:4318/v1/traces")) == f"http://localhost:16686/trace/{_TRACE}"


def test_elsewhere_there_is_no_link():
    """Where nothing is sent, or to another machine, no address is made up."""
    assert trace_link(_TRACE, TelemetrySettings()) is None
    assert trace_link(_TRACE, _settings("https://otel.example.com/v1/traces")) is None


def test_the_link_is_a_hyperlink():
    """A terminal that knows hyperlinks gets one; the text stays the id."""
    file = io.StringIO()
    notes = Notes(file)
    notes.console = Console(file=file, width=120, force_terminal=True)
    show_footer(notes, TurnResult(number=1, trace_id=_TRACE), _settings("http://localhost:4318/v1/traces"))
    assert f"http://localhost:16686/trace/{_TRACE}\x1b\\" in file.getvalue()


def test_nothing_of_a_link_reaches_a_pipe():
    """There the id stands alone."""
    file = io.StringIO()
    show_footer(Notes(file), TurnResult(number=1, trace_id=_TRACE), _settings("http://localhost:4318/v1/traces"))
    assert file.getvalue().endswith(f"trace {_TRACE}\n")
    assert "16686" not in file.getvalue()


def test_the_address_can_be_had_in_full():
    """For terminals that open no links; on one line, so that it can be copied."""
    file = io.StringIO()
    settings = _settings("https://otel.example.com/v1/traces", HOLODECK_JAEGER_URL="https://jaeger.example.com/ui/")
    show_link(Notes(file), TurnResult(number=1, trace_id=_TRACE), settings)
    assert file.getvalue() == f"in Jaeger: https://jaeger.example.com/ui/trace/{_TRACE}\n"
    show_link(Notes(file := io.StringIO()), TurnResult(number=1, trace_id=_TRACE), TelemetrySettings())
    assert file.getvalue() == ""


def test_an_answer_that_was_cut_off_is_called_one():
    """finish_reason length is said in words that name the key."""
    result = TurnResult(number=1, duration=0.5, finish_reason="length")
    assert list(facts_of(result, ascii_only=False)) == ["500 ms", "cut off at max_tokens"]
