"""What is known of the terminal."""

from __future__ import annotations

import fcntl
import io
import os
import struct
import termios

import pytest

from holodeck.cli.tty import TerminalConsole, speaks_utf8


@pytest.mark.parametrize(
    ("environ", "speaks"),
    [
        ({}, True),  # nothing is known: a container, mostly
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "en_US.utf8"}, True),
        ({"LANG": "de_DE.ISO-8859-15@euro"}, False),
        ({"LANG": "ja_JP.eucJP"}, False),
        ({"LANG": "xx_YY.nonsense"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LC_ALL": "C", "LC_CTYPE": "en_US.UTF-8", "LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "en_US.UTF-8", "LANG": "C"}, True),
        ({"LC_CTYPE": "C", "LANG": "en_US.UTF-8"}, False),
    ],
)
def test_the_locale_tells(environ, speaks):
    """The first of LC_ALL, LC_CTYPE and LANG that says anything counts."""
    assert speaks_utf8(environ, utf8_mode=0) is speaks


@pytest.mark.parametrize(("lang", "speaks"), [("C", False), ("en_US.UTF-8", True)])
def test_what_python_wrote_does_not_count(lang, speaks):
    """Where the locale is C, Python sets LC_CTYPE to a UTF-8 locale for itself."""
    assert speaks_utf8({"LC_CTYPE": "C.UTF-8", "LANG": lang}, utf8_mode=1) is speaks


@pytest.mark.parametrize(("environ", "width"), [({"COLUMNS": "33"}, 33), ({"COLUMNS": "0"}, 80), ({}, 80)])
@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_the_width(environ, width, term, monkeypatch):
    """COLUMNS counts with any terminal, and nothing is 0 cells wide."""
    monkeypatch.delenv("COLUMNS", raising=False)
    console = TerminalConsole(file=io.StringIO(), force_terminal=True, _environ={"TERM": term, **environ})
    assert console.width == width


def test_columns_of_nothing_leave_the_terminal_its_width():
    """COLUMNS=0 says nothing: the terminal itself does."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 61, 0, 0))
    with os.fdopen(slave, "w") as file, os.fdopen(master):
        assert TerminalConsole(file=file, _environ={"TERM": "xterm", "COLUMNS": "0"}).width == 61


def test_a_reader_that_goes_away_is_no_exit():
    """Whoever printed decides what that means."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        TerminalConsole(file=Gone()).print("x")
