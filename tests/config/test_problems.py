from __future__ import annotations

import pytest

from holodeck.config.problems import KeyedError
from holodeck.lib.problems import choices, nearest


@pytest.mark.parametrize(("values", "text"), [(["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")])
def test_choices_read_as_a_sentence(values: list[str], text: str) -> None:
    """Lists of choices end with 'or'."""
    assert choices(values) == text


def test_only_a_near_word_is_suggested() -> None:
    """A suggestion is made for a slip, not for any word."""
    assert nearest("Endpiont", ["endpoint", "name"]) == "; did you mean 'endpoint'?"
    assert nearest("zzz", ["endpoint", "name"]) == ""


def test_an_error_without_its_file_still_names_the_key() -> None:
    """What is wrong in a section that a program built is named by its key."""
    assert (
        str(KeyedError(("observability", "traces", "redaction_patterns", 0), "wrong"))
        == "agent file: observability.traces.redaction_patterns[0]: wrong"
    )
