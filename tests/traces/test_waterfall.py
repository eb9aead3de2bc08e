"""The waterfall as a reader sees it: whole pictures, compared as text."""

from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth, wcwidth

from holodeck.traces import EventRecord, Segment, SpanRecord, WaterfallOptions, build_trees, iter_waterfall, plain, waterfall
from traces.spans import TRACE, chat, record, tree, turn

STYLES = {"name", "operation", "tree", "bar", "bar.error", "time", "tokens", "error", "dim", "mark"}
CONTENT = {
    "gen_ai.system_instructions": '[{"type":"text","content":"Be kind."}]',
    "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Where is\\norder 1042?"}]}]',
    "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"It was shipped on Monday, and is due tomorrow."}]}]',
}


def drawn(root, **options) -> str:
    """The waterfall without styles, with a line end before and after, as it stands in the literals below."""
    return f"\n{plain(waterfall(root, WaterfallOptions(**options)))}\n"


def picture(text: str) -> str:
    """A literal without the indentation of the code around it."""
    return dedent(text)


def test_a_turn_at_80_columns() -> None:
    """Two model requests and two tools side by side, one failing: all of it at a glance."""
    assert drawn(turn()) == picture("""
        invoke_agent support · 2.41 s · trace 4bf92f3577b34da6a3ce929d0e0e4736
        invoke_agent support           ██████████████████  2.41 s  1,924→96 (300 cached)
        ├─ chat gpt-4o-mini            ██▏███              812 ms    412→38
        ├─ execute_tool lookup_order         ▋              86 ms
        ├─ execute_tool refund_policy        █▍            185 ms
        │  ✗ timeout: the tool did not answer in time
        └─ chat gpt-4o-mini                   ███▏██████▉  1.41 s  1,512→58 (300 cached)
        """)


def test_a_turn_at_40_columns() -> None:
    """No bars, short words for operations, the trace id on a line of its own."""
    assert drawn(turn(), width=40) == picture("""
        invoke_agent support · 2.41 s
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        agent support          2.41 s  1,924→96
        ├─ chat gpt-4o-mini    812 ms    412→38
        ├─ tool lookup_order    86 ms
        ├─ tool refund_policy  185 ms
        │  ✗ timeout: the tool did not answer i…
        └─ chat gpt-4o-mini    1.41 s  1,512→58
        """)


def test_a_turn_at_60_columns() -> None:
    """Bars begin at 60 columns; cached tokens give way to names."""
    assert drawn(turn(), width=60) == picture("""
        invoke_agent support · 2.41 s
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        agent support          ███████████████████  2.41 s  1,924→96
        ├─ chat gpt-4o-mini    ██▏███▍              812 ms    412→38
        ├─ tool lookup_order         █               86 ms
        ├─ tool refund_policy        █▉             185 ms
        │  ✗ timeout: the tool did not answer in time
        └─ chat gpt-4o-mini            ███▏██████▉  1.41 s  1,512→58
        """)


def test_a_turn_in_ascii() -> None:
    """The same picture without a single character beyond ASCII."""
    assert drawn(turn(), ascii=True) == picture("""
        invoke_agent support - 2.41 s - trace 4bf92f3577b34da6a3ce929d0e0e4736
        invoke_agent support           #################  2.41 s  1,924->96 (300 cached)
        |- chat gpt-4o-mini            ##|###             812 ms    412->38
        |- execute_tool lookup_order         #             86 ms
        |- execute_tool refund_policy        #            185 ms
        |  x timeout: the tool did not answer in time
        `- chat gpt-4o-mini                   ##|#######  1.41 s  1,512->58 (300 cached)
        """)


