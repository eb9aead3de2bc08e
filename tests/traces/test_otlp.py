"""OTLP/JSON, as the specification has it and as writers write it."""

import base64
import gc
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holodeck.errors import HoloDeckError, TraceReadError
from holodeck.traces import EventRecord, LinkRecord, SpanRecord, build_trees, read_spans, spans_of
from traces.spans import TRACE, request

SPAN = {
    "traceId": TRACE.upper(),
    "spanId": "00f067aa0ba902b7",
    "parentSpanId": "0000000000000000",
    "name": "chat m",
    "kind": 3,
    "startTimeUnixNano": "1754229802125000000",
    "endTimeUnixNano": "1754229802625000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
        {"key": "flag", "value": {"boolValue": False}},
        {"key": "ratio", "value": {"doubleValue": 0.5}},
        {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "stop"}, {"intValue": 2}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}}},
        {"key": "raw", "value": {"bytesValue": "AAE="}},
    ],
    "status": {"code": 2, "message": "no"},
    "events": [{"name": "exception", "timeUnixNano": "7", "attributes": [{"key": "k", "value": {"stringValue": "v"}}]}],
    "links": [{"traceId": TRACE, "spanId": "00000000000000ff", "attributes": []}],
}
RECORD = SpanRecord(
    trace_id=TRACE,
    span_id="00f067aa0ba902b7",
    parent_id="",
    name="chat m",
    kind=3,
    start=1754229802125000000,
    end=1754229802625000000,
    attributes={
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 12,
        "flag": False,
        "ratio": 0.5,
        "list": ["stop", 2],
        "map": {"a": "b"},
        "raw": b"\x00\x01",
    },
    status_code=2,
    status_message="no",
    events=(EventRecord("exception", 7, {"k": "v"}),),
    links=(LinkRecord(TRACE, "00000000000000ff", {}),),
    resource={"service.name": "x"},
    scope="writer",
)
RESOURCE = [{"key": "service.name", "value": {"stringValue": "x"}}]


def snake(value):
    """The same JSON with the field names of the proto files."""
    if isinstance(value, dict):
        return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(item) for key, item in value.items()}
    return [snake(item) for item in value] if isinstance(value, list) else value


def one(**changes):
    """The record of a span with some fields changed."""
    (span,) = spans_of(request({**SPAN, **changes}, attributes=RESOURCE))
    return span


def value_of(value):
    """What an attribute value is read as."""
    return one(attributes=[{"key": "k", "value": value}]).attributes["k"]


def test_every_field_of_a_span_is_read() -> None:
    """A request as the specification has it becomes the record with all its fields."""
    assert spans_of(request(SPAN, attributes=RESOURCE)) == [RECORD]


def test_field_names_of_the_proto_files_are_understood() -> None:
    """Snake-case names, as protobuf's own JSON writer can produce them, give the same record."""
    assert spans_of(snake(request(SPAN, attributes=RESOURCE))) == [RECORD]


def test_ids_in_base64_become_hex() -> None:
    """Plain protobuf JSON puts ids in base64; they read as the same hex."""
    trace, span = (base64.b64encode(bytes.fromhex(text)).decode() for text in (TRACE, "00f067aa0ba902b7"))
    assert one(traceId=trace, spanId=span) == RECORD


def test_text_that_only_looks_like_base64_stays_as_it_is() -> None:
    """An id of the right length that does not decode is kept, so that its span is not lost."""
    assert one(spanId="*" * 11 + "=").span_id == "*" * 11 + "="


@pytest.mark.parametrize(("kind", "number"), [("SPAN_KIND_CLIENT", 3), ("3", 3), (5, 5), (99, 0), (None, 0), ([], 0), ("odd", 0)])
def test_kinds_by_number_or_name(kind, number) -> None:
    """A kind is a number, its text or its name; anything else is 0."""
    assert one(kind=kind).kind == number


@pytest.mark.parametrize(
    ("status", "code"),
    [({"code": "STATUS_CODE_ERROR"}, 2), ({"code": 1}, 1), ({"code": "STATUS_CODE_OK"}, 1), ({}, 0), (None, 0), ({"code": 9}, 0)],
)
def test_status_codes_by_number_or_name(status, code) -> None:
    """A status code is a number or its name; missing is unset."""
    assert one(status=status).status_code == code


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ({"intValue": 5}, 5),
        ({"int_value": "5"}, 5),
        ({"intValue": "five"}, "five"),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"doubleValue": []}, []),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": [None, {}]}}, [None, None]),
        ({"kvlistValue": None}, None),
        ({"kvlist_value": {"values": [None, {"key": "a"}]}}, {"a": None}),
        ({"bytesValue": "***"}, "***"),
        ({"stringValue": None, "intValue": 1}, None),
        ({}, None),
        (None, None),
        ("bare", "bare"),
    ],
)
def test_odd_attribute_values(raw, plain) -> None:
    """Numbers as text or not, empty and null values, proto names: each reads as the plain value that it stands for."""
    assert value_of(raw) == plain


