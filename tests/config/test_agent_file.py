from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holodeck.config import load_agent_config
from holodeck.errors import AgentFileError, SettingError
from holodeck.models.agent import FunctionTool, McpTool, PromptTool
from holodeck.models.llm import Provider

Write = Callable[..., Path]


def refused(path: Path, environ: dict[str, str] | None = None, **options: str) -> AgentFileError:
    """The one-line error about the file at ``path``."""
    with pytest.raises(AgentFileError) as caught:
        load_agent_config(path, environ or {}, **options)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return caught.value


FULL = """\
name: support
description: Answers questions
model:
  provider: openai
  name: gpt-4o-mini
  temperature: 0.3
  max_tokens: "${MAX:-1000}"
  top_p: 1.0
  endpoint: http://127.0.0.1:9/v1
  api_key: "${KEY}"
  timeout: 30
instructions: {file: prompts/system.md}
max_rounds: 4
tools:
  - {name: lookup, description: Finds, type: function, file: tools.py, function: lookup, parameters: {id: {type: string, default: null}}}
  - {name: files, type: mcp, transport: stdio, command: npx, args: [-y, "8080"], env: {PORT: "80"}, timeout: 5}
  - {name: web, type: mcp, transport: http, url: "http://127.0.0.1:9/mcp", headers: {Authorization: "Bearer ${KEY}"}}
  - {name: summarise, type: prompt, file: prompts/system.md, model: {provider: scripted, script: s.yaml}}
observability:
  enabled: "${ON:-true}"
  service_name: shop
"""


def test_every_part_of_a_full_file_arrives(write: Write, tmp_path: Path) -> None:
    """Each section ends up in the model, references replaced, paths absolute, instructions read."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system.md").write_text("\n Be kind. \n", encoding="utf-8")
    loaded = load_agent_config(write(FULL, head=""), {"KEY": "sk-secret\n"})
    config, model = loaded.config, loaded.config.model
    assert (config.name, config.description, config.max_rounds) == ("support", "Answers questions", 4)
    assert (model.provider, model.name, model.temperature, model.max_tokens, model.timeout) == (
        Provider.OPENAI,
        "gpt-4o-mini",
        0.3,
        1000,
        30,
    )
    assert model.api_key is not None
    assert model.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(model)
    function, files, web, prompt = config.tools
    assert isinstance(function, FunctionTool)
    assert function.file == tmp_path / "tools.py"
    assert function.parameters == {"id": {"type": "string", "default": None}}
    assert isinstance(files, McpTool)
    assert (files.args, files.env, files.timeout) == (["-y", "8080"], {"PORT": "80"}, 5)
    assert isinstance(web, McpTool)
    assert web.headers == {"Authorization": "Bearer sk-secret\n"}
    assert isinstance(prompt, PromptTool)
    assert prompt.model is not None
    assert (prompt.file, prompt.model.script) == (tmp_path / "prompts/system.md", tmp_path / "s.yaml")
    assert config.observability.enabled is True
    assert (loaded.instructions, loaded.directory, loaded.warnings) == ("Be kind.", tmp_path, ())


def test_an_agent_needs_only_a_name_and_a_model(write: Write) -> None:
    """The minimal file loads; there are no instructions, no tools, no warnings."""
    loaded = load_agent_config(str(write("")), {})
    assert (loaded.instructions, loaded.config.tools, loaded.warnings) == (None, [], ())


def test_a_relative_path_keeps_its_form_and_gets_an_absolute_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user typed stays what is shown; the directory does not depend on the current one later."""
    write("")
    monkeypatch.chdir(tmp_path)
    loaded = load_agent_config("agent.yaml", {})
    assert (loaded.path, loaded.directory) == (Path("agent.yaml"), tmp_path)


