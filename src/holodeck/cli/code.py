"""Code in the colours of the terminal."""

from __future__ import annotations

import functools
from typing import Any, Final

from rich.text import Text

__all__ = ["code_lines"]

_LONGEST_LINE: Final = 2000
"""Characters of a line of code that are still coloured; longer ones are data."""


def code_lines(code: str, info: str, *, colour: bool) -> list[Text]:
    """Code in colours, one text a line, with nothing added to it."""
    longest = max(map(len, code.split("\n")))
    lexer = _lexer(info.split(maxsplit=1)[0].lower() if info.split() else "") if colour and longest <= _LONGEST_LINE else None
    if lexer is None:
        return [Text(line) for line in code.split("\n")]
    text = Text()
    for kind, value in lexer.get_tokens(code):
        text.append(value, _style_of(kind))
    lines: list[Text] = list(text.split("\n", allow_blank=True))
    wanted = code.count("\n") + 1  # a lexer may add a line end
    return lines[:wanted] + [Text()] * (wanted - len(lines))


@functools.lru_cache(maxsize=32)
def _lexer(name: str) -> Any:
    if not name:
        return None
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - the prompt has to be quick
    from pygments.util import ClassNotFound  # noqa: PLC0415 - as above

    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@functools.cache
def _style_of(kind: Any) -> str:
    """The terminal's own colours, so that code can be read on any background."""
    from pygments.token import Token as Kind  # noqa: PLC0415 - the prompt has to be quick

    styles = (
        (Kind.Comment, "dim"),
        (Kind.Keyword, "magenta"),
        (Kind.Name.Function, "blue"),
        (Kind.Name.Class, "bold blue"),
        (Kind.Name.Decorator, "blue"),
        (Kind.Name.Builtin, "cyan"),
        (Kind.Name.Tag, "blue"),
        (Kind.Literal.String, "green"),
        (Kind.Literal.Number, "yellow"),
        (Kind.Operator.Word, "magenta"),
        (Kind.Generic.Deleted, "red"),
        (Kind.Generic.Inserted, "green"),
        (Kind.Generic.Heading, "bold"),
    )
    return next((style for parent, style in styles if kind in parent), "")
