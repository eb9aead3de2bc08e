"""stdio MCP servers as tools: real child processes."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holodeck.errors import AgentFileError, ToolError, ToolRefused, ToolTimeout

SERVER = str(Path(__file__).with_name("mcp_example_server.py"))


def entry(*flags: str, **changes):
    """The example server as an agent file has it."""
    return {"type": "mcp", "name": "ex", "command": sys.executable, "args": [SERVER, "stdio", *flags], "timeout": 30} | changes


def raw(code: str, **changes):
    """A server that is a few lines of Python."""
    return entry(args=["-c", code], **changes)


def calls(bench, box, *wanted):
    """Opens a toolbox, makes calls one after the other, closes it; results or errors."""

    async def main():
        results = []
        async with box:
            for name, arguments in wanted:
                try:
                    results.append(await box.call(f"ex-{name}", arguments, bench.context))
                except ToolError as exc:
                    results.append(exc)
        return results

    return asyncio.run(main())


def open_error(box) -> AgentFileError:
    """The error that opening ends with."""

    async def main():
        with pytest.raises(AgentFileError) as caught:
            await box.open()
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
        return caught.value

    return asyncio.run(main())


def test_tools_of_a_server_are_offered_and_called(bench):
    """Each tool of the server is offered with its own schema and description, and gives its result as text."""
    progress = []
    box = bench.box(entry(), on_progress=progress.append)
    assert box.specs == []
    results = calls(
        bench,
        box,
        ("ok", '{"text": "ab", "times": 2}'),
        ("dotted_name_with_signs", None),
        ("picture", {}),
        ("numbers", ""),
        ("noise", {"bytes_": 400_000}),
    )
    assert results == ["abab", "dotted", "look:\n[image image/png, 5 bytes]", "1\n2", "written"]
    spec = box.spec("ex-ok")
    assert (spec.description, spec.type) == ("Repeats a text.", "extension")
    assert spec.parameters["properties"]["times"] == {"default": 1, "title": "Times", "type": "integer"}
    assert progress == ["starting MCP server ex", f"MCP server ex is ready, tools: {len(box.specs)}"]


def test_failed_and_refused_calls(bench):
    """``isError`` is a failed call; arguments that do not fit never reach the server."""
    failed, refused, unknown = calls(bench, bench.box(entry()), ("fail", {"reason": "no stock"}), ("ok", {"text": 1}), ("nope", {}))
    assert (type(failed), failed.error_type) == (ToolError, "tool_error")
    assert "no stock" in failed.message
    assert isinstance(refused, ToolRefused)
    assert refused.message == "The arguments do not fit ex-ok: text: must be a string, not an integer. Parameters: text, times."
    assert isinstance(unknown, ToolRefused)
    assert "There is no tool 'ex-nope'. Tools: ex-ok" in unknown.message


def test_the_environment_of_a_server(bench, monkeypatch):
    """A server gets PATH and the like, TRACEPARENT and what is configured; no OTEL_* and no secrets of ours."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "from-the-parent")
    box = bench.box(entry(env={"OTEL_SERVICE_NAME": "mine", "X": "y"}), traceparent=bench.traceparent)
    (shown,) = calls(bench, box, ("env", None))
    for line in (f'"TRACEPARENT": "{bench.traceparent}"', '"OTEL_SERVICE_NAME": "mine"', '"X": "y"', '"PATH":'):
        assert line in shown
    assert "from-the-parent" not in shown


def test_the_trace_of_a_call_is_in_its_meta_data(bench):
    """Each request carries the traceparent of its own span."""
    assert calls(bench, bench.box(entry()), ("meta", None)) == [bench.traceparent]