@pytest.mark.parametrize(
    "section", ["description:", "tools:", "instructions:", "observability:", "observability: {exporters: {otlp: , console: null}}"]
)
def test_a_key_with_nothing_behind_it_is_not_said(section: str, write: Write) -> None:
    """An empty key is as good as none, as in files that other programs wrote."""
    assert load_agent_config(write(section + "\n"), {}).config == load_agent_config(write(""), {}).config


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("desciption: x", 3, "desciption", "unknown key; did you mean 'description'?"),
        ("zzz: x", 3, "zzz", "unknown key; known here: description, instructions"),
        ("tools: {}", 3, "tools", "must be a list"),
        ("instructions: be kind", 3, "instructions", "must be a mapping"),
        ("instructions: {inline: a, file: b}", 3, "instructions", "exactly one of 'inline' and 'file'"),
        ("instructions: {inline: ' '}", 3, "instructions.inline", "is empty"),
        ("description: 1.10", 3, "description", 'quote it: "1.10"'),
        ("description: true", 3, "description", 'YAML reads it as true or false: quote it: "true"'),
        ("description: [a]", 3, "description", "must be text"),
        ("max_rounds: many", 3, "max_rounds", "must be a whole number"),
        ("max_rounds: 1.5", 3, "max_rounds", "must be a whole number"),
        ("max_rounds: true", 3, "max_rounds", "must be a number, not true or false"),
        ("max_rounds: 0", 3, "max_rounds", "must be greater than 0"),
        ("max_rounds: .inf", 3, "max_rounds", ".inf is not a finite number"),
        ("max_rounds: 12:30", 3, "max_rounds", "must be a whole number"),
        ("observability: {traces: {sample_rate: 2}}", 3, "observability.traces.sample_rate", "less than or equal to 1"),
        ("observability: {traces: {enabled: maybe}}", 3, "observability.traces.enabled", "must be true or false"),
        ("observability:\n  logs:\n    level: LOUD", 5, "observability.logs.level", "'LOUD' is unknown: use DEBUG, INFO"),
        ("tools:\n  - name: a", 4, "tools[0]", "the key 'type' is missing: use function, mcp or prompt"),
        ("tools:\n  - {name: a, type: funktion}", 4, "tools[0]", "type 'funktion' is unknown: use function, mcp or prompt"),
        ("tools:\n  - name: a\n    type: function\n    fuction: f", 6, "tools[0].fuction", "did you mean 'function'?"),
        ("tools:\n  - {name: a, type: mcp}", 4, "tools[0]", "needs 'command'"),
        ("tools:\n  - {name: a b, type: mcp, command: x}", 4, "tools[0].name", "cannot be a tool name"),
        ("tools:\n  - name: a\n    type: mcp\n    command: x\n    args: [-p, 80]", 7, "tools[0].args[1]", 'quote it: "80"'),
        ("tools:\n  - name: a\n    type: mcp\n    command: x\n    env: {PORT: 1.10}", 7, "tools[0].env.PORT", 'quote it: "1.10"'),
        ("tools:\n - {name: a, type: prompt, file: t, model: {provider: openai, nam: x}}", 4, "tools[0].model.nam", "did you mean 'name'?"),
        ("tools:\n  - {name: v, type: vectorstore}\n  - {name: a, type: mcp}", 5, "tools[1]", "needs 'command'"),
        ("tools:\n  - {name: a, type: mcp, command: x}\n  - {name: a, type: mcp, command: x}", 3, "tools", "two tools are named 'a'"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line_with_line_key_and_fix(text: str, line: int, key: str, words: str, write: Write) -> None:
    """What a person gets wrong is answered with the place and with what to write."""
    error = refused(write(text + "\n"))
    assert (error.line, error.key) == (line, key)
    assert words in str(error)


def test_further_mistakes_are_counted(write: Write) -> None:
    """Only the first mistake is told; the others are a number."""
    assert "(and 2 more)" in str(refused(write("zzz: 1\nyyy: 2\nmax_rounds: x\n")))


def test_a_missing_key_is_said_where_it_is_missing(write: Write) -> None:
    """A required key that is missing is named."""
    error = refused(write("model: {provider: scripted, script: s.yaml}\n", head=""))
    assert (error.key, "the key 'name' is missing" in str(error)) == ("name", True)


@pytest.mark.parametrize(
    ("word", "hint"), [("opanai", "did you mean 'openai'?"), ("", "use openai, azure_openai, anthropic, ollama, local or scripted")]
)
def test_an_unknown_provider_lists_the_known_ones(word: str, hint: str, write: Write) -> None:
    """A provider that does not exist is answered with those that do."""
    assert hint in str(refused(write(f"name: a\nmodel: {{provider: '{word}', name: x}}\n", head="")))


@pytest.mark.parametrize("name", ["no", "on", "'1.10'", "12:30", "0123", "2024-01-31"])
def test_names_that_look_like_something_else_are_names(name: str, write: Write) -> None:
    """YAML 1.1 surprises do not change a name."""
    assert load_agent_config(
        write(f"name: {name}\nmodel: {{provider: scripted, script: s.yaml}}\n", head=""), {}
    ).config.name == name.strip("'")


@pytest.mark.parametrize(
    "text",
    [
        "model: {provider: openai, name: x, api_key: 4242424242}",
        "tools:\n  - {name: a, type: mcp, transport: http, url: 'http://x', headers: {K: 4242424242}}",
    ],
)
def test_a_secret_of_the_wrong_type_is_not_shown(text: str, write: Write) -> None:
    """Type errors at keys and headers leave the value out."""
    head = "name: a\n" if text.startswith("model") else None
    error = refused(write(text + "\n", head=head) if head else write(text + "\n"))
    assert "quote it" in str(error)
    assert "4242" not in str(error)


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("instructions: {file: no.md}", "instructions.file", "no.md: there is no such file"),
        ("instructions: {file: .}", "instructions.file", "this is a directory"),
        ("instructions: {file: empty.md}", "instructions.file", "empty.md: the file is empty"),
        ("instructions: {file: latin.md}", "instructions.file", "latin.md: line 1 is not UTF-8 text"),
        ("tools:\n  - {name: a, type: function, file: no.py, function: f}", "tools[0].file", "no.py: there is no such file"),
        ("tools:\n  - {name: a, type: prompt, file: empty.md}", "tools[0].file", "empty.md: the file is empty"),
        ("tools: [{name: a, type: prompt, template: t, model: {provider: scripted, script: n.y}}]", "tools[0].model.script", "no such"),
    ],
)  # fmt: skip
def test_files_that_are_named_are_looked_at(text: str, key: str, words: str, write: Write, tmp_path: Path) -> None:
    """Missing, empty and unreadable files are found at load, with the key that names them."""
    (tmp_path / "empty.md").write_text(" \n", encoding="utf-8")
    (tmp_path / "latin.md").write_bytes("é".encode("latin-1"))
    error = refused(write(text + "\n"))
    assert error.key == key
    assert words in str(error)


