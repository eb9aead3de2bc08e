"""What a session may take: ``--max-cost`` and ``--max-tokens``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from holodeck.backends import pricing
from holodeck.errors import SettingError
from holodeck.lib.money import format_usd
from holodeck.models.agent import PromptTool
from holodeck.models.cost import RequestUsage, total_cost
from holodeck.traces import format_count

if TYPE_CHECKING:
    from holodeck.chat import Agent
    from holodeck.models.events import TurnResult

__all__ = ["Budget"]


class Budget:
    """Counts what turns take, and says when it is enough.

    A turn that has begun is never cut short, so the last one may go over. A request that failed or was stopped counts with what the
    provider reported for it; one that was answered without being counted ends the session, since nobody could say any more what is left.

    Args:
        max_cost: US dollars; None is no limit.
        max_tokens: Input and output tokens together; None is no limit.

    Raises:
        SettingError: ``max_cost`` is not a finite number.
    """

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        if max_cost is not None and not math.isfinite(max_cost):
            raise SettingError("--max-cost: write a number of US dollars, for example 0.50")
        self._max_cost, self._max_tokens = max_cost, max_tokens
        self._costs: list[float] = []
        self._tokens = 0
        self._unknown = ""

    def check(self, agent: Agent) -> None:
        """Check that a budget in dollars can be kept.

        Raises:
            SettingError: The price of a model of the agent is not known.
        """
        if self._max_cost is None:
            return
        tools = [tool.model for tool in agent.config.tools if isinstance(tool, PromptTool) and tool.model]
        for model in (None, *tools):
            backend = agent.backend_for(model)
            if pricing.is_priced(backend.endpoint) is False:
                raise SettingError(
                    f"--max-cost: what {backend.config.label} costs is not known: write 'price: {{input: …, output: …}}' (US dollars per "
                    "million tokens) below its model in the agent file, or use --max-tokens"
                )

    def add(self, result: TurnResult) -> None:
        """Count a turn."""
        for request in result.requests:
            self._count(request)

    def _count(self, request: RequestUsage) -> None:
        self._tokens += request.usage.total_tokens if request.usage else 0
        if request.cost_usd is not None:
            self._costs.append(request.cost_usd)
        if request.answered and self._max_cost is not None and request.cost_usd is None:
            self._unknown = f"What {request.model} cost is not known, so --max-cost cannot be kept"
        elif request.answered and self._max_tokens is not None and request.usage is None:
            self._unknown = f"{request.model} did not say how many tokens it took, so --max-tokens cannot be kept"

    @property
    def reached(self) -> str:
        """Why no further turn may begin, in one line; "" if one may."""
        if self._unknown:
            return f"{self._unknown}: this session ends here."
        spent = total_cost(self._costs) or 0.0
        if self._max_cost is not None and spent >= self._max_cost:
            used, limit = format_usd(spent), format_usd(self._max_cost)
            return f"This session has taken {used} of its {limit} and ends here (--max-cost sets it)."
        if self._max_tokens is not None and self._tokens >= self._max_tokens:
            used, limit = format_count(self._tokens), format_count(self._max_tokens)
            return f"This session has taken {used} of its {limit} tokens and ends here (--max-tokens sets it)."
        return ""
