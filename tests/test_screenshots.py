"""The pictures of the documentation show what the command does."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "scripts").exists(), reason="the documentation is not part of an installed package")


def _words(path: Path) -> list[str]:
    """What a picture says, in order, without what differs each time: times, ids, and the lengths of bars."""
    text = " ".join(html.unescape(part) for part in re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8")))
    text = re.sub(r"\b[0-9a-f]{32}\b|[\d.]+\s(ms|µs|s)\b", "", text)
    return [word for word in text.split() if not set(word) <= set("█▏▎▍▌▋▊▉▐▕")]


def test_they_are_true(tmp_path):
    """Taken again, they say the same."""
    done = subprocess.run([sys.executable, "scripts/screenshots.py", tmp_path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pictures = sorted(path.name for path in tmp_path.iterdir())
    assert pictures == sorted(path.name for path in (ROOT / "docs/images").glob("*.svg"))
    for name in pictures:
        assert _words(ROOT / "docs/images" / name) == _words(tmp_path / name)


def test_they_fetch_nothing():
    """A page with such a picture asks no other server for anything."""
    for path in (ROOT / "docs/images").glob("*.svg"):
        assert re.findall(r"(?:href|src|url\()\W*(https?:[^\"')]*)", path.read_text(encoding="utf-8")) == []
