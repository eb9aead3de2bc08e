"""Python functions as tools."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from holodeck.errors import AgentFileError, ToolError, ToolRefused, ToolTimeout


@pytest.mark.parametrize(
    "source",
    [
        "def f(city: str): return city.upper()",
        "async def f(city: str): return city.upper()",
        "class F:\n    def __call__(self, city: str): return city.upper()\nf = F()",
        "class F:\n    async def __call__(self, city: str): return city.upper()\nf = F()",
        "import functools\ndef g(shout, city: str): return city.upper() if shout else city\nf = functools.partial(g, True)",
        "import functools\nasync def g(shout, city: str): return city.upper()\nf = functools.partial(g, True)",
        "async def g(city): return city.upper()\ndef f(city: str): return g(city)",
        "class C:\n    @staticmethod\n    def f(city: str): return city.upper()\nf = C.f",
        "def f(city: str, /): return city.upper()",
        "def f(*, city: str, **rest): return city.upper()",
    ],
)
def test_every_kind_of_callable(bench, source):
    """Functions, coroutines, instances and partials are called alike."""
    assert bench.call(bench.function(source), '{"city": "Bonn"}') == "BONN"


@pytest.mark.parametrize(
    "name", ["settings", "kernel", "self", "arguments", "service", "cls", "context", "function", "call", "args", "kwargs"]
)
def test_any_parameter_name(bench, name):
    """No parameter name is taken by the machinery, from the signature or from the file."""
    source = f"def f({name}: int): return {name} + 1"
    assert bench.call(bench.function(source), {name: 1}) == "2"
    assert bench.call(bench.function(source, parameters={name: {"type": "integer"}}), {name: 1}) == "2"


def test_the_spec_comes_from_signature_and_docstring(bench):
    """Without ``description`` and ``parameters`` in the file, Python says them; the file's words win."""
    source = 'def f(city: str):\n    """Weather.\n\n    Args:\n        city: Where.\n    """'
    spec = bench.function(source).spec("f")
    assert (spec.name, spec.description, spec.type) == ("f", "Weather.", "function")
    assert spec.parameters["properties"] == {"city": {"type": "string", "description": "Where."}}
    assert bench.function(source, description="Mine.").spec("f").description == "Mine."


def test_wrong_arguments_are_refused_and_nothing_runs(bench):
    """The refusal says what was wrong, and the function is not called."""
    box = bench.function("ran = []\ndef f(n: int): open('ran', 'w')")
    for arguments in ("{", "[]", "{}", '{"n": "abc"}', '{"n": 1, "m": 2}'):
        with pytest.raises(ToolRefused):
            bench.call(box, arguments)
    with pytest.raises(ToolRefused, match=r"The arguments do not fit f: n: Input should be a valid integer.*Parameters: n\."):
        bench.call(box, '{"n": "abc"}')
    assert not (bench.directory / "ran").exists()


@pytest.mark.parametrize("number", ['"NaN"', '"inf"', '"1e999"', "true"])
def test_what_is_no_number_in_json_is_none_as_text(bench, number):
    """A function that asks for a number gets one: what JSON cannot write as a number is refused as text, too."""
    box = bench.function("def f(x: float = float('inf')): return x")
    with pytest.raises(ToolRefused, match=r"x: (Input should be a finite number|must be a number)"):
        bench.call(box, f'{{"x": {number}}}')
    assert bench.call(box, "{}") == '"Infinity"'  # Python's own default is the function's matter


def test_yaml_parameters_are_checked_then_converted(bench):
    """``parameters`` decide what is accepted, annotations what the function gets; defaults of the file are passed on."""
    source = "import datetime\ndef f(day: datetime.date, n: int = 1): return f'{day.year} {n}'"
    box = bench.function(
        source, parameters={"day": {"type": "string", "description": "d"}, "n": {"type": "integer", "default": 7, "maximum": 9}}
    )
    assert bench.call(box, {"day": "2026-01-02"}) == "2026 7"
    for arguments in ({"day": "2026-01-02", "n": 10}, {"day": "someday"}, {"day": 5}):
        with pytest.raises(ToolRefused):
            bench.call(box, arguments)


def test_keyword_arguments_take_what_the_file_describes(bench):
    """``**kwargs`` receive parameters that only the file knows, and any others if the schema is open."""
    source = "import json\ndef f(a: int, **rest): return json.dumps([a, rest])"
    box = bench.function(source, parameters={"a": {"type": "integer"}, "b": {"type": "string"}})
    assert json.loads(bench.call(box, {"a": 1, "b": "x"})) == [1, {"b": "x"}]
    box = bench.function(source, parameters={"type": "object", "properties": {"a": {}}, "additionalProperties": True})
    assert json.loads(bench.call(box, {"a": 1, "z": None})) == [1, {"z": None}]