def test_servers_run_in_the_agents_directory(bench):
    """Relative paths in ``args`` and a relative command mean files beside the agent."""
    bench.write("server.sh", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n').chmod(0o755)
    bench.write("link.py", Path(SERVER).read_text())
    (place,) = calls(bench, bench.box(entry(command="./server.sh", args=["link.py", "stdio"])), ("place", None))
    assert place.split()[0] == str(bench.directory.resolve())


def test_a_server_that_dies_fails_its_calls_at_once_and_is_started_again(bench):
    """All calls in flight fail with the reason and the last words; the next call finds a new server."""

    async def main():
        async with bench.box(entry()) as box:
            slow = asyncio.create_task(box.call("ex-slow", {"seconds": 30, "mark": str(bench.directory / "mark")}, bench.context))
            die = asyncio.create_task(box.call("ex-die", {"words": "out of \x1b[31mmemory"}, bench.context))
            started = time.monotonic()
            errors = await asyncio.gather(slow, die, return_exceptions=True)
            assert time.monotonic() - started < 10
            return errors, await box.call("ex-ok", {"text": "back"}, bench.context)

    errors, answer = asyncio.run(main())
    assert [(error.message, error.error_type) for error in errors] == [
        ("MCP server 'ex' exited with code 3: out of memory", "mcp_server_died")
    ] * 2
    assert answer == "back"


def test_a_server_that_is_killed_between_calls_is_started_again(bench, is_running, eventually):
    """The user does not notice that a server crashed while nobody used it."""

    async def main():
        async with bench.box(entry()) as box:
            first = int((await box.call("ex-place", None, bench.context)).split()[1])
            os.kill(first, signal.SIGKILL)
            await asyncio.to_thread(eventually, lambda: not box._servers[0]._connection.alive)
            second = int((await box.call("ex-place", None, bench.context)).split()[1])
            return first, second

    first, second = asyncio.run(main())
    assert first != second


def test_a_cancelled_or_late_call_is_cancelled_at_the_server(bench, eventually):
    """The server hears of a call that nobody waits for any more."""
    mark = bench.directory / "mark"

    async def main():
        async with bench.box(entry()) as box:
            begun = bench.directory / "begun"
            call = asyncio.create_task(box.call("ex-slow", {"seconds": 30, "mark": str(mark), "begun": str(begun)}, bench.context))
            await box.call("ex-ok", {"text": ""}, bench.context)  # another request at the same time
            await asyncio.to_thread(eventually, begun.exists)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.to_thread(eventually, lambda: mark.exists() and mark.read_text())

    asyncio.run(main())
    assert mark.read_text() == "cancelled"


def test_a_call_has_a_timeout(bench):
    """A call that takes too long is given up, and the server is still of use."""

    async def main():
        async with bench.box(entry()) as box:
            box._servers[0].config.timeout = 0.2  # the start-up of the server above had more
            with pytest.raises(ToolTimeout, match=r"ex-slow did not answer within 0\.2 s"):
                await box.call("ex-slow", {"seconds": 30, "mark": str(bench.directory / "mark")}, bench.context)
            box._servers[0].config.timeout = 30
            return await box.call("ex-ok", {"text": "fine"}, bench.context)

    assert asyncio.run(main()) == "fine"


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (raw("import sys; print('Traceback', file=sys.stderr); sys.exit('no \\x1b[2Jlicence')"), "exited with code 1: no licence"),
        (raw("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), "was killed by SIGTERM"),
        (raw("print('hello, I am no server')"), "exited with code 0: it wrote 'hello, I am no server', which is not MCP"),
        (raw("import sys\nfor line in sys.stdin: print(line, end='', flush=True)"), "refused the handshake"),
        (raw("import sys\nsys.stdin.read()", timeout=0.3), "did not finish its handshake within 0.3 s"),
        (raw("import os, time; os.close(1); time.sleep(30)"), "closed its output"),
    ],
)
def test_servers_that_do_not_start(bench, server, words):
    """A server that does not get through its handshake is one line with the reason, and nothing is left of it."""
    error = open_error(bench.box({"type": "mcp", **server}))
    assert error.message.startswith("agent.yaml: tools[0].command: MCP server 'ex' ")
    assert words in error.message
    assert "\n" not in error.message
    assert "\x1b" not in error.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": "no-such-command-anywhere"}, "there is no command 'no-such-command-anywhere'"),
        ({"command": "./none.sh"}, "./none.sh does not exist (looked in"),
        ({"command": "./plain.sh"}, "./plain.sh is not executable: chmod +x it"),
        ({"command": "ls", "env": {"PATH": "/nowhere"}}, "there is no command 'ls'"),
    ],
)
def test_commands_are_looked_up_before_anything_starts(bench, changes, words):
    """A command that does not exist is known before the first prompt."""
    bench.write("plain.sh", "")
    with pytest.raises(AgentFileError) as caught:
        bench.box(entry(**changes))
    assert words in caught.value.message
    assert caught.value.key == "tools[0].command"


def test_a_program_that_cannot_be_executed(bench):
    """A file that the system cannot run is told with the system's words."""
    bench.write("broken", "\0\1\2").chmod(0o755)
    assert "cannot be started: Exec format error" in open_error(bench.box(entry(command="./broken"))).message


