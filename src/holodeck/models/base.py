"""What the models share: strictness and the clock rule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

__all__ = ["Bool", "Float", "Int", "PastTime", "Strict", "Value", "utc_now"]


class Strict(BaseModel):
    """A model that refuses unknown fields and checks assignments."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, allow_inf_nan=False)


class Value(BaseModel):
    """A frozen model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")  # noqa: TRY004 - pydantic reports ValueError
    return value


def _in_the_past(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("must carry a time zone, e.g. datetime.now(timezone.utc)")
    if value > utc_now():
        raise ValueError("cannot be in the future")
    return value.astimezone(UTC)


def _true_or_false(value: Any) -> Any:
    # pydantic would take "no", "on" and 1 for switches; here they are text and numbers, as YAML 1.2 has them. Text comes from ${VAR}.
    if isinstance(value, bool) or value is None:
        return value
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError("must be true or false")


Bool = Annotated[bool, BeforeValidator(_true_or_false)]
"""A switch: true or false, and nothing that only looks like one."""
Int = Annotated[int, BeforeValidator(_not_bool)]
"""An integer; ``true`` is not 1."""
Float = Annotated[float, BeforeValidator(_not_bool)]
"""A finite number; ``true`` is not 1.0."""
PastTime = Annotated[datetime, AfterValidator(_in_the_past)]
"""An aware time in UTC that is not in the future."""