def test_timestamps_stand_before_the_tree() -> None:
    """Each start in UTC, the day in the first line, further lines indented below."""
    assert drawn(turn(), width=100, timestamps=True) == picture("""
        invoke_agent support · 2.41 s · 2025-08-03 · trace 4bf92f3577b34da6a3ce929d0e0e4736
        14:03:22.125Z invoke_agent support           ████████████████████████  2.41 s  1,924→96 (300 cached)
        14:03:22.127Z ├─ chat gpt-4o-mini            ███▏████                  812 ms    412→38
        14:03:22.940Z ├─ execute_tool lookup_order           ▉                  86 ms
        14:03:22.940Z ├─ execute_tool refund_policy          █▉                185 ms
                      │  ✗ timeout: the tool did not answer in time
        14:03:23.126Z └─ chat gpt-4o-mini                      ███▏█████████▉  1.41 s  1,512→58 (300 cached)
        """)


def test_captured_content_is_one_shortened_line_a_field() -> None:
    """Prompts and answers stand below their span, cut to the width; without the option they are not there."""
    root = tree(record(1, None, "invoke_agent a", 0, 10), chat(2, 1, 0, 10, (1, 2)))
    root.children[0].span.attributes.update(CONTENT)
    assert drawn(root, width=48) == picture("""
        invoke_agent a · 10 ms
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        invoke_agent a       10 ms  1→2
        └─ chat gpt-4o-mini  10 ms  1→2
           system     Be kind.
           input      Where is order 1042?
           output     It was shipped on Monday, and is…
        """)
    assert "kind" not in drawn(root, content=False)


def test_wide_characters_take_two_cells() -> None:
    """Columns stay in line behind Chinese names, and a cut goes between characters."""
    root = tree(
        record(1, None, "invoke_agent 客服助手", 0, 100),
        record(2, 1, "execute_tool 查询订单状态的工具", 10, 60, error=("错误", "工具没有在规定的时间内给出任何回答")),
        chat(3, 1, 60, 100, (5, 6)),
    )
    assert drawn(root, width=40) == picture("""
        invoke_agent 客服助手 · 100 ms
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        agent 客服助手              100 ms  5→6
        ├─ tool 查询订单状态的工具   50 ms
        │  ✗ 错误: 工具没有在规定的时间内给出任…
        └─ chat gpt-4o-mini          40 ms  5→6
        """)


def test_other_characters_in_ascii_are_question_marks() -> None:
    """What ASCII does not have is shown as ?."""
    root = tree(record(1, None, "invoke_agent 客服", 0, 100), record(2, 1, "naïve", 10, 60, error=("错误", "x…")))
    assert drawn(root, width=40, ascii=True) == picture("""
        invoke_agent ?? - 100 ms
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        invoke_agent ??  100 ms
        `- na?ve          50 ms
           x ??: x?
        """)


def test_hostile_text_is_harmless() -> None:
    """Escape sequences, line ends and overrides in names, errors and ids do nothing."""
    root = tree(
        record(1, None, "root\x1b]0;owned\x07\nline\x1b[2J", 0, 100, trace="\x1b[2J\n<id>"),
        record(2, 1, "execute_tool \u202egpj.exe", 10, 60, error=("\x1b[31mboom", "first\r\nsecond\x9b2J"), trace="\x1b[2J\n<id>"),
    )
    assert drawn(root, width=70) == picture("""
        root line · 100 ms · trace <id>
        root line                █████████████████████████████████████  100 ms
        └─ execute_tool gpj.exe      ██████████████████                  50 ms
           ✗ boom: first second
        """)


def test_a_missing_parent_is_said() -> None:
    """A tree whose parent is elsewhere says so in its first line; the axis holds children that outlast their root."""
    _, lost = build_trees([record(1, None, "root", 0, 100), record(3, 2, "lost", 50, 60), record(4, 3, "GET /x", 55, 130)])
    assert drawn(lost, width=72) == picture("""
        lost · 10 ms · parent missing · trace 4bf92f3577b34da6a3ce929d0e0e4736
        lost       ██████▊                                                 10 ms
        └─ GET /x     ███████████████████████████████████████████████████  75 ms
        """)


