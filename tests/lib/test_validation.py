from __future__ import annotations

import json
import time
from typing import Any

import pytest

from holodeck.errors import InputError
from holodeck.lib.validation import (
    MAX_MESSAGE_CHARS,
    MAX_TOOL_CHARS,
    ValidationPipeline,
    exportable,
    sanitize_parameters,
    sanitize_tool_output,
    shorten,
    terminal_safe,
)

ESCAPES = {
    "CSI colour": "\x1b[31m",
    "CSI clear": "\x1b[2J",
    "CSI with intermediate": "\x1b[1 q",
    "CSI private": "\x1b[?1049h",
    "CSI of C1": "\x9b31m",
    "OSC title": "\x1b]0;evil title\x07",
    "OSC clipboard": "\x1b]52;c;c2VjcmV0\x07",
    "OSC clipboard with ST": "\x1b]52;c;c2VjcmV0\x1b\\",
    "OSC clipboard with C1 ST": "\x1b]52;c;c2VjcmV0\x9c",
    "OSC of C1": "\x9d52;c;c2VjcmV0\x9c",
    "OSC link": "\x1b]8;;https://evil.example\x1b\\",
    "OSC notification": "\x1b]9;evil\x07",
    "DCS": "\x1bP1$r0m evil\x1b\\",
    "DCS of C1": "\x90q evil\x9c",
    "DCS for tmux": "\x1bPtmux;\x1b\x1b]52;c;c2VjcmV0\x07\x1b\\",
    "APC": "\x1b_Gevil\x1b\\",
    "PM": "\x1b^evil\x1b\\",
    "SOS": "\x1bXevil\x1b\\",
    "reset": "\x1bc",
    "charset": "\x1b(0",
    "keypad": "\x1b=",
    "lone escape": "\x1b",
    "CSI cut short": "\x1b[",
}


@pytest.mark.parametrize("sequence", ESCAPES.values(), ids=ESCAPES)
def test_escape_sequences_go_with_their_payload(sequence: str) -> None:
    """Of each kind of sequence nothing is left, and what stands around it stays."""
    assert terminal_safe(f"before{sequence}\nafter") == "before\nafter"
    assert sanitize_tool_output(f"before {sequence}") == "before "


@pytest.mark.parametrize("sequence", ["\x1b]52;c;c2VjcmV0", "\x9d52;c;c2VjcmV0", "\x1bPevil", "\x1b_evil"])
def test_an_unfinished_string_is_taken_to_the_end_of_its_line(sequence: str) -> None:
    """What a terminal would swallow is removed, and the next line is kept."""
    assert terminal_safe(f"a{sequence}\nb") == "a\nb"


@pytest.mark.parametrize("code", [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F, *range(0x80, 0xA0)])
def test_no_control_character_is_left(code: int) -> None:
    """C0, DEL and C1 are removed; none of them survives alone."""
    assert chr(code) not in terminal_safe(f"a{chr(code)}b")


