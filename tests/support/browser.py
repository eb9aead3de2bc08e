"""A real Chromium without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["dom_of", "needs_chromium"]

_CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
_REQUIRED = os.environ.get("HOLODECK_REQUIRE_CHROMIUM") == "1"
needs_chromium = pytest.mark.skipif(_CHROMIUM is None and not _REQUIRED, reason="there is no Chromium (apt-get install chromium)")
"""Skips where there is none; with HOLODECK_REQUIRE_CHROMIUM=1 the test fails instead."""


def dom_of(page: Path, *, proxy: str, timeout: float = 60) -> str:
    """The page as Chromium holds it after loading: scripts have run, if it let any run.

    Args:
        page: An HTML file.
        proxy: Where every request to anything but the file goes, ``host:port``.
        timeout: Seconds.
    """
    assert _CHROMIUM, "HOLODECK_REQUIRE_CHROMIUM=1, and there is no Chromium (apt-get install chromium)"
    with tempfile.TemporaryDirectory(prefix="chromium-") as profile:
        quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu"]
        command = [_CHROMIUM, "--headless", "--no-sandbox", *quiet, f"--user-data-dir={profile}", f"--proxy-server={proxy}"]
        command += ["--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=True)
    return done.stdout.decode("utf-8", "replace")
