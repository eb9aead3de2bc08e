"""Lists and mappings that cannot be changed, for what lies inside of frozen values.

They are lists and dicts, equal to others with the same content, and encoded like them; only what asks for the exact type, as PyYAML's safe
dumper does, wants the plain ones that ``model_dump()`` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["FrozenDict", "FrozenList", "frozen"]


def _refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(f"this {type(self).__mro__[1].__name__} is part of a frozen value and cannot be changed: make a copy of it")


class FrozenList(list[Any]):
    """A list whose content stays as it is."""

    __slots__ = ()

    if not TYPE_CHECKING:  # no list may refuse these, says a type checker
        append = extend = insert = pop = remove = clear = sort = reverse = _refuse
        __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)  # by default copies are filled item by item


class FrozenDict(dict[Any, Any]):
    """A dict whose content stays as it is."""

    __slots__ = ()

    if not TYPE_CHECKING:  # as above
        pop = popitem = clear = update = setdefault = _refuse
        __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def frozen(value: Any) -> Any:
    """``value`` with the lists and dicts in it, at any depth, made such that cannot be changed; anything else stays the object it is."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    if isinstance(value, list):
        return FrozenList([frozen(item) for item in value])
    return value
