"""A case file as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from holodeck.errors import InputError
from holodeck.lib.validation import ValidationPipeline
from holodeck.models.base import Float, Strict
from holodeck.models.cost import Price
from holodeck.testing.expect import Expect
from holodeck.testing.matching import Given

__all__ = ["Case", "CaseFile", "CaseTurn", "Defaults", "HoloDeckCase", "HoloDeckTurn"]


def _sendable(text: str) -> str:
    if not text.strip():
        raise ValueError("must be text that is not empty")
    try:
        ValidationPipeline().validate(text)
    except InputError as error:
        raise ValueError(error.message) from error
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must be text that is not empty")
    return text


_Message = Annotated[str, AfterValidator(_sendable)]
"""What can be sent: that it cannot is known before anything runs."""


class CaseTurn(Given):
    """One message of a case.

    Attributes:
        user: What the user says.
        expect: What is expected of this turn alone.
    """

    user: _Message
    expect: Expect | None = None


def _turns(value: Any) -> Any:
    """Turns from the short forms. A value that is no text is refused where a turn has its text, with how it is written."""
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        raise ValueError("must be text, or a list of turns (lines that start with '- ')")  # noqa: TRY004 - pydantic reports ValueError
    return [entry if isinstance(entry, dict | list | CaseTurn) else {"user": entry} for entry in entries]


class _Model(Strict):
    """Who answers.

    Attributes:
        script: A script that answers, relative to this file.
        recording: A recording that answers, relative to this file.
        replay_tools: Results of tools come from the script or recording.
        pass_rate: Part of the repetitions that has to pass, from 0 to 1; all of them by default.
    """

    script: Path | None = None
    recording: Path | None = None
    replay_tools: bool | None = None
    pass_rate: Float | None = Field(default=None, gt=0, le=1)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.script is not None and self.recording is not None:
            raise ValueError("either 'script' or 'recording'")
        return self


class Defaults(_Model):
    """What holds for all cases of the file that do not say otherwise."""


class Case(_Model):
    """One test case.

    Attributes:
        name: Its name; the first message by default.
        input: What the user says: a text, or a list of turns.
        expect: What is expected of all turns together; of answers, the last.
    """

    name: Annotated[str, AfterValidator(_not_blank)] | None = None
    input: Annotated[list[CaseTurn], BeforeValidator(_turns)] = Field(min_length=1)
    expect: Expect = Field(default_factory=Expect)


class CaseFile(Strict):
    """Test cases of an agent.

    Attributes:
        defaults: What holds for all cases.
        prices: US dollars per million tokens by the name of the model, in place of the price list's.
        cases: The cases.
    """

    defaults: Defaults = Field(default_factory=Defaults)
    prices: dict[str, Price] = Field(default_factory=dict)
    cases: list[Case]


class HoloDeckTurn(Strict):
    """A message of a test case in an agent file.

    Attributes:
        input: What the user says.
        expected_tools: Tools that have to be called, in any order.
        ground_truth: Text that stands in the answer.
    """

    input: _Message
    expected_tools: list[str] = Field(default_factory=list)
    ground_truth: str | None = None

    @field_validator("expected_tools", mode="before")
    @classmethod
    def _none_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value

    @property
    def expect(self) -> Expect:
        """The same in the words of case files."""
        tools = {"tools": self.expected_tools} if self.expected_tools else {}
        answer = {"answer": {"contains": self.ground_truth}} if self.ground_truth else {}
        return Expect.model_validate(tools | answer)


class HoloDeckCase(HoloDeckTurn):
    """A test case in an agent file.

    Attributes:
        name: Its name; the message by default.
    """

    name: str | None = None


class HoloDeckCases(Strict):
    """The part of an agent file that holds its test cases.

    Attributes:
        test_cases: The cases.
    """

    test_cases: list[HoloDeckCase]