def test_unknown_usage_shows_in_the_sum() -> None:
    """A request without usage is ?→?, and the sum says that it is only a part."""
    root = tree(record(1, None, "invoke_agent a", 0, 100), chat(2, 1, 0, 50), chat(3, 1, 50, 100, (10, 5)))
    assert drawn(root, width=50) == picture("""
        invoke_agent a · 100 ms
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        invoke_agent a       100 ms  10+?→5+?
        ├─ chat gpt-4o-mini   50 ms     ?→?
        └─ chat gpt-4o-mini   50 ms    10→5
        """)


def test_skewed_and_missing_times() -> None:
    """A child before its parent, an end before its start, no end, no start: each has its place, and nothing is invented."""
    spans = [
        record(1, None, "POST /chat", 10, 100),
        record(2, 1, "SELECT", 0, 20),
        record(3, 1, "backwards", 60, 40),
        record(4, 1, "zero", 50, 50),
        replace(record(5, 1, "no end", 70, 70), end=0),
        replace(record(6, 1, "no time", 0, 0), start=0, end=0),
    ]
    assert drawn(tree(*spans), width=80) == picture("""
        POST /chat · 90 ms · trace 4bf92f3577b34da6a3ce929d0e0e4736
        POST /chat          █████████████████████████████████████████████████████  90 ms
        ├─ no time                                                                     ?
        ├─ SELECT     ███████████▊                                                 20 ms
        ├─ zero                                     ▎                               0 µs
        ├─ backwards                                     ▎                          0 µs
        └─ no end                                              ▎                       ?
        """)


def test_errors_come_from_where_they_were_written() -> None:
    """From the exception event, from the status alone, or from nothing but the status code."""
    event = EventRecord("exception", 0, {"exception.type": "ValueError", "exception.message": "bad input"})
    root = tree(
        record(1, None, "a", 0, 10, error=("", ""), events=(event,)),
        record(2, 1, "b", 0, 1, error=("timeout", "timeout after 3 s")),
        record(3, 1, "c", 1, 2, error=("", "")),
    )
    assert drawn(root, width=50) == picture("""
        a · 10 ms · trace 4bf92f3577b34da6a3ce929d0e0e4736
        a      10 ms
        │  ✗ ValueError: bad input
        ├─ b  1.0 ms
        │  ✗ timeout after 3 s
        └─ c  1.0 ms
           ✗ error
        """)


def test_levels_that_do_not_fit_are_counted() -> None:
    """Below a third of the width the tree stops to indent and says how much deeper a span is."""
    root = tree(*(record(n, n - 1 if n else None, f"level {n}", n, 40) for n in range(7)))
    assert drawn(root, width=40) == picture("""
        level 0 · 40 ms
        trace 4bf92f3577b34da6a3ce929d0e0e4736
        level 0                 40 ms
        └─ level 1              39 ms
           └─ level 2           38 ms
              └─ level 3        37 ms
                 └─ level 4     36 ms
                 └─ +1 level 5  35 ms
                 └─ +2 level 6  34 ms
        """)


def test_five_thousand_levels_fit() -> None:
    """The deepest span of a chain is still drawn, within the width."""
    root = tree(*(record(n, n - 1 if n else None, f"s{n}", n, 9_000) for n in range(5_000)))
    for width in (40, 80):
        lines = waterfall(root, WaterfallOptions(width=width))
        assert max(len(plain([line])) for line in lines) <= width
        assert f"+{4_999 - width // 9} s4999" in plain(lines[-1:])


def test_work_grows_with_the_number_of_spans() -> None:
    """Ten times the spans make ten times the text, whether side by side or nested."""
    for parent in (lambda n: 0, lambda n: n - 1):
        sizes = []
        for count in (300, 3_000):
            root = tree(*(record(n, parent(n) if n else None, "s", n, 9_000) for n in range(count)))
            sizes.append(len(plain(waterfall(root, WaterfallOptions()))))
        assert sizes[1] < 10.5 * sizes[0]