def test_nested_values_are_cut_at_some_depth() -> None:
    """A value that is nested hundreds of levels deep is read without running out of stack."""
    value = {"intValue": 1}
    for _ in range(300):
        value = {"arrayValue": {"values": [value]}}
    assert "… [cut: too deep]" in repr(value_of(value))


def test_missing_fields_are_empty() -> None:
    """A span may lack everything."""
    assert spans_of(request({})) == [SpanRecord("", "", "", "", 0, 0, 0, {}, 0, "", (), (), {}, "writer")]


def test_null_lists_are_empty() -> None:
    """Null in place of a list, or in a list, is nothing."""
    nulls = {"attributes": None, "events": None, "links": [None], "status": None}
    assert spans_of(request(nulls, None, attributes=None)) == spans_of(request({}))
    assert spans_of({"resourceSpans": None}) == spans_of({"resourceSpans": [{"scopeSpans": None}]}) == spans_of({}) == []


@pytest.mark.parametrize("time", [-5, "soon", None, 2**64, 10**400, [], math.nan, math.inf])
def test_impossible_times_are_unknown(time) -> None:
    """A time that is none, or that 64 bits do not hold, is 0."""
    assert one(startTimeUnixNano=time).start == 0


def test_the_answer_of_a_query_api_is_unwrapped() -> None:
    """Jaeger puts the request under "result"."""
    assert spans_of({"result": request(SPAN, attributes=RESOURCE)}) == [RECORD]


def test_lines_are_read_in_order_and_others_are_passed_over() -> None:
    """Blank lines, metrics and logs give no spans; text, bytes and a byte order mark are fine."""
    line = json.dumps(request(SPAN, attributes=RESOURCE))
    lines = ["\ufeff" + line, "\n", b'{"resourceMetrics": []}\n', '{"resourceLogs": []}', "{}", line.encode() + b"\r\n"]
    assert list(read_spans(lines)) == [RECORD, RECORD]


def test_spans_of_one_resource_share_it() -> None:
    """A resource that is repeated with every line is kept once; another one is not mistaken for it."""
    other = [{"key": "service.name", "value": {"stringValue": "y"}}]
    spans = list(read_spans(json.dumps(request(SPAN, attributes=resource)) for resource in (RESOURCE, RESOURCE, other)))
    assert spans[0].resource is spans[1].resource
    assert spans[2].resource == {"service.name": "y"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"resourceSpans": [', "line 2: not a JSON object on one line (Expecting value, column 20)"),
        ("[]", "line 2: not an OTLP export request: an object with resourceSpans is expected"),
        ('{"name": "package"}', "line 2: not an OTLP export request: an object with resourceSpans is expected"),
        ('{"resourceSpans": {}}', "line 2: not an OTLP export request: resourceSpans must be a list"),
        ('{"resourceSpans": [1]}', "line 2: not an OTLP export request: resourceSpans must hold objects"),
        (
            '{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 5}]}]}]}',
            "line 2: not an OTLP export request: attributes must be a list",
        ),
        (b"\xff\xfe{}", "line 2: not UTF-8 text"),
        ("[" * 100_000, "line 2: JSON that is nested too deeply, or holds a number that is too long"),
        ("9" * 10_000, "line 2: JSON that is nested too deeply, or holds a number that is too long"),
    ],
)
def test_a_bad_line_is_named(line, message) -> None:
    """What is no export request is one error with its line, after the good lines before it have been given out."""
    spans = read_spans([json.dumps(request(SPAN)), line])
    assert next(spans).name == "chat m"
    with pytest.raises(TraceReadError) as caught:
        next(spans)
    assert (str(caught.value), caught.value.line) == (message, 2)
    assert isinstance(caught.value, HoloDeckError)


def test_a_single_request_has_no_line() -> None:
    """An error in a request that was handed in whole names no line."""
    with pytest.raises(TraceReadError, match=r"^not an OTLP export request") as caught:
        spans_of({"spans": []})
    assert caught.value.line is None


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_goes_on_as_before(enabled) -> None:
    """Reading pauses the collector; good and bad lines leave it as it was."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        list(read_spans([json.dumps(request(SPAN))]))
        with pytest.raises(TraceReadError):
            list(read_spans(["oops"]))
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "value", "values", *snake(SPAN), *SPAN]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.one_of(st.text(), st.binary(), JSON.map(json.dumps), JSON.map(lambda value: json.dumps(request(value)))))
def test_reading_raises_nothing_else(line) -> None:
    """Whatever a line holds, it is spans that make trees, or a TraceReadError."""
    try:
        spans = list(read_spans([line]))
    except TraceReadError:
        return
    assert sum(1 for _ in spans) >= len(build_trees(spans))


@given(st.dictionaries(st.sampled_from([*SPAN, *snake(SPAN)]), JSON))
def test_one_span_in_one_span_out(span) -> None:
    """A span with odd fields is read as one span, or refused."""
    try:
        assert len(spans_of(request(span))) == 1
    except TraceReadError as error:
        assert "must" in str(error)  # noqa: PT017 - both outcomes are allowed