def test_the_script_of_a_model_has_to_exist(write: Write, tmp_path: Path) -> None:
    """A scripted model without its script stops at load."""
    path = write("")
    (tmp_path / "s.yaml").unlink()
    assert refused(path).key == "model.script"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("traces: {redaction_patterns: [ok, '(?=a)']}", "observability.traces.redaction_patterns[1]"),
        ("traces: {redaction_patterns: ['(']}", "observability.traces.redaction_patterns[0]"),
        ("traces: {redaction_patterns: ['x*']}", "observability.traces.redaction_patterns[0]"),
        ("traces: {max_queue_size: 10, max_export_batch_size: 11}", "observability.traces.max_export_batch_size"),
        ("exporters: {otlp: {endpoint: 'localhost:4317'}}", "observability.exporters.otlp.endpoint"),
        ("exporters: {otlp: {protocol: http/json}}", "observability.exporters.otlp.protocol"),
        ("exporters: {otlp: {endpoint: 'http://h:4318', insecure: false}}", "observability.exporters.otlp.insecure"),
        ("exporters: {otlp: {headers: {'a b': c}}}", "observability.exporters.otlp.headers"),
        ("exporters: {otlp: {protocol: grpc, compression: deflate}}", "observability.exporters.otlp.compression"),
    ],
)  # fmt: skip
def test_observability_has_to_make_sense_also_while_it_is_off(text: str, key: str, write: Write) -> None:
    """Faults of the section are found at load, with line and key, whether or not anything is sent."""
    error = refused(write(f"observability:\n  enabled: false\n  {text}\n"))
    assert (error.line, error.key) == (5, key)


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    """A missing file and a directory are named, with no line."""
    for path, words in ((tmp_path / "no.yaml", "there is no such file"), (tmp_path, "this is a directory")):
        error = refused(path)
        assert words in str(error)
        assert error.line is None


def test_a_huge_file_is_refused_fast(tmp_path: Path) -> None:
    """Fifty megabytes are not read to the end."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: x\n" * 10_000_000)
    started = time.process_time()
    assert "larger than" in str(refused(path))
    assert time.process_time() - started < 0.5


def test_escape_sequences_of_a_file_stay_out_of_messages(write: Write) -> None:
    """A key that would clear the screen or set the clipboard is named without its controls."""
    error = refused(write('"\\e]52;c;aGk=\\a\\e[2Jdescriptio": x\n'))
    assert error.key == "descriptio"
    assert "\x1b" not in str(error)


def test_a_setting_error_of_the_environment_is_not_blamed_on_the_file(write: Write) -> None:
    """A bad variable is named itself."""
    with pytest.raises(SettingError, match=r"^OPENAI_BASE_URL: needs a scheme"):
        load_agent_config(write("name: a\nmodel: {provider: openai, name: x}\n", head=""), {"OPENAI_BASE_URL": "localhost:1"})


def test_importing_and_loading_stays_light(write: Write) -> None:
    """Loading an agent file imports no Semantic Kernel, OpenTelemetry, click, and RE2 only for patterns."""
    code = (
        "import sys; from holodeck.config import load_agent_config; load_agent_config(sys.argv[1], {});"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'semantic_kernel', 'opentelemetry', 'click', 're2', 'openai', 'mcp'}))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(write(""))], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ('"desc\\u202eription": x\n', "description", "there are characters in it that are not shown"),
        ('"tools\\e[2J": []\n', "tools", "there are characters in it that are not shown"),
        ("max_rounds: 1e30\n", "max_rounds", "must be a whole number of at most 64 bits"),
    ],
)
def test_messages_in_our_words(write: Write, text: str, key: str, words: str) -> None:
    """A key that only looks right is told apart from the right one, and no message is a library's."""
    error = refused(write(text))
    assert (error.key, words in error.message) == (key, True)


def test_a_name_has_a_limit(write: Write) -> None:
    """It stands in the names of spans."""
    path = write("", head=f"name: {'x' * 201}\nmodel: {{provider: scripted, script: s.yaml}}\n")
    assert "must be text of at most 200 characters" in refused(path).message