def test_a_span_without_a_name_says_so() -> None:
    """An empty name is no empty line."""
    assert (
        drawn(tree(replace(record(1, None, " ", 0, 1), trace_id="")), width=40)
        == "\n(unnamed) · 1.0 ms · trace unknown\n(unnamed)  1.0 ms\n"
    )


def test_styles_say_what_a_segment_is() -> None:
    """The operation, the rest of the name, the tree, bars, marks and errors have styles of their own."""
    lines = waterfall(turn(), WaterfallOptions())
    assert {segment.style for line in lines for segment in line} == STYLES
    assert lines[0][0] == Segment("invoke_agent support", "name")
    assert [(s.text.strip(), s.style) for s in lines[2]] == [
        ("├─", "tree"),
        ("chat", "operation"),
        ("gpt-4o-mini", "name"),
        ("██", "bar"),
        ("▏", "mark"),
        ("███", "bar"),
        ("812 ms", "time"),
        ("412→38", "tokens"),
    ]
    assert [s.style for s in lines[4]] == ["tree", "operation", "name", "bar.error", "time"]
    assert [s.style for s in lines[5]] == ["tree", "error"]


def test_lines_come_one_by_one() -> None:
    """A long trace can be printed while it is being laid out; both ways give the same lines."""
    lines = iter_waterfall(turn(), WaterfallOptions())
    assert next(lines)[0].text == "invoke_agent support"
    assert list(lines) == waterfall(turn(), WaterfallOptions())[1:]


NASTY = ["execute_tool 查询", "chat m", "\x1b[31mred", "👨\u200d👩\u200d👧" * 9, "x" * 300, "שלום"]
texts = st.text(max_size=40) | st.sampled_from(NASTY)
counts = st.none() | st.integers(0, 2**70)
times = st.integers(0, 2**64 - 1) | st.integers(10**18, 10**18 + 10**10)


@st.composite
def spans(draw) -> SpanRecord:
    """Any span."""
    name, operation = draw(texts), draw(texts)
    attributes = {
        "gen_ai.operation.name": draw(st.sampled_from(["chat", "", operation])),
        "gen_ai.usage.input_tokens": draw(counts),
        "gen_ai.usage.output_tokens": draw(counts),
        "gen_ai.usage.cache_read.input_tokens": draw(counts),
        "gen_ai.response.time_to_first_chunk": draw(st.none() | st.floats() | st.integers()),
        "gen_ai.input.messages": draw(st.none() | texts),
        "error.type": draw(texts),
    }
    return replace(
        record(
            draw(st.integers(0, 12)),
            draw(st.none() | st.integers(0, 12)),
            f"{operation} {name}",
            0,
            0,
            trace=draw(st.sampled_from([TRACE, name])),
        ),
        attributes={key: value for key, value in attributes.items() if value is not None},
        start=draw(times),
        end=draw(times),
        status_code=draw(st.integers(0, 2)),
        status_message=draw(texts),
    )


@given(st.lists(spans(), max_size=14), st.integers(1, 200), st.booleans(), st.booleans())
def test_no_line_is_wider_than_it_may_be(given_spans, width, ascii_only, timestamps) -> None:
    """Whatever the spans, every line fits the width in cells, is one harmless line, and ASCII where that was asked for."""
    options = WaterfallOptions(width=width, ascii=ascii_only, timestamps=timestamps)
    for root in build_trees(given_spans):
        for line in waterfall(root, options):
            text = plain([line])
            assert sum(map(wcwidth, text)) <= width
            assert wcswidth(text) <= width
            assert text.isprintable()
            assert text.isascii() or not ascii_only
            assert {segment.style for segment in line} <= STYLES


@pytest.mark.parametrize("width", [0, -5])
def test_no_width_is_no_text(width) -> None:
    """A terminal that reports no width gets empty lines, not an error."""
    assert plain(waterfall(turn(), WaterfallOptions(width=width))).strip() == ""
