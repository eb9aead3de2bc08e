"""A canary in every place where a string can enter, and a look at every byte that leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from support.command import run
from support.model_server import Call, Fault, ModelServer, Reply, Usage
from support.otlp_receiver import OtlpReceiver

CANARY = "kanarienvogel"
SECRET = "sk-kanarienvogel-0123456789abcdef"
TOOLS = f'''
import asyncio
import gc
import logging
import warnings

def result(text: str) -> str:
    """Answers."""
    for name in ("openai", "httpx", "semantic_kernel", "mcp", "opentelemetry", "holodeck.tools", "other"):
        logging.getLogger(name).error(f"a library says {{text}}")
    warnings.warn(f"a warning about {{text}}")
    print("printed", text)
    return "{CANARY} " + text

def fails(text: str) -> str:
    """Fails."""
    logging.getLogger("holodeck.tools").error("failed with %s", text)
    error = ValueError("{CANARY} " + text)
    error.add_note("{CANARY}")
    raise error from KeyError("{CANARY}")

def together(text: str) -> str:
    """Fails in two ways."""
    raise ExceptionGroup("{CANARY}", [OSError(2, "{CANARY}", text), asyncio.CancelledError("{CANARY}", text)][:1])

async def given_up(text: str) -> str:
    """Cancels itself, and leaves a task behind that nobody waits for."""
    async def lost():
        raise ValueError(text)
    task = asyncio.get_running_loop().create_task(lost(), name=text)
    await asyncio.sleep(0)
    del task
    gc.collect()
    raise asyncio.CancelledError(text)

def leaves(text: str) -> str:
    """Wants to end the program."""
    raise SystemExit(text)

def nested(data: dict) -> dict:
    """Answers with data."""
    return {{"password": "{CANARY}", "list": [data]}}
'''


def agent(directory: Path, server: ModelServer) -> Path:
    """An agent whose instructions hold the canary, too."""
    (directory / "tools.py").write_text(TOOLS, encoding="utf-8")
    tools = [
        {"name": n, "type": "function", "file": "tools.py", "function": n}
        for n in ("result", "fails", "nested", "together", "given_up", "leaves")
    ]
    tools.append({"name": "ask", "type": "prompt", "template": f"{CANARY}: {{{{text}}}}", "description": "Asks"})
    data = {
        "name": "support",
        "model": {"provider": "openai", "name": "m", "endpoint": server.url, "api_key": SECRET, "timeout": 2},
        "instructions": {"inline": f"You know {CANARY}."},
        "tools": tools,
    }
    path = directory / "agent.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def answers(server: ModelServer) -> list[str]:
    """Replies of every kind, with the canary wherever a provider can put a string; the messages that fetch them."""
    calls = [
        Call("result", {"text": CANARY}, id="a"),
        Call("fails", {"text": CANARY}, id="b"),
        Call("nested", {"data": {CANARY: CANARY}}, id="c"),
        Call("ask", {"text": CANARY}, id="d"),
        Call("result", raw=f'{{"text": "{CANARY}', id="e"),
        Call("result", {CANARY: CANARY}, id="f"),
        Call(CANARY, {CANARY: CANARY}, id="g"),
        *(Call(name, {"text": CANARY}, id=name) for name in ("together", "given_up", "leaves")),
    ]
    body = {"error": {"message": f"bad {CANARY}", "type": CANARY, "code": CANARY}}
    server.reply(
        Reply(text=CANARY, tool_calls=calls, usage=Usage(5, 5)),
        Reply(text=f"asked {CANARY}"),
        Reply(text=f"the answer is {CANARY}"),
        Fault(status=400, body=body),
        Fault(status=500, body=body),
        Fault.error_event(after=1, reply=Reply(text=CANARY)),
        Fault.truncate_after(1, reply=Reply(text=f"{CANARY} cut")),
        Fault.garbage_chunk(after=1, reply=Reply(text=CANARY)),
    )
    return [f"tell me about {CANARY}", *[f"again {CANARY}"] * 5]


NOISY = {
    **dict.fromkeys(("OTEL_LOG_LEVEL", "OTEL_PYTHON_LOG_LEVEL", "OPENAI_LOG", "HTTPX_LOG_LEVEL", "GRPC_VERBOSITY"), "debug"),
    "PYTHONASYNCIODEBUG": "1",
    "PYTHONWARNINGS": "default",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true",
    "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
    "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED": "true",
    "TRACELOOP_TRACE_CONTENT": "true",
}
"""Variables that make libraries, or programs like this one, say more than they should."""


def _agent_with(directory: Path, server: ModelServer, tool: str, name: str = "support") -> Path:
    """An agent whose one tool is a function of ``tools.py`` beside it."""
    data = {
        "name": name,
        "model": {"provider": "openai", "name": "m", "endpoint": server.url},
        "tools": [{"name": tool, "type": "function", "file": "tools.py", "function": tool}],
    }
    path = directory / "agent.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return path


@pytest.mark.parametrize(("protocol", "noise"), [("http/protobuf", {}), ("grpc", NOISY)], ids=["http", "grpc, and everybody talks"])
def test_with_the_gate_shut_no_content_leaves_on_any_signal(protocol: str, noise: dict[str, str], tmp_path: Path) -> None:
    """Prompt, instructions, reply, tool arguments, tool results and exception texts are in no byte of OTLP or of the trace file."""
    with OtlpReceiver() as receiver, ModelServer() as server:
        out = tmp_path / "t.jsonl"
        messages = [part for text in answers(server) for part in ("-m", text)]
        endpoint = receiver.grpc_url if protocol == "grpc" else receiver.http_url
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol, **noise}
        done = run(["chat", agent(tmp_path, server), "--observability", "--trace-file", out, "-v", *messages], env=env)
        assert done.code == 1
        assert not server.unused
        assert len({s.trace_id for s in receiver.spans}) == 6
        assert {a.signal for a in receiver.raw} == {"traces", "metrics", "logs"}
        leaving = b"".join(a.body for a in receiver.raw) + out.read_bytes()
        assert CANARY.encode() not in leaving
        assert not [
            line for line in done.err.splitlines() if line.startswith(("openai", "httpx", "semantic_kernel", "mcp", "asyncio", "D0", "I0"))
        ]
        assert SECRET.encode() not in leaving + done.err.encode() + done.out.encode()


def test_with_the_gate_open_secrets_are_redacted_on_every_signal(tmp_path: Path) -> None:
    """With capture on, content is there and what looks like a secret is not, in names, values, nested data and exception texts."""
    secrets = ["ghp_kanarienvogel0123456789abcdefghij", "kanarien@vogel.example", "4111 1111 1111 1111"]
    with OtlpReceiver() as receiver, ModelServer() as server:
        text = " and ".join(secrets)
        calls = [Call("fails", {"text": text}, id="a"), Call("nested", {"data": {"password": "hunter2hunter2", "deep": [text]}}, id="b")]
        server.reply(
            Reply(text=text, tool_calls=calls), Reply(text=f"visible {text}"), Fault(status=500, body={"error": {"message": text}})
        )
        out = tmp_path / "t.jsonl"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        arguments = [
            "chat",
            agent(tmp_path, server),
            "--observability",
            "--capture-content",
            "--trace-file",
            out,
            "-m",
            text,
            "-m",
            "again",
        ]
        run(arguments, env=env)
        leaving = (b"".join(a.body for a in receiver.raw) + out.read_bytes()).decode("utf-8", "replace")
        assert "visible" in leaving
        assert not [secret for secret in [*secrets, "hunter2hunter2", SECRET] if secret in leaving]


LABELS = {
    "gen_ai.agent.name": "label0",
    "gen_ai.agent.description": "label1",
    "gen_ai.tool.description": "label2",
    "gen_ai.response.id": "label3",
    "gen_ai.response.model": "label4",
    "gen_ai.tool.call.id": "label5",
    "error.type": "Label6",
}
"""The attributes that are no content, with a word for each."""
LABELLED_TOOL = '''
class Label6(Exception):
    pass

def fails() -> str:
    """label2"""
    raise Label6("x")
'''


def test_what_leaves_while_the_gate_is_shut_is_what_the_documentation_says(tmp_path: Path) -> None:
    """Names, descriptions, ids and classes: each of them in its attribute, and nowhere else."""
    (tmp_path / "tools.py").write_text(LABELLED_TOOL, encoding="utf-8")
    with OtlpReceiver() as receiver, ModelServer() as server:
        data = {
            "name": "label0",
            "description": "label1",
            "model": {"provider": "openai", "name": "m", "endpoint": server.url},
            "tools": [{"name": "fails", "type": "function", "file": "tools.py", "function": "fails"}],
        }
        (tmp_path / "agent.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        told = {"id": "label3", "model": "label4"}
        server.reply(Reply(tool_calls=[Call("fails", {}, id="label5")], **told), Reply(text="done", **told))
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        assert run(["chat", tmp_path / "agent.yaml", "--observability", "-m", "hi"], env=env).code == 0
        for attribute, word in LABELS.items():
            assert {key for span in receiver.spans for key, value in span.attributes.items() if word in str(value)} == {attribute}


def test_values_of_a_tools_own_spans_cost_neither_the_chat_nor_their_neighbours(tmp_path: Path) -> None:
    """A tool may record what it likes: lone surrogates, bytes and numbers without end are shown, written and sent with the rest."""
    (tmp_path / "tools.py").write_text(
        "def own() -> str:\n"
        "    from opentelemetry import trace\n"
        "    with trace.get_tracer('mine').start_as_current_span('odd\\ud83e') as span:\n"
        "        span.set_attributes({'k\\ud83e': 'v\\ud83e', 'large': 2**70, 'nan': float('nan'), 'raw': b'\\xff', 'a': 'a\\u2028b'})\n"
        "        span.add_event('e\\ud83e', {'x': ['\\ud83e']})\n"
        "        span.record_exception(ValueError('\\ud83e'))\n"
        "    return 'ok'\n",
        encoding="utf-8",
    )
    with OtlpReceiver() as receiver, ModelServer() as server:
        server.reply(Reply(tool_calls=[Call("own", {}, id="a")]), Reply(text="done"))
        agent = _agent_with(tmp_path, server, "own")
        out = tmp_path / "t.jsonl"
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url}
        done = run(["chat", agent, "--observability", "--trace-file", out, "-v", "-m", "go"], env=env)
        assert (done.code, done.out.strip()) == (0, "done")
        assert "odd\ufffd" in done.err
        tree = ("invoke_agent support", [("chat m", []), ("execute_tool own", [("odd\ufffd", [])]), ("chat m", [])])
        assert receiver.tree() == tree
        spans = [
            s
            for line in out.read_text(encoding="utf-8").splitlines()
            for s in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ]
        assert [span["name"] for span in spans] == ["chat m", "odd\ufffd", "execute_tool own", "chat m", "invoke_agent support"]


def test_nothing_is_injected_into_requests_to_the_provider(tmp_path: Path) -> None:
    """No trace header and no baggage goes to the model provider, whatever the environment says about propagation."""
    with OtlpReceiver() as receiver, ModelServer() as server:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "OTEL_PROPAGATORS": "tracecontext,baggage,b3"}
        assert run(["chat", agent(tmp_path, server), "--observability", "-m", "hi"], env=env).code == 0
        for request in server.requests:
            assert not {"traceparent", "tracestate", "baggage", "b3", "x-b3-traceid", "uber-trace-id"} & request.headers.keys()


def test_a_dot_env_file_changes_neither_telemetry_nor_capture(tmp_path: Path) -> None:
    """A .env in the working directory is not read by us, by Semantic Kernel or by the clients."""
    with OtlpReceiver() as receiver, ModelServer() as server:
        for name in (".env", ".env.local", ".envrc"):
            (tmp_path / name).write_text(
                "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS=true\n"
                "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true\n"
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true\n"
                f"OTEL_TRACES_EXPORTER=otlp\nOTEL_EXPORTER_OTLP_ENDPOINT={receiver.http_url}\n",
                encoding="utf-8",
            )
        out = tmp_path / "t.jsonl"
        assert run(["chat", agent(tmp_path, server), "--trace-file", out, "-m", CANARY], cwd=tmp_path).code == 0
        assert receiver.raw == []
        assert CANARY not in out.read_text(encoding="utf-8")


def test_semantic_kernels_own_diagnostics_stay_off(tmp_path: Path) -> None:
    """Each model call has exactly one chat span, also when the environment asks Semantic Kernel for spans and content of its own."""
    with OtlpReceiver() as receiver, ModelServer() as server:
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url,
            "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS": "true",
            "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE": "true",
        }
        assert run(["chat", agent(tmp_path, server), "--observability", "-m", CANARY], env=env).code == 0
        assert receiver.tree() == ("invoke_agent support", [("chat m", [])])
        assert CANARY.encode() not in b"".join(a.body for a in receiver.raw)


RECORDER = """
import os, socket

