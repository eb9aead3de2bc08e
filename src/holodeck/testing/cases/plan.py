"""A case that is ready to be run, wherever it was read."""

from __future__ import annotations

from dataclasses import dataclass, field

from holodeck.testing.calls import Prices
from holodeck.testing.cases.case_file import CaseTurn
from holodeck.testing.expect import Expect

__all__ = ["PlannedCase"]


@dataclass(frozen=True)
class PlannedCase:
    """One case.

    Attributes:
        name: Its name, different from all others of its file.
        file: The file it stands in, as the user named it.
        line: 1-based line.
        turns: What is said.
        expect: What is expected of all turns together.
        model: ``scripted/FILE`` that answers; None for the agent's own model.
        replay_tools: Results of tools come from the script.
        pass_rate: Part of the repetitions that has to pass.
        prices: What models cost, where that is not known otherwise.
        source: The file as it is reached from the agent's directory: the same wherever the command is run.
    """

    name: str
    file: str
    line: int
    turns: tuple[CaseTurn, ...]
    expect: Expect
    model: str | None = None
    replay_tools: bool = False
    pass_rate: float | None = None
    prices: Prices = field(default_factory=Prices)
    source: str = ""

    @property
    def key(self) -> str:
        """``cases.yaml::asks for an order``: the case in a baseline."""
        return f"{self.source}::{self.name}"

    @property
    def place(self) -> str:
        """``cases.yaml:12``."""
        return f"{self.file}:{self.line}"
