"""What a Python callable takes, as a JSON Schema, and arguments as it takes them.

Annotations mean what they mean to pydantic: it writes the schema and converts the arguments, so that a ``datetime``, an ``Enum`` or a
model arrives as one. Descriptions come from the docstring (Google, NumPy, reST or Epydoc style).
"""

from __future__ import annotations

import builtins
import functools
import inspect
import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, Optional, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict  # what pydantic needs below Python 3.12

from holodeck.lib.validation import exportable, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import ErrorDetails

__all__ = ["Docs", "Parameter", "Signature", "SignatureError", "faults_of"]

_ABSENT: Final = inspect.Parameter.empty
_SHOWN_CHARS: Final = 200
_STARRED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class SignatureError(Exception):
    """A callable whose parameters cannot be described or converted; the message says which and why."""


@dataclass(frozen=True)
class Parameter:
    """One parameter that a model can fill.

    Attributes:
        name: As in Python.
        annotation: What pydantic makes of an argument; Any where nothing is said.
        default: Python's default, or ``inspect.Parameter.empty``.
        positional: It cannot be passed by name.
    """

    name: str
    annotation: Any
    default: Any
    positional: bool

    @property
    def required(self) -> bool:
        """A call without it is an error."""
        return self.default is _ABSENT and not _has_field_default(self.annotation)


