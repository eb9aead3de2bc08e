"""Names of tools."""

from __future__ import annotations

import re

import pytest

from holodeck.models.tool_name import MAX_TOOL_NAME, TOOL_NAME, with_plain_characters


@pytest.mark.parametrize("name", ["a", "get-order_2", "get order", "näher", "a.b\n", "🤔", "\ud800", "x" * MAX_TOOL_NAME])
def test_plain_characters_make_a_name(name: str) -> None:
    """Whatever is not too long becomes a name of the same length, and a name stays as it is."""
    plain = with_plain_characters(name)
    assert re.fullmatch(TOOL_NAME, plain)
    assert len(plain) == len(name)
    assert (plain == name) == bool(re.fullmatch(TOOL_NAME, name))


@pytest.mark.parametrize("name", ["", "x" * (MAX_TOOL_NAME + 1), "a\n"])
def test_what_is_no_name(name: str) -> None:
    """Nothing, too much, and a line end."""
    assert not re.fullmatch(TOOL_NAME, name)
