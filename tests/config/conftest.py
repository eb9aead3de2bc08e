from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINIMAL = "name: support\nmodel: {provider: scripted, script: s.yaml}\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes an agent file, by default under a minimal head, beside a script and a tool file."""
    (tmp_path / "s.yaml").write_text("replies: []\n", encoding="utf-8")
    (tmp_path / "tools.py").write_text("def lookup(): ...\n", encoding="utf-8")

    def write_agent(text: str, *, head: str = MINIMAL) -> Path:
        path = tmp_path / "agent.yaml"
        path.write_text(head + text, encoding="utf-8")
        return path

    return write_agent
