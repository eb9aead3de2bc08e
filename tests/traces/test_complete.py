"""Traces one after the other, while a file is read."""

from __future__ import annotations

import io
import json

import pytest

from holodeck.traces import TraceReadError, complete_traces, lines_of

_A, _B = "a" * 32, "b" * 32


def _line(trace: str, span: int, parent: int | None = None, **more) -> bytes:
    fields = {"traceId": trace, "spanId": f"{span:016x}", "name": f"s{span}", "startTimeUnixNano": "1", "endTimeUnixNano": "2", **more}
    if parent:
        fields["parentSpanId"] = f"{parent:016x}"
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}).encode() + b"\n"


def _names(roots) -> list[tuple[str, list[str]]]:
    return [(root.span.name, [child.span.name for child in root.children]) for root in roots]


def test_a_trace_comes_with_its_last_line():
    """Not before, and not after."""
    lines = _Watched([_line(_A, 2, 1), _line(_B, 4, 3), _line(_A, 1), _line(_B, 3), b"\n"])
    traces = complete_traces(lines)
    assert (_names(next(traces)), lines.taken) == ([("s1", ["s2"])], 3)
    assert (_names(next(traces)), lines.taken) == ([("s3", ["s4"])], 4)
    assert list(traces) == []


def test_ids_in_other_spellings_are_found():
    """Upper case, base64 and the proto's own field name."""
    base64_id = "qqqqqqqqqqqqqqqqqqqqqg=="
    lines = [_line(base64_id, 2, 1), _line(_A.upper(), 1), _line(_B, 3).replace(b"traceId", b"trace_id")]
    assert [_names(roots) for roots in complete_traces(lines)] == [[("s1", ["s2"])], [("s3", [])]]


def test_a_trace_that_a_later_turn_links_to_is_not_lost():
    """It is complete with the line of the link at the latest."""
    lines = [_line(_A, 1), _line(_B, 2, links=[{"traceId": _A, "spanId": f"{1:016x}"}])]
    assert sorted(name for roots in complete_traces(lines) for name, _ in _names(roots)) == ["s1", "s2"]


def test_spans_without_an_id_come_at_the_end():
    """They belong to no trace, and are shown all the same."""
    assert [_names(roots) for roots in complete_traces([_line("x", 1).replace(b'"traceId": "x", ', b""), _line(_A, 2)])] == [
        [("s2", [])],
        [("s1", [])],
    ]


def test_what_stands_before_a_bad_line_is_there():
    """Then the error says which line it is."""
    traces = complete_traces([_line(_A, 1), _line(_B, 2), b"garbage\n", _line(_B, 3)])
    assert [_names(next(traces)) for _ in range(2)] == [[("s1", [])], [("s2", [])]]
    with pytest.raises(TraceReadError, match="line 3"):
        next(traces)


def test_a_pipe_is_kept_and_a_file_is_not():
    """What can be wound back is read twice."""
    file = io.BytesIO(_line(_A, 1))
    assert lines_of(file) is file
    file.read()
    assert len(list(complete_traces(lines_of(file)))) == 1
    assert lines_of(_Pipe(_line(_A, 1))) == [_line(_A, 1)]


class _Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


class _Watched(list):
    """Lines that know how many of them have been read in the last pass."""

    taken = 0

    def __iter__(self):
        self.taken = 0
        for line in super().__iter__():
            self.taken += 1
            yield line
