"""What the models share: strictness, and the rules for numbers, switches, times and URLs."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from holodeck.lib.url import split_url
from holodeck.models.frozen import frozen

__all__ = ["MAX_INT", "Bool", "Float", "HttpUrl", "Int", "PastTime", "Strict", "Value", "all_known", "utc_now"]

T = TypeVar("T")
MAX_INT: Final = 2**63 - 1
"""The largest integer that telemetry can carry: OTLP's have 64 bits."""


class Strict(BaseModel):
    """A model that refuses unknown fields and checks assignments; one that is refused changes nothing.

    What was refused is not in the text of the error: it may be a secret.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, allow_inf_nan=False, hide_input_in_errors=True)

    if not TYPE_CHECKING:  # with it, a type checker would let any name be assigned

        def __setattr__(self, name: str, value: Any) -> None:
            # pydantic asks the validators of a whole model once the value is in place, and leaves it there when they refuse it.
            before = {part: copy(getattr(self, part)) for part in ("__dict__", "__pydantic_fields_set__", "__pydantic_private__")}
            try:
                super().__setattr__(name, value)
            except BaseException:
                for part, content in before.items():
                    object.__setattr__(self, part, content)
                raise


class Value(BaseModel):
    """A frozen model that refuses unknown fields; the lists and mappings in it cannot be changed either."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def model_post_init(self, context: Any, /) -> None:
        """Freeze what is inside."""
        del context
        fields = self.__dict__
        for name, value in fields.items():
            if isinstance(value, list | dict):
                fields[name] = frozen(value)


def all_known(values: Iterable[T | None]) -> list[T]:
    """``values``; empty if one of them is unknown: a sum of the others would be taken for the whole."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")  # noqa: TRY004 - pydantic reports ValueError
    return value


def _fits_64_bits(value: int) -> int:
    if not -MAX_INT <= value <= MAX_INT:
        raise ValueError(f"must be at most {MAX_INT:,}" if value > 0 else f"must be at least {-MAX_INT:,}")
    return value


def _is_http_url(value: str) -> str:
    split_url(value)
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
Int = Annotated[int, BeforeValidator(_not_bool), AfterValidator(_fits_64_bits)]
"""An integer of at most 64 bits; ``true`` is not 1."""
Float = Annotated[float, BeforeValidator(_not_bool)]
"""A finite number; ``true`` is not 1.0."""
HttpUrl = Annotated[str, AfterValidator(_is_http_url)]
"""An ``http://`` or ``https://`` URL that a client can use; the error leaves it out, it may hold a password."""
PastTime = Annotated[datetime, AfterValidator(_in_the_past)]
"""An aware time in UTC that is not in the future."""
