"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holodeck.lib.whole_file import write_whole


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path: Path) -> None:
    """When the space runs out in the middle, the old content is there, and nothing else."""
    path = tmp_path / "kept.yaml"
    path.write_text("before", encoding="utf-8")
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from holodeck.lib.whole_file import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_whole(Path(sys.argv[1]), 'x' * 100_000)\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "OSError\n"
    assert path.read_text(encoding="utf-8") == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.yaml"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000  # the limit was the child's


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o640)])
def test_who_may_read_it(tmp_path: Path, *, private: bool, mode: int) -> None:
    """A file keeps its permissions, unless it is to be its owner's alone."""
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o640)
    write_whole(path, "ü", private=private)
    assert (path.read_text(encoding="utf-8"), stat.S_IMODE(path.stat().st_mode)) == ("ü", mode)


def test_links_are_followed_and_pipes_written_through(tmp_path: Path) -> None:
    """Nothing takes the place of a link or a device."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.touch()
    link.symlink_to(target)
    write_whole(link, "through the link")
    assert (link.is_symlink(), target.read_text(encoding="utf-8")) == (True, "through the link")
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "through the pipe")
    assert os.read(reading, 100) == b"through the pipe"
    os.close(reading)
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"])
@pytest.mark.parametrize("piped", [True, False])
def test_an_open_file_keeps_what_stands_in_it(tmp_path: Path, name: str, *, piped: bool) -> None:
    """Standard output gets the text between what is written there before and after, be it a pipe or a file."""
    if not Path(name).exists():
        pytest.skip(f"this system has no {name}")
    program = (
        "import os\n"
        "from pathlib import Path\n"
        "from holodeck.lib.whole_file import write_whole\n"
        "os.write(1, b'before ')\n"
        f"write_whole(Path({name!r}), 'text')\n"
        "os.write(1, b' after')\n"
    )
    path = tmp_path / "out"
    with path.open("wb") as file:
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE if piped else file, check=True)
    assert (done.stdout if piped else path.read_bytes()) == b"before text after"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_links_in_a_circle_are_an_error_like_any_other(tmp_path: Path) -> None:
    """Whoever handles what cannot be written handles this, too; nothing is replaced."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(one, "x")
    assert one.is_symlink()


def test_pieces_that_end_too_early_leave_the_file_as_it_was(tmp_path: Path) -> None:
    """What is written may be made while it is written; if that fails, nothing of it is left."""
    path = tmp_path / "page.html"
    path.write_text("before", encoding="utf-8")

    def pieces() -> Iterator[str]:
        yield "half"
        raise LookupError

    with pytest.raises(LookupError):
        write_whole(path, pieces())
    assert {entry.name: entry.read_text(encoding="utf-8") for entry in tmp_path.iterdir()} == {"page.html": "before"}
    write_whole(path, ["a", "b"])
    assert path.read_text(encoding="utf-8") == "ab"
