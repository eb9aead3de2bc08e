"""Standard output above a prompt."""

from __future__ import annotations

import io

from holodeck.cli.above import AboveWriter, GatedWriter


def test_without_a_screen_it_is_the_stream_itself():
    """Text goes out at once."""
    file = io.StringIO()
    AboveWriter(file).write("half")
    assert file.getvalue() == "half"


def test_whole_lines_wait_for_the_screen():
    """A line that has not ended stays back; in the end nothing is lost."""
    file, told = io.StringIO(), []
    writer = AboveWriter(file)
    with writer.held(lambda: told.append(1)):
        writer.write("one\ntw")
        assert (writer.take(), len(told)) == ("one\n", 1)
        writer.write("o")
        assert (writer.take(), len(told)) == ("", 1)
        writer.write("\nthree")
        assert writer.take() == "two\n"
        assert file.getvalue() == ""
    assert file.getvalue() == "three"


def test_what_others_write_is_harmless():
    """Escape sequences and carriage returns of a tool that prints do not reach the terminal."""
    file = io.StringIO()
    print("a\x1b[2J\rb", file=GatedWriter(AboveWriter(file)))  # type: ignore[arg-type]
    assert file.getvalue() == "a\nb\n"


def test_bytes_are_text_there():
    """A tool that writes bytes is no different."""
    file = io.StringIO()
    GatedWriter(AboveWriter(file)).buffer.write("grün \x1b[2J!\n".encode())
    assert file.getvalue() == "grün !\n"
