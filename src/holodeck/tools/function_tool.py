"""Function tools: a Python callable that a model can call."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from holodeck.lib.validation import exportable
from holodeck.models.tool_execution import ToolSpec
from holodeck.tools.arguments import refusal
from holodeck.tools.fitting import fitted, stray_booleans
from holodeck.tools.parameters import Parameters, names_of
from holodeck.tools.results import as_text, collected
from holodeck.tools.running import bounded, in_daemon_thread
from holodeck.tools.signature import Docs, Signature, SignatureError, faults_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holodeck.models.agent import FunctionTool
    from holodeck.tools.loading import Loader
    from holodeck.tools.tool import CallContext, Place

__all__ = ["PythonTool"]


class PythonTool:
    """A Python callable as a tool.

    Arguments are checked against ``parameters`` of the agent file, if there are any, and then converted as the annotations say.
    Asynchronous callables run in the event loop, all others in a thread of their own (see :mod:`holodeck.tools.running`).

    Args:
        config: The tool as the agent file describes it.
        loader: Finds the callable.
        place: Where the tool stands.

    Raises:
        AgentFileError: The callable cannot be loaded, or its parameters cannot be described, or ``parameters`` do not fit them.
    """

    def __init__(self, config: FunctionTool, loader: Loader, place: Place) -> None:
        self._config = config
        self._function = (
            loader.from_file(config.file, config.function, place) if config.file else loader.from_module(config.function, place)
        )
        self._asynchronous = _is_asynchronous(self._function)
        written = config.parameters
        try:
            self._signature = Signature(self._function, lenient=written is not None)
        except SignatureError as exc:
            raise place.at("function").error(f"{config.function}: {exc}") from exc
        docs = Docs.of(self._function)
        self._parameters = None if written is None else _fitting(written, self._signature, place.at("parameters"))
        schema = self._parameters.schema if self._parameters else self._signature.schema(docs)
        self._offered = {} if self._parameters else schema
        self.spec = ToolSpec(name=config.name, description=exportable(config.description or docs.description), parameters=schema)

    async def call(self, arguments: dict[str, Any], context: CallContext) -> str:  # noqa: ARG002 - functions do not ask models
        """See :class:`holodeck.tools.tool.Tool`."""
        args, kwargs = self._signature.bind(self._checked(arguments))
        call = functools.partial(self._function, *args, **kwargs)
        return await bounded(self._run(call), self._config.timeout, self.spec.name)

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        rest: dict[str, Any] = {}
        if self._parameters:
            arguments = self._parameters.complete(self.spec.name, arguments)
            rest = {name: value for name, value in arguments.items() if name not in self._signature.names}  # for **kwargs, as they are
        annotated = {name: value for name, value in fitted(arguments, self._offered).items() if name not in rest}
        return self._converted(annotated) | rest

    def _converted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if strays := stray_booleans(arguments, self._offered):
            raise refusal(self.spec.name, strays, names_of(self.spec.parameters))
        try:
            return self._signature.convert(json.dumps(arguments))
        except ValidationError as exc:
            raise refusal(self.spec.name, faults_of(exc, arguments), names_of(self.spec.parameters)) from exc

    async def _run(self, call: Callable[[], Any]) -> str:
        value = call() if self._asynchronous else await in_daemon_thread(functools.partial(_value, call))
        while inspect.isawaitable(value):
            value = await value
        return as_text(await collected(value) if isinstance(value, AsyncIterator) else value)


def _value(call: Callable[[], Any]) -> Any:
    """What the call returns, written as text here in the thread unless it is still to be awaited."""
    value = call()
    return value if inspect.isawaitable(value) or isinstance(value, AsyncIterator) else as_text(value)


def _is_asynchronous(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(function) or kind(getattr(type(function), "__call__", None)) for kind in kinds)  # noqa: B004 - not whether, but which


def _fitting(written: dict[str, Any], signature: Signature, place: Place) -> Parameters:
    optional = frozenset(p.name for p in signature.parameters if not p.required)
    parameters = Parameters(written, place, optional)
    _check_fit(parameters, signature)
    needed = [p.name for p in signature.parameters if p.required and p.name not in parameters.defaults]
    if denied := next((name for name in needed if _denied(written, name)), None):
        raise parameters.place_of(denied).error("says 'required: false', but the function needs it: give it a default there or here")
    parameters.require(needed)
    return parameters


def _check_fit(parameters: Parameters, signature: Signature) -> None:
    names, taken = names_of(parameters.schema), [p.name for p in signature.parameters]
    if (stray := next((name for name in names if name not in taken), None)) and not signature.open:
        raise parameters.place_of(stray).error(f"the function has no such parameter; it has: {', '.join(taken) or 'none'}")
    if lacking := next((p.name for p in signature.parameters if p.required and p.name not in names), None):
        raise parameters.place.error(f"{lacking!r} is missing: the function needs it")
    if parameters.schema.get("additionalProperties", True) is not False and not signature.open:
        raise parameters.place.at("additionalProperties").error("must be false: the function takes no other arguments (it has no **kwargs)")


def _denied(written: dict[str, Any], name: str) -> bool:
    entry = written.get(name)
    return isinstance(entry, dict) and entry.get("required") is False