@pytest.mark.parametrize("code", [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_bidirectional_overrides_are_removed(code: int) -> None:
    """Text cannot be made to read backwards; marks of direction go with the overrides and isolates."""
    assert terminal_safe(f"a{chr(code)}b") == "ab"


@pytest.mark.parametrize(
    "code", [0xAD, 0x180E, 0x200B, *range(0x2060, 0x2066), 0xFEFF, 0xFFF9, 0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xE01EF]
)
def test_what_nobody_sees_is_removed(code: int) -> None:
    """Tags, zero-width spaces and the like cannot carry words past the reader."""
    assert terminal_safe(f"a{chr(code)}b") == "ab"


@pytest.mark.parametrize("text", ["👨‍👩‍👧", "❤️", "می‌خواهم", "é", "क्षि", "שָׁלוֹם", "1️⃣"])
def test_what_scripts_and_emoji_are_written_with_stays(text: str) -> None:
    """Joiners, selectors of emoji and accents are a part of what is read."""
    assert terminal_safe(text) == text


def test_a_flood_of_accents_is_cut() -> None:
    """What is heaped on one character cannot cover the lines around it."""
    assert terminal_safe("a" + "\u0301\u0489" * 5000 + "b") == "a" + "\u0301\u0489" * 4 + "b"


def test_line_ends_become_newlines() -> None:
    """A lone carriage return cannot overwrite what was shown; newline and tab stay."""
    assert terminal_safe("safe\rfake\r\nnext\tcell\n") == "safe\nfake\nnext\tcell\n"
    assert terminal_safe("a\u2028b\u2029c") == "a\nb\nc"


@pytest.mark.parametrize("text", ["", "plain", "list[int]", "[/etc/passwd]", ":warning:", "é → 日本 🙂", "שלום", "a\tb\nc"])
def test_plain_text_is_not_touched(text: str) -> None:
    """What needs no cleaning is the same afterwards, markup and other scripts included."""
    assert terminal_safe(text) == text


def test_nothing_new_appears_when_something_is_removed() -> None:
    """Cleaning twice is the same as cleaning once, for sequences inside sequences too."""
    hostile = "\x1b[\x1b[2J2J" + "".join(ESCAPES.values()) + "\x1b\x00[31m" + "\x1b]0;\x1b[31m\x07x"
    once = terminal_safe(hostile)
    assert terminal_safe(once) == once
    assert "\x1b" not in once


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    """UTF-8 can carry what is left; real characters beyond the basic plane stay."""
    assert exportable("a\ud83eb") == "a\ufffdb"
    assert exportable("🙂") == "🙂"
    assert terminal_safe("\udcff") == "\ufffd"


@pytest.mark.parametrize("length", [0, 1, 30, 99, 100, 101, 1000, 100_000])
@pytest.mark.parametrize("limit", [0, 1, 10, 100])
def test_a_limit_is_a_limit(length: int, limit: int) -> None:
    """No result is longer than the limit, marker included; what fits is not touched."""
    found = shorten("x" * length, limit)
    assert len(found) == min(length, limit)
    assert (found == "x" * length) is (length <= limit)


def test_the_marker_says_how_long_it_was() -> None:
    """A cut text ends with its original length."""
    found = sanitize_tool_output("x" * 5_000_000)
    assert len(found) == MAX_TOOL_CHARS
    assert found.endswith("… [cut: 5000000 characters]")


@pytest.mark.parametrize(
    "text", ["\x1b" * 1_000_000, "\x9d\n" * 500_000, "\x1b[" * 500_000, "\x1b]" * 500_000, "\x1b]x" + "y" * 1_000_000, "\x9b1;" * 300_000]
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    """A megabyte of beginnings is cleaned at once."""
    started = time.process_time()
    sanitize_tool_output(text)
    assert time.process_time() - started < 2


class _Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        (None, None), (True, True), (3, 3), (2.5, 2.5), (-(2**63), -(2**63)), (2**63, str(2**63)), (2**70, str(2**70)),
        (float("nan"), "nan"), (float("-inf"), "-inf"), (b"\xff", "\ufffd"),
        (bytearray(b"ok"), "ok"), ("\x1b[2Jx", "x"), ("\ud83e", "\ufffd"),
        ((1, "a"), [1, "a"]), ({1: {"\x07k": [None]}}, {"1": {"k": [None]}}), (_Rude(), "<_Rude>"),
    ],
)  # fmt: skip
def test_parameters_become_what_json_can_carry(value: Any, clean: Any) -> None:
    """Each kind of value is kept, cleaned or turned into text."""
    found = sanitize_parameters({"v": value})
    assert found == {"v": clean}
    assert type(found["v"]) is type(clean)
    json.dumps(found, allow_nan=False).encode()


@pytest.mark.parametrize(
    "parameters",
    [
        {"text": "x" * 200_000},
        {f"key{i}": "value" for i in range(100_000)},
        {"list": [None] * 1_000_000},
        {"list": [True] * 1_000_000},
        {"list": list(range(10**15, 10**15 + 100_000))},
        {"list": [[] for _ in range(1_000_000)]},
        {"list": [[["x" * 100] * 100] * 100] * 100},
    ],
)
def test_parameters_together_have_a_limit(parameters: dict[str, Any]) -> None:
    """Long texts, many keys, many small values and large numbers all end near the limit."""
    found = json.dumps(sanitize_parameters(parameters), separators=(",", ":"), ensure_ascii=False)
    assert len(found) < 2 * MAX_TOOL_CHARS
    assert sum(len(part) for part in found.split('"')[1::2]) <= MAX_TOOL_CHARS


def test_parameters_that_hold_themselves_come_to_an_end() -> None:
    """Nesting is cut, also where it branches without end."""
    knot: list[Any] = []
    knot += [knot, knot]
    started = time.process_time()
    assert "too deep" in json.dumps(sanitize_parameters({"knot": knot}))
    assert time.process_time() - started < 2


def test_the_order_and_names_of_parameters_stay() -> None:
    """What is small and clean is the same afterwards."""
    parameters = {"b": 1, "a": {"d": [1, 2.5, None, "x"], "c": "y"}}
    assert json.dumps(sanitize_parameters(parameters)) == json.dumps(parameters)


PIPELINE = ValidationPipeline()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"), ("  \r\n\t ", "is empty"), (b"", "is empty"),
        ("x" * (MAX_MESSAGE_CHARS + 1), "has 10,001 characters; the limit is 10,000"),
        ("a\x00b", r"control character U\+0000"), ("a\x1b[2Jb", r"control character U\+001B"),
        ("a\x7fb", r"U\+007F"), ("a\x9bb", r"U\+009B"), ("a\x08b", r"U\+0008"),
        (b"a\xfeb", "not valid UTF-8"), ("a\ud83eb", "not valid UTF-8"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_with_the_reason(text: str | bytes, words: str) -> None:
    """Each refusal is one sentence that says why."""
    with pytest.raises(InputError, match=words) as caught:
        PIPELINE.validate(text)
    assert "\n" not in str(caught.value)
    assert caught.value.error_type == "invalid_input"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("hi", "hi"), ("  hi\r\n", "hi"), ("a\r\nb\rc", "a\nb\nc"), ("a\tb", "a\tb"),
        ("é 日本 🙂 שלום \u202e", "é 日本 🙂 שלום \u202e"), ("é".encode(), "é"),
        ("x" * MAX_MESSAGE_CHARS + " \n", "x" * MAX_MESSAGE_CHARS), ("exit\r", "exit"),
    ],
)  # fmt: skip
def test_what_can_be_sent_is_stripped(text: str | bytes, clean: str) -> None:
    """Line ends are newlines, white space around is gone, everything else stays."""
    assert PIPELINE.validate(text) == clean


def test_the_first_rule_that_fails_speaks() -> None:
    """Rules run in order, and a program may bring its own."""

    def shout(text: str) -> None:
        if not text.isupper():
            raise InputError("louder")

    pipeline = ValidationPipeline([*ValidationPipeline.DEFAULT, shout])
    assert pipeline.validate("HI") == "HI"
    with pytest.raises(InputError, match="louder"):
        pipeline.validate("hi")
    with pytest.raises(InputError, match="is empty"):
        pipeline.validate(" ")