def test_one_failure_stops_the_servers_that_started(bench, is_running, eventually):
    """If one server fails, the others are stopped again and one error is raised."""
    pid = bench.directory / "pid"
    wait = f"import os, sys, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    fail = f"import os, sys, time\nwhile not os.path.exists({str(pid)!r}): time.sleep(0.01)\nsys.exit('bad')"
    started = time.monotonic()
    error = open_error(bench.box(raw(wait, name="waits"), raw(fail, name="fails")))
    assert error.key == "tools[1].command"
    assert "exited with code 1: bad" in error.message
    assert time.monotonic() - started < 15
    eventually(lambda: pid.read_text() and not is_running(int(pid.read_text())))


@pytest.mark.parametrize("flags", [("stubborn",), ("spawn",)])
def test_no_process_survives_close(bench, flags, is_running, eventually):
    """A server that ignores the end of its input and SIGTERM, and its children too, are gone within two seconds."""
    pids = bench.directory / "pids"

    async def main():
        box = bench.box(entry(*flags, env={"PIDS": str(pids)}))
        await box.open()
        pid = int((await box.call("ex-place", None, bench.context)).split()[1])
        started = time.monotonic()
        await box.close()
        await box.close()
        return pid, time.monotonic() - started

    pid, seconds = asyncio.run(main())
    assert seconds < 2.5
    eventually(lambda: not is_running(pid))
    if "spawn" in flags:
        eventually(lambda: not is_running(int(pids.read_text())))


def test_a_server_ends_with_a_killed_parent(bench, is_running, eventually):
    """A parent that is killed takes its servers along: their input ends."""
    code = f"""
import asyncio, sys
from pathlib import Path
from holodeck.models.agent import McpTool
from holodeck.tools import CallContext, Toolbox
async def main():
    config = McpTool(type="mcp", name="ex", command=sys.executable, args=[{SERVER!r}, "stdio"])
    async with Toolbox([config], Path(".")) as box:
        print((await box.call("ex-place", None, CallContext(None))).split()[1], flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=bench.directory) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    eventually(lambda: not is_running(pid))


def test_what_a_server_writes_does_not_reach_the_terminal(bench, capfd):
    """Banners on stdout and noise on stderr are kept away from the chat, and the library's log messages as well."""
    assert calls(bench, bench.box(entry("banner")), ("noise", {"bytes_": 1000})) == ["written"]
    assert capfd.readouterr() == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("mcp").handlers)


