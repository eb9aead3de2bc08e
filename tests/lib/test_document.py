from __future__ import annotations

from pathlib import Path

import pytest

from holodeck.lib.document import MAX_FILE_BYTES, Document, read_text
from holodeck.lib.problems import dotted, is_secret, one_line
from holodeck.lib.strict_yaml import parse_yaml


def test_dotted_paths_read_as_people_write_them() -> None:
    """Keys are joined by dots, list entries stand in brackets."""
    assert dotted(("tools", 0, "name")) == "tools[0].name"


def test_an_unknown_position_is_that_of_the_nearest_key_above() -> None:
    """A key that is not in the file is reported where its section is."""
    document = Document("a.yaml", {}, {("model",): 4}, {})
    assert document.line(("model", "name")) == 4
    assert document.line(("name",)) == 1


def test_entries_are_named_as_they_stand_in_the_file() -> None:
    """After entries of a list were left out, errors still count from the file."""
    document = Document("a.yaml", {}, {("tools", 2): 9}, {}, {("tools",): (0, 2)})
    error = document.at(("tools", 1, "name"), "wrong")
    assert (error.line, error.key) == (9, "tools[2].name")


def test_a_message_part_is_one_clean_line() -> None:
    """What comes from a file cannot bring line ends or escape sequences into a message."""
    assert one_line("a\nb\x1b]0;title\x07c") == "a bc"
    assert len(one_line("x" * 1000)) <= 120


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (("model", "api_key"), True),
        (("tools", 0, "headers", "X-Any"), True),
        (("tools", 0, "env", "API_TOKEN"), True),
        (("tools", 0, "env", "PORT"), False),
        (("name",), False),
    ],
)
def test_secret_places_are_known(path: tuple[str | int, ...], secret: bool) -> None:
    """Keys, headers and environment variables with telling names are never shown."""
    assert is_secret(path) is secret


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: \xff\xfe", "line 1 is not UTF-8 text"),
        ("name: x".encode("utf-16"), "not UTF-8"),
        (b"a: 1\nb: \x00", "line 2 has the control character U+0000"),
        (b"a: 1\nb: \x1b[2J", "line 2 has the control character U+001B"),
        (b"x" * (MAX_FILE_BYTES + 1), "larger than 1,000,000 bytes"),
    ],
)
def test_what_is_not_text_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    """Other encodings, controls and large files are refused with the reason."""
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words.replace("+", r"\+")):
        read_text(path)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    """Files saved with a byte order mark read the same."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: \xc3\xa9\r\n")
    assert read_text(path) == "name: é\r\n"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a directory, a device and a loop of links each have a sentence."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, words in (
        (tmp_path / "no", "no such file"),
        (tmp_path, "a directory"),
        (Path("/dev/null"), "not a regular file"),
        (loop, "no such file|cannot be read"),
    ):
        with pytest.raises(ValueError, match=words):
            read_text(path)


def test_the_line_of_a_dotted_key_is_found() -> None:
    """``tools[1].function`` stands where the file has it; a key that the file lacks is looked for above."""
    document = parse_yaml("name: a\ntools:\n  - name: x\n  - name: y\n    function: f\n", "a.yaml")
    assert document.line_of("tools[1].function") == 5
    assert document.line_of("tools[1].parameters.properties.a") == 4
    assert document.line_of("tools[0].name") == 3