def test_python_defaults_make_parameters_optional(bench):
    """What has a default in Python need not be given; what has none is required, whatever a schema says."""
    box = bench.function("def f(a, b=2): return [a, b]", parameters={"type": "object", "properties": {"a": {}, "b": {}}})
    assert box.spec("f").parameters["required"] == ["a"]
    assert bench.call(box, {"a": 1}) == "[1,2]"
    box = bench.function("def f(a, b=2): return [a, b]", parameters={"a": {}, "b": {"type": "integer"}})
    assert box.spec("f").parameters["required"] == ["a"]


@pytest.mark.parametrize(
    ("source", "parameters", "key", "words"),
    [
        ("def f(a): pass", {"b": {}}, "parameters.b", "no such parameter; it has: a"),
        ("def f(a, b): pass", {"a": {}}, "parameters", "'b' is missing"),
        ("def f(a): pass", {"a": {"required": False}}, "parameters.a", "required: false"),
        ("def f(a): pass", {"properties": {"a": {}}, "additionalProperties": True}, "parameters.additionalProperties", "must be false"),
        ("def f(a: open): pass", None, "function", "parameter 'a'"),
    ],
)
def test_parameters_that_do_not_fit_the_function(bench, source, parameters, key, words):
    """A mismatch between file and function is found before the first prompt."""
    with pytest.raises(AgentFileError) as caught:
        bench.function(source, parameters=parameters)
    assert caught.value.key == f"tools[0].{key}"
    assert words in caught.value.message


def test_failures_are_tool_errors_with_their_cause(bench):
    """An exception in a tool is an error of the tool, with its class as the type; ``sys.exit`` too."""
    box = bench.function("def f(how: str):\n    import sys\n    sys.exit(1) if how == 'exit' else int('x\\ud83e')")
    with pytest.raises(ToolError) as caught:
        bench.call(box, {"how": ""})
    assert caught.value.error_type == "ValueError"
    assert caught.value.message.startswith("ValueError: invalid literal")
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ToolError, match="SystemExit: 1"):
        bench.call(box, {"how": "exit"})


def test_blocking_functions_run_beside_the_loop(bench):
    """Synchronous functions run side by side, each in a thread, and the event loop goes on."""
    box = bench.function("import threading\nbarrier = threading.Barrier(8, timeout=10)\ndef f(): barrier.wait()\n")

    async def main() -> list[str]:
        return await asyncio.gather(*(box.call("f", None, bench.context) for _ in range(8)))

    assert asyncio.run(main()) == [""] * 8


@pytest.mark.parametrize("source", ["import time\ndef f(): time.sleep(3)", "import asyncio\nasync def f(): await asyncio.sleep(30)"])
def test_timeouts(bench, source):
    """A tool that takes longer than its timeout is given up at once."""
    box = bench.function(source, timeout=0.05)
    started = time.monotonic()
    with pytest.raises(ToolTimeout, match=r"f did not answer within 0\.05 s"):
        bench.call(box)
    assert time.monotonic() - started < 2


def test_generators_are_lists(bench):
    """What a generator yields, synchronous or not, is the result."""
    assert bench.call(bench.function("def f():\n    yield 1\n    yield 2")) == "[1,2]"
    assert bench.call(bench.function("async def f():\n    yield 1\n    yield 2")) == "[1,2]"


def test_results_are_rendered_in_the_thread(bench):
    """A result that is costly to write as text does not hold up the event loop."""
    box = bench.function("import threading\nclass R:\n    def __str__(self): return threading.current_thread().name\ndef f(): return R()")
    assert bench.call(box) == '"holodeck-tool"'
    assert threading.current_thread().name == "MainThread"


def test_a_validator_that_crashes_is_a_failed_call(bench):
    """A validator of the user's own that raises something unexpected fails the call, not the chat."""
    source = """
        from typing import Annotated
        from pydantic import AfterValidator
        def f(n: Annotated[int, AfterValidator(lambda n: 1 // n)]): return n
    """
    box = bench.function(source)
    assert bench.call(box, {"n": 1}) == "1"
    with pytest.raises(ToolError, match="ZeroDivisionError"):
        bench.call(box, {"n": 0})


def test_a_coroutine_that_returns_one(bench):
    """What is to be awaited is awaited, however often."""
    source = "async def inner(): return 1\nasync def f(): return inner()"
    assert bench.call(bench.function(source)) == "1"


def test_an_asynchronous_generator_without_end(bench):
    """It is stopped, and the call has failed."""
    source = "async def f():\n    while True:\n        yield 1"
    with pytest.raises(ToolError, match="more than 100,000 items"):
        bench.call(bench.function(source))


def test_arguments_as_models_send_them(bench):
    """Null stands for the default, a list may come as text, true is no number; refusals name the key and what it takes."""
    box = bench.function("def f(n: int = 7, items: list[int] = (), note: str = None): return [n, list(items), note]")
    assert bench.call(box, '{"n": null, "items": "[1]", "note": null}') == "[7,[1],null]"
    for arguments, words in (({"n": True}, "n: must be a number, not a boolean"), ({"note": 5}, "note: Input should be a valid string")):
        with pytest.raises(ToolRefused, match=words):
            bench.call(box, arguments)