def test_cancelling_open_leaves_nothing_behind(bench, is_running, eventually):
    """Ctrl-C while servers start stops them."""
    pid = bench.directory / "pid"
    box = bench.box(raw(f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"))

    async def main():
        opening = asyncio.create_task(box.open())
        await asyncio.to_thread(eventually, lambda: pid.exists() and pid.read_text())
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(main())
    eventually(lambda: not is_running(int(pid.read_text())))


def test_a_closed_server_is_not_started_by_a_call(bench):
    """After ``close`` a call fails; ``open`` starts the server anew."""

    async def main():
        box = bench.box(entry())
        await box.open()
        await box.close()
        with pytest.raises(ToolError, match="the toolbox is not open"):
            await box.call("ex-ok", {"text": "x"}, bench.context)
        async with box:
            return await box.call("ex-ok", {"text": "x"}, bench.context)

    assert asyncio.run(main()) == "x"


def test_long_lists_of_tools_come_in_pages(bench):
    """A server that lists its tools page by page is read to the end; a big answer is one line of many megabytes."""
    code = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif method == "tools/list":
        page = int(params.get("cursor") or 0)
        result = {"tools": [{"name": f"t{page}", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}]}
        if page < 2: result["nextCursor"] = str(page + 1)
    else:
        result = {"content": [{"type": "text", "text": "x" * 3_000_000}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
    box = bench.box(raw(code))
    (answer,) = calls(bench, box, ("t2", {"a": 1}))
    assert [spec.name for spec in box.specs] == ["ex-t0", "ex-t1", "ex-t2"]
    assert len(answer) == 3_000_000


def test_a_server_tool_cannot_take_a_name_that_is_taken(bench):
    """A tool of a server that would be offered under the name of another tool is one error, and the server is stopped."""
    error = open_error(bench.box({"type": "prompt", "name": "ex-ok", "template": "x"}, entry()))
    assert error.key == "tools[1].name"
    assert "two tools would be offered as 'ex-ok'" in error.message


ANSWERS = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    number, method, params = message["id"], message["method"], message.get("params") or {}
    info = {"name": "p", "version": "1"}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = TOOLS
    else:
        result = {"content": []}
        arguments = params.get("arguments") or {}
        if "raw" in arguments:
            print(arguments["raw"].replace("ID", str(number)), flush=True)
            continue
        if "deaf" in arguments:
            os.close(0)
            result = {"content": [{"type": "text", "text": "deaf"}]}
            print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
            import time; time.sleep(60)
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"""


def answering(tools: str = '{"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}'):
    """A server that lists ``tools`` and writes what it is told to."""
    return raw(ANSWERS.replace("TOOLS", tools))


def test_bad_answers_fail_one_call_at_once(bench):
    """An answer that is not MCP is told in a line of ours; one with an error of the server's own is no lost connection."""
    head = '{"jsonrpc": "2.0", "id": ID, '
    box = bench.box(answering())
    started = time.monotonic()
    found = calls(
        bench,
        box,
        ("t", {"raw": head + '"result": null}'}),
        ("t", {"raw": head + '"result": {"structuredContent": {}}}'}),
        ("t", {"raw": head + '"error": {"code": -32000, "message": "db is down"}}'}),
        ("t", {"raw": head + '"error": {"code": -32050, "message": "forged", "data": {"error_type": "any\\nthing"}}}'}),
        ("t", {"raw": head + '"result": {"content": [{"type": "text", "text": "a\\ud83e"}]}}'}),
    )
    assert time.monotonic() - started < 15
    assert [getattr(error, "error_type", error) for error in found] == [
        "mcp_invalid_answer", "mcp_invalid_answer", "tool_error", "tool_error", "a\ufffd",
    ]  # fmt: skip
    assert [error.message for error in found[:4]] == [
        "MCP server 'ex' gave an answer that is not MCP",
        "MCP server 'ex' gave an answer that is not MCP: content: Field required",
        "db is down",
        "forged",
    ]


def test_a_server_that_stops_reading_is_started_again(bench):
    """A call that cannot be sent fails at once, and the next one finds a new server."""
    found = calls(bench, bench.box(answering()), ("t", {"deaf": 1}), ("t", {}), ("t", {}))
    assert found[0] == "deaf"
    assert found[1].message == "MCP server 'ex' does not read its input any more"
    assert found[2] == ""


def test_a_list_that_leads_back_to_itself_ends(bench):
    """A cursor that was followed before is not followed again."""
    box = bench.box(answering('{"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "nextCursor": "again"}'))
    assert calls(bench, box, ("t", {})) == [""]
    assert [spec.name for spec in box.specs] == ["ex-t"]


@pytest.mark.parametrize(
    ("schema", "offered"),
    [
        ("{}", {"type": "object"}),
        ('{"type": "array"}', {"type": "object"}),
        ('{"type": "object", "properties": {"a": {"type": "strin"}}}', {"type": "object"}),
        ('{"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}', {"type": "object"}),
        ('{"type": "object", "properties": {"a": {"maximum": float("nan")}}}', {"type": "object"}),
        ('{"properties": {"a": {"pattern": "^(?<x>y)"}}}', {"type": "object", "properties": {"a": {"pattern": "^(?<x>y)"}}}),
    ],
)
def test_schemas_that_a_provider_would_refuse_are_not_offered(bench, schema, offered):
    """One bad schema does not spoil every request: any object is offered, and the server says what it takes."""
    box = bench.box(answering(f'{{"tools": [{{"name": "t", "inputSchema": {schema}}}]}}'))
    assert calls(bench, box, ("t", {"a": 1})) == [""]
    assert box.spec("ex-t").parameters == offered


def test_handshakes_are_told_in_our_words(bench):
    """Neither a broken welcome nor an endless line is waited out, or shown as the library shows it."""
    broken = raw('import sys\nsys.stdin.readline()\nprint(\'{"jsonrpc": "2.0", "id": 0, "result": {}}\', flush=True)\nsys.stdin.read()')
    assert open_error(bench.box(broken)).message.endswith("gave an answer that is not MCP: protocolVersion: Field required")
    endless = raw("import sys\nwhile True: sys.stdout.write('x' * 2**20)")
    assert "wrote a message of more than 64 MiB" in open_error(bench.box(endless)).message


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"args": ["a", "b\0"]}, "args[1]"),
        ({"env": {"A=B": "x"}}, "env.A=B"),
        ({"env": {"": "x"}}, "env."),
        ({"env": {"A": "x\0"}}, "env.A"),
        ({"command": "/"}, "command"),
    ],
)
def test_what_no_process_can_be_given_is_known_before_anything_starts(bench, changes, key):
    """NUL characters, impossible names and a directory as the program are errors at their keys."""
    with pytest.raises(AgentFileError) as caught:
        bench.box(entry(**changes))
    assert caught.value.key == f"tools[0].{key}"