def _note(address):
    with open(os.environ["CONNECTIONS"], "a") as out:
        out.write(repr(address) + "\\n")

def _wrap(name):
    real = getattr(socket.socket, name)
    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _note(address[:2])
        return real(self, address)
    setattr(socket.socket, name, connect)

_wrap("connect")
_wrap("connect_ex")
_real = socket.getaddrinfo
def getaddrinfo(host, port, *args, **kwargs):
    _note((host, port))
    return _real(host, port, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
"""


@pytest.mark.parametrize("observability", [True, False])
def test_no_connection_is_opened_that_the_user_did_not_configure(tmp_path: Path, *, observability: bool) -> None:
    """From start to exit the process looks up and connects to the model endpoint and, with the flag, the collector; to nothing else."""
    (tmp_path / "sitecustomize.py").write_text(RECORDER, encoding="utf-8")
    seen = tmp_path / "connections"
    with OtlpReceiver() as receiver, ModelServer() as server, ModelServer() as proxy:
        ports = {int(url.rsplit(":", 1)[1].split("/")[0]) for url in (server.url, *([receiver.http_url] if observability else []))}
        env = {
            "PYTHONPATH": str(tmp_path),
            "CONNECTIONS": str(seen),
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url,
            # Whatever went elsewhere by HTTP would come to this proxy; loopback is not proxied.
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy.base_url),
            "NO_PROXY": "127.0.0.1",
        }
        flag = "--observability" if observability else "--no-observability"
        assert run(["chat", agent(tmp_path, server), flag, "-m", "hi"], env=env).code == 0
        assert proxy.requests == []
        assert proxy.connections == 0
    addresses = {eval(line) for line in seen.read_text(encoding="utf-8").splitlines()}
    assert {host for host, _ in addresses} == {"127.0.0.1"}
    assert {int(port) for _, port in addresses} == ports


def test_a_huge_result_is_cut_and_takes_no_neighbour_along(tmp_path: Path) -> None:
    """Five million characters from a tool, with capture on and over gRPC: cut with a marker, and every span arrives."""
    (tmp_path / "tools.py").write_text('def big() -> str:\n    return "x" * 5_000_000\n', encoding="utf-8")
    with OtlpReceiver() as receiver, ModelServer() as server:
        server.reply(Reply(tool_calls=[Call("big", {}, id="a")]), Reply(text="that was big"))
        agent = _agent_with(tmp_path, server, "big")
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.grpc_url, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
        assert run(["chat", agent, "--observability", "--capture-content", "-m", "go"], env=env).code == 0
        assert receiver.tree() == ("invoke_agent support", [("chat m", []), ("execute_tool big", []), ("chat m", [])])
        (result,) = [s.attributes["gen_ai.tool.call.result"] for s in receiver.spans if s.name == "execute_tool big"]
        assert len(result) <= 65_536
        assert "cut: " in result


def test_a_lone_surrogate_from_anywhere_does_not_cost_the_batch(tmp_path: Path) -> None:
    """In an exception, in model JSON and as bytes on the command line: the other spans arrive, the value becomes U+FFFD."""
    (tmp_path / "tools.py").write_text('def odd() -> str:\n    raise ValueError("\\ud83e")\n', encoding="utf-8")
    with OtlpReceiver() as receiver, ModelServer() as server:
        calls = [Call("odd", {}, id="c\ud83e"), Call("e\ud83e", {})]
        server.reply(Reply(text="a\ud83eb", tool_calls=calls), Reply(text="c\ud83ed", id="r\ud83e"))
        agent = _agent_with(tmp_path, server, "odd", name="weather bot/é")
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.http_url, "OTEL_SERVICE_NAME": "odd\udcff"}
        done = run(["chat", agent, "--observability", "--capture-content", "-m", "go", "-m", "\udcfe"], env=env)
        assert done.out == "a\ufffdb\n\nc\ufffdd\n"
        assert done.code == 1  # the second message is refused
        tools = [("execute_tool odd", []), ("execute_tool _OTHER", [])]
        assert receiver.tree() == ("invoke_agent weather bot/é", [("chat m", []), *tools, ("chat m", [])])
        root = next(span for span in receiver.spans if span.name.startswith("invoke_agent"))
        assert "error.type" not in root.attributes
        assert "Traceback" not in done.err
