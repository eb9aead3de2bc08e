"""Templates that ask a model."""

from __future__ import annotations

import asyncio

import pytest

from holodeck.errors import AgentFileError, BackendError, ToolError, ToolRefused, ToolTimeout
from holodeck.tools import CallContext


def prompt(**entry):
    """A prompt tool as an agent file has it."""
    return {"type": "prompt", "name": "f"} | entry


def test_the_rendered_template_is_asked_and_the_answer_returned(bench):
    """Placeholders are filled, the agent's own model is asked, and its answer is the result."""
    box = bench.box(prompt(template="Sum up {{ text }} in {{n}} words, {{text}}.", description="Sums up."))
    assert bench.call(box, {"text": "this", "n": "3"}) == "SUM UP THIS IN 3 WORDS, THIS."
    assert bench.asked == [("Sum up this in 3 words, this.", None)]
    spec = box.spec("f")
    assert (spec.description, spec.type, spec.parameters["required"]) == ("Sums up.", "function", ["text", "n"])


def test_values_are_inserted_once(bench):
    """A value that looks like a placeholder or like a group reference stays as it is."""
    box = bench.box(prompt(template="{{a}} {{b}}"))
    bench.call(box, {"a": r"{{b}} \1 \g<0>", "b": "{{a}}"})
    assert bench.asked[0][0] == r"{{b}} \1 \g<0> {{a}}"


def test_other_values_are_json_and_absent_ones_nothing(bench):
    """Lists and numbers are inserted as JSON, an optional argument that is not given leaves nothing behind."""
    box = bench.box(
        prompt(template="[{{a}}|{{b}}|{{c}}]", parameters={"a": {"type": "array"}, "b": {"required": False}, "c": {"default": 3}})
    )
    bench.call(box, {"a": [1, "x"]})
    assert bench.asked[0][0] == '[[1,"x"]||3]'


def test_a_model_of_its_own(bench):
    """The tool's model is handed on."""
    model = {"provider": "openai", "name": "tiny"}
    box = bench.box(prompt(template="x", model=model))
    assert bench.call(box) == "X"
    assert bench.asked[0][1].name == "tiny"


def test_a_template_in_a_file(bench):
    """A template may lie beside the agent."""
    bench.write("t.md", "Grüße {{name}}")
    bench.call(bench.box(prompt(file="t.md")), {"name": "Ada"})
    assert bench.asked[0][0] == "Grüße Ada"


@pytest.mark.parametrize(
    ("entry", "key", "words"),
    [
        ({"file": "none.md"}, "file", "cannot read none.md: No such file"),
        ({"file": "latin.md"}, "file", "not UTF-8"),
        ({"template": " \n"}, "template", "is empty"),
        ({"template": "{{#each x}}"}, "template", "{{#each x}} is not a placeholder"),
        ({"template": "{{}}"}, "template", "{{}} is not a placeholder"),
        ({"template": "{{a}}", "parameters": {"b": {}}}, "parameters", "{{a}} is not among them: b"),
        ({"template": "{{a}}", "parameters": {"a": {}, "b": {}}}, "parameters.b", "no {{b}}"),
        ({"template": "{{a}}", "parameters": {"a": {"type": "int"}}}, "parameters.a.type", "write 'integer'"),
    ],
)
def test_templates_that_cannot_work(bench, entry, key, words):
    """A template is read and compared with its parameters before the first prompt."""
    (bench.directory / "latin.md").write_bytes("ü".encode("latin-1"))
    with pytest.raises(AgentFileError) as caught:
        bench.box(prompt(**entry))
    assert caught.value.key == f"tools[0].{key}"
    assert words in caught.value.message


def test_wrong_arguments_are_refused(bench):
    """The model is not asked with arguments that do not fit."""
    box = bench.box(prompt(template="{{a}}"))
    for arguments in ({}, {"a": 1}, {"a": "", "b": ""}):
        with pytest.raises(ToolRefused):
            bench.call(box, arguments)
    assert bench.asked == []


def test_a_failing_model_is_a_failing_tool(bench):
    """An error of the provider keeps its type, as an error of the tool."""

    async def ask(prompt, model):
        raise BackendError("too many requests", error_type="429", summary="s")

    box = bench.box(prompt(template="x"))
    with pytest.raises(ToolError, match="too many requests") as caught:
        asyncio.run(box.call("f", None, CallContext(ask)))
    assert caught.value.error_type == "429"


def test_the_timeout_counts(bench):
    """A model that does not answer in the tool's time is given up."""

    async def ask(prompt, model):
        await asyncio.sleep(30)

    box = bench.box(prompt(template="x", timeout=0.05))
    with pytest.raises(ToolTimeout):
        asyncio.run(box.call("f", None, CallContext(ask)))