@dataclass(frozen=True)
class Docs:
    """What a docstring says.

    Attributes:
        description: What the callable does, without the sections about parameters and results.
        parameters: Descriptions by parameter name.
    """

    description: str
    parameters: dict[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Docs:
        """The docstring of a function, of an instance's ``__call__`` or its class, or of what a partial wraps."""
        from docstring_parser import ParseError, parse  # noqa: PLC0415 - not needed where a file says everything

        text = _docstring(function)
        try:
            parsed = parse(text)
        except ParseError:
            return cls(text, {})
        paragraphs = [part for part in (parsed.short_description, parsed.long_description) if part]
        return cls("\n\n".join(paragraphs), {p.arg_name: p.description for p in parsed.params if p.description})


class Signature:
    """The parameters of a callable.

    What a ``functools.partial`` has bound is not offered. ``*args`` and ``**kwargs`` are not offered either; ``open`` tells that the
    latter takes names that an agent file describes.

    Args:
        function: Any callable.
        lenient: Annotations that JSON cannot express are taken as anything, because an agent file describes the parameters. Otherwise
            such a parameter is left out if it has a default, and is a fault if not.

    Attributes:
        parameters: In order.
        open: There is a ``**kwargs``.

    Raises:
        SignatureError: There is no signature, an annotation cannot be evaluated, or JSON cannot express a required parameter.
    """

    def __init__(self, function: Callable[..., Any], *, lenient: bool = False) -> None:
        given = _inspect(function)
        self.open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in given)
        bound = _bound_names(function)
        plain = [_parameter(p) for p in given if p.kind not in _STARRED and p.name not in bound]
        self._module = getattr(_innermost(function), "__module__", None) or __name__
        self.parameters = [kept for parameter in plain if (kept := self._expressible(parameter, lenient))]
        self._adapter = self._adapt(self.parameters)

    @property
    def names(self) -> list[str]:
        """The parameters' names, in order."""
        return [parameter.name for parameter in self.parameters]

    def _expressible(self, parameter: Parameter, lenient: bool) -> Parameter | None:
        try:
            _check_form(parameter, _as_json(self._adapt([parameter]).json_schema(by_alias=False)))
        except Exception as exc:  # whatever an annotation's own pydantic hooks raise
            if lenient:
                return replace(parameter, annotation=Any)
            if not parameter.required:
                return None
            raise SignatureError(f"parameter {parameter.name!r}: {_complaint(parameter.annotation, exc)}, or write 'parameters'") from exc
        return parameter

    def _adapt(self, parameters: list[Parameter]) -> TypeAdapter[dict[str, Any]]:
        # A TypedDict takes any name, also those that a model class has a use for, and keeps absent arguments absent.
        fields = {p.name: p.annotation if p.required else NotRequired[p.annotation] for p in parameters}
        build: Any = TypedDict  # mypy knows literal fields only
        taken = build("Arguments", fields)
        taken.__module__ = self._module  # where pydantic looks up names in annotations
        taken.__pydantic_config__ = ConfigDict(
            extra="forbid", arbitrary_types_allowed=False, validate_by_name=True, loc_by_alias=False, allow_inf_nan=False
        )
        return TypeAdapter(taken)

    def schema(self, docs: Docs) -> dict[str, Any]:
        """The JSON Schema of the parameters, with the descriptions of ``docs`` and Python's defaults."""
        schema = self._adapter.json_schema(by_alias=False, schema_generator=_Untitled)
        schema.pop("title", None)
        for parameter in self.parameters:
            entry = schema["properties"][parameter.name]
            if described := docs.parameters.get(parameter.name):
                entry.setdefault("description", described)
            if "default" not in entry:
                entry.update(_json_default(parameter.default))
        written: dict[str, Any] = _as_json(schema)
        return written

    def convert(self, arguments: str) -> dict[str, Any]:
        """Arguments as their annotations say, from the text of a JSON object.

        Raises:
            pydantic.ValidationError: They do not fit.
            Exception: Whatever a validator of the user's own raises.
        """
        return self._adapter.validate_json(arguments)

    def bind(self, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of the call; defaults fill the gaps before a positional-only argument that is given."""
        slots = [p for p in self.parameters if p.positional]
        used = max((i + 1 for i, p in enumerate(slots) if p.name in arguments), default=0)
        args = [arguments.get(p.name, p.default) for p in slots[:used]]
        taken = {p.name for p in slots}
        return args, {name: value for name, value in arguments.items() if name not in taken}


def faults_of(error: ValidationError, arguments: Any) -> list[tuple[str, str]]:
    """A validation error as pairs of where (dotted) and what, one for each place in ``arguments``, which is what was validated."""
    found: dict[str, dict[str, None]] = {}
    for fault in error.errors(include_url=False):
        found.setdefault(_where(fault, arguments), {})[_words(fault)] = None
    return [(where, ", or ".join(words)) for where, words in found.items()]


def _where(fault: ErrorDetails, value: Any) -> str:
    """The place of a fault, without the names that pydantic gives to the members of a union."""
    parts: list[str] = []
    for number, part in enumerate(fault["loc"]):
        is_there = part in value if isinstance(value, dict) else isinstance(value, list) and part in range(len(value))
        if is_there or (number == len(fault["loc"]) - 1 and fault["type"] == "missing"):
            parts.append(str(part) or '""')
            value = value[part] if is_there else None
    return ".".join(parts)


def _words(fault: ErrorDetails) -> str:
    fixed = {"missing": "is missing", "extra_forbidden": "is not a parameter", "path_type": "Input should be a path"}
    return fixed.get(fault["type"], fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, "))


class _Untitled(GenerateJsonSchema):
    """Without a title for each field: it only repeats the name, in tokens that the user pays for."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def _check_form(parameter: Parameter, schema: dict[str, Any]) -> None:
    """Raises TypeError where pydantic has a schema for a parameter that no argument in JSON can fit."""
    if parameter.name not in schema.get("properties", {}) and "$ref" in schema:
        raise TypeError("it refers to the function itself")
    if get_origin(parameter.annotation) is type or parameter.annotation is type:
        raise TypeError("JSON has no classes")


def _complaint(annotation: Any, exc: Exception) -> str:
    if isinstance(exc, PydanticUserError) and exc.code == "typed-dict-version":
        return "before Python 3.12 its TypedDict has to be imported from typing_extensions: do that"
    if isinstance(annotation, _Unknown):
        return f"its annotation {annotation.text!r} cannot be evaluated ({annotation.reason}): import what it names, also at run time"
    shown = shorten(inspect.formatannotation(annotation), _SHOWN_CHARS)
    return f"JSON has no form for {shown}; give it another type or a default"


@dataclass(frozen=True)
class _Unknown:
    """Stands for an annotation that cannot be evaluated."""

    text: str
    reason: str


def _inspect(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, their annotations evaluated. What a function returns is of no interest here, and may be unknown."""
    try:
        given = list(inspect.signature(function).parameters.values())
    except Exception as exc:  # the user's own __signature__ included
        raise SignatureError(f"it has no signature that Python can read ({exc}); write 'parameters'") from exc
    if not any(isinstance(parameter.annotation, str) for parameter in given):
        return given
    names = _names_seen_by(function)
    return [parameter.replace(annotation=_evaluated(parameter.annotation, names)) for parameter in given]


def _names_seen_by(function: Callable[..., Any]) -> dict[str, Any]:
    inner = _innermost(function)
    if inspect.isclass(inner):
        return dict(vars(sys.modules.get(inner.__module__, builtins)))
    code = inner if inspect.isroutine(inner) else type(inner).__call__
    return dict(getattr(inspect.unwrap(code), "__globals__", {}))


def _evaluated(annotation: Any, names: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, names)  # noqa: S307 - the user's own code, as typing.get_type_hints() would
    except Exception as exc:  # noqa: BLE001 - anything at all stands in it
        return _Unknown(annotation, shorten(f"{type(exc).__name__}: {exc}", _SHOWN_CHARS))


def _parameter(given: inspect.Parameter) -> Parameter:
    annotation, default = given.annotation, given.default
    if annotation is _ABSENT:
        annotation = type(default) if isinstance(default, str | bool | int | float) else Any
    if isinstance(default, FieldInfo):  # `x: int = Field(5, ge=0)`: pydantic fills it in, Python would pass the Field itself
        annotation, default = Annotated[annotation, default], _ABSENT
    if default is None:
        annotation = _or_none(annotation)
    return Parameter(given.name, annotation, default, given.kind is inspect.Parameter.POSITIONAL_ONLY)


def _or_none(annotation: Any) -> Any:
    """``x: str = None`` says that None is one of its values."""
    if annotation is Any or isinstance(annotation, _Unknown):
        return annotation
    try:
        return Optional[annotation]  # noqa: UP045 - annotations need not know the operator
    except TypeError:  # no type at all
        return annotation


def _has_field_default(annotation: Any) -> bool:
    return any(isinstance(m, FieldInfo) and not m.is_required() for m in getattr(annotation, "__metadata__", ()))


def _bound_names(function: Callable[..., Any]) -> set[str]:
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def _innermost(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function)


def _docstring(function: Callable[..., Any]) -> str:
    inner = _innermost(function)
    if inspect.isclass(inner):
        return _class_docstring(inner)
    if not inspect.isroutine(inner):
        return inspect.getdoc(type(inner).__call__) or _class_docstring(type(inner))
    return inspect.getdoc(inner) or ""


def _class_docstring(cls: type) -> str:
    """What a class says itself: not what its base says, and not the signature that a dataclass gets as its docstring."""
    said = vars(cls).get("__doc__")
    return inspect.cleandoc(said) if isinstance(said, str) and not said.startswith(f"{cls.__name__}(") else ""


def _json_default(default: Any) -> dict[str, Any]:
    if default is _ABSENT:
        return {}
    try:
        return {"default": _as_json(to_jsonable_python(default))}
    except Exception:  # noqa: BLE001 - a default that JSON has no form for is still a default, only not one to show
        return {}


def _as_json(value: Any) -> Any:
    """``value`` as JSON that UTF-8 can carry; raises ValueError for numbers that JSON has not."""
    return json.loads(exportable(json.dumps(value, ensure_ascii=False, allow_nan=False)))
