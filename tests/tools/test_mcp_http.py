"""Streamable-HTTP MCP servers: real ones over loopback, and ones that answer badly."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holodeck.errors import AgentFileError, ToolError
from support.net import HttpServer, SilentPort, unused_port

SERVER = str(Path(__file__).with_name("mcp_example_server.py"))


@contextlib.contextmanager
def example(port: int):
    """The example server on a port, ready to answer."""
    process = subprocess.Popen([sys.executable, SERVER, "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def entry(url: str, **changes):
    """An HTTP server as an agent file has it."""
    return {"type": "mcp", "name": "ex", "transport": "http", "url": url, "timeout": 20} | changes


def test_a_server_over_http(bench, eventually):
    """Results, failures, headers, the trace, and cancelled calls work as over stdio."""
    port, mark = unused_port(), bench.directory / "mark"

    async def main():
        box = bench.box(entry(f"http://127.0.0.1:{port}/mcp", headers={"x-token": "secret"}), traceparent=bench.traceparent)
        async with box:
            results = [await box.call(f"ex-{name}", None, bench.context) for name in ("header", "meta", "picture")]
            with pytest.raises(ToolError, match="no stock"):
                await box.call("ex-fail", {"reason": "no stock"}, bench.context)
            begun = bench.directory / "begun"
            slow = asyncio.create_task(box.call("ex-slow", {"seconds": 30, "mark": str(mark), "begun": str(begun)}, bench.context))
            await asyncio.to_thread(eventually, begun.exists)
            slow.cancel()
            await asyncio.to_thread(eventually, lambda: mark.exists() and mark.read_text())
            return results

    with example(port):
        results = asyncio.run(main())
    assert results == [f"secret {bench.traceparent}", bench.traceparent, "look:\n[image image/png, 5 bytes]"]
    assert mark.read_text() == "cancelled"


def test_a_server_that_dies_and_comes_back(bench):
    """Calls in flight fail at once; when the server is there again, the next call opens a new session by itself."""
    port = unused_port()

    async def outcome(box, name, arguments):
        try:
            return await box.call(f"ex-{name}", arguments, bench.context)
        except ToolError as exc:
            return exc.message, exc.error_type

    async def main(first):
        box = bench.box(entry(f"http://127.0.0.1:{port}/mcp"))
        await box.open()
        started = time.monotonic()
        slow = outcome(box, "slow", {"seconds": 30, "mark": str(bench.directory / "mark")})
        broken = await asyncio.gather(slow, outcome(box, "die", {}))
        first.wait()
        gone = await outcome(box, "ok", {"text": "x"})
        assert time.monotonic() - started < 10
        with example(port):
            back = await outcome(box, "ok", {"text": "back"})
            await box.close()
        return broken, gone, back

    with example(port) as first:
        broken, gone, back = asyncio.run(main(first))
    assert broken == [("MCP server 'ex' broke off before its answer was complete", "mcp_server_died")] * 2
    assert gone[1] == "mcp_server_died"
    assert gone[0].startswith("MCP server 'ex' cannot be reached (ConnectError")
    assert back == "back"


class BadServer(HttpServer):
    """Answers the handshake of MCP well, and each tool call in one bad way."""

    def __init__(self, answers: dict[str, tuple[int, bytes, str]]) -> None:
        super().__init__()
        self.answers = answers

    def answer(self, http):
        """One request."""
        message = json.loads(http.body() or b"{}")
        method = message.get("method")
        if method in self.answers:
            status, body, kind = self.answers[method]
            return http.respond(status, body, {"content-type": kind})
        if method == "initialize":
            info = {"name": "bad", "version": "1"}
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        else:
            return http.respond(405 if method is None else 202, b"", {})
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return http.respond(200, body, {"content-type": "application/json"})


@pytest.mark.parametrize(
    ("answer", "words", "kind"),
    [
        ((500, b"oops", "text/plain"), "answered HTTP 500 Internal Server Error", "500"),
        ((401, b"", "text/plain"), "answered HTTP 401 Unauthorized", "401"),
        ((404, b"", "text/plain"), "answered HTTP 404 Not Found", "404"),
        ((200, b"<html>", "text/html"), "did not answer in MCP, but with text/html", "mcp_invalid_answer"),
        ((200, b"{}", "application/json"), "did not answer in MCP, but with other JSON", "mcp_invalid_answer"),
        ((200, b"", "text/event-stream"), "broke off before its answer was complete", "mcp_server_died"),
        ((200, b'event: message\ndata: {"half', "text/event-stream"), "broke off before its answer was complete", "mcp_server_died"),
    ],
)
def test_bad_answers_fail_one_call_at_once(bench, answer, words, kind):
    """A fault of one request is told at once with its status, and the session goes on."""

    async def main(server):
        async with bench.box(entry(f"{server.base_url}/mcp")) as box:
            for _ in range(2):
                with pytest.raises(ToolError, match=words) as caught:
                    await box.call("ex-t", {}, bench.context)
                assert caught.value.error_type == kind

    with BadServer({"tools/call": answer}) as server:
        asyncio.run(main(server))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, b"", "text/plain"), "answered HTTP 404 Not Found"),
        ((200, b"<html>", "text/html"), "did not answer in MCP, but with text/html"),
        (
            (200, b'{"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "go away"}}', "application/json"),
            "refused the handshake: go away",
        ),
    ],
)
def test_handshakes_that_fail(bench, answer, words):
    """A server that does not take the handshake is one line at ``url``."""
    with BadServer({"initialize": answer}) as server, pytest.raises(AgentFileError) as caught:
        asyncio.run(bench.box(entry(f"{server.base_url}/mcp")).open())
    assert words in caught.value.message
    assert caught.value.key == "tools[0].url"


def test_nobody_there_and_nobody_answering(bench):
    """A refused connection and a silent server are told apart, the latter after the tool's timeout."""
    with pytest.raises(AgentFileError, match="cannot be reached"):
        asyncio.run(bench.box(entry(f"http://127.0.0.1:{unused_port()}/mcp")).open())
    with SilentPort() as server, pytest.raises(AgentFileError, match=r"did not finish its handshake within 0\.3 s"):
        asyncio.run(bench.box(entry(f"{server.base_url}/mcp", timeout=0.3)).open())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"headers": {"x": "a\nb"}}, "headers.x"),
        ({"headers": {"x y": "a"}}, "headers.x y"),
        ({"headers": {"x": "é"}}, "headers.x"),
    ],
)
def test_headers_are_checked_first(bench, changes, key):
    """What cannot be a header is known before the first prompt; its value is not repeated."""
    with pytest.raises(AgentFileError) as caught:
        bench.box(entry("http://127.0.0.1/mcp") | changes)
    assert caught.value.key == f"tools[0].{key}"
    assert "a\nb" not in caught.value.message


@pytest.mark.parametrize(
    ("answer", "words", "kind"),
    [
        ((202, b"", "text/plain"), r"gave no answer \(HTTP 202\)", "mcp_invalid_answer"),
        ((200, b'{"jsonrpc": "2.0", "id": 2, "result": null}', "application/json"), "gave an answer that is not MCP", "mcp_invalid_answer"),
        ((200, b'{"jsonrpc": "2.0", "id": 2, "result": {"content": 5}}', "application/json"), "not MCP: content", "mcp_invalid_answer"),
        (
            (200, b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "of nobody"}}', "application/json"),
            "of nobody",
            "tool_error",
        ),
        (
            (200, b'{"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "db is down"}}', "application/json"),
            "^db is down$",
            "tool_error",
        ),
        (
            (200, b'{"jsonrpc": "2.0", "id": 2, "error": {"code": -32050, "message": "forged", "data": "x"}}', "application/json"),
            "^forged$",
            "tool_error",
        ),
        ((403, b"", "text/plain"), "answered HTTP 403 Forbidden: check its 'headers'", "403"),
    ],
)
def test_answers_that_nobody_would_wait_for(bench, answer, words, kind):
    """An answer that is none, or not to this request, fails the call at once, in the server's words if it has any; the session goes on."""

    async def main(server):
        async with bench.box(entry(f"{server.base_url}/mcp")) as box:
            connection = box._servers[0]._connection
            with pytest.raises(ToolError, match=words) as caught:
                await box.call("ex-t", {}, bench.context)
            assert caught.value.error_type == kind
            assert "pydantic" not in caught.value.message
            assert box._servers[0]._connection is connection
            assert connection.alive

    with BadServer({"tools/call": answer}) as server:
        asyncio.run(main(server))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (rb'{"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "a\ud83e"}]}}', "application/json"),
        (
            rb'data: {"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "a\ud83e"}]}}' + b"\n\n",
            "text/event-stream",
        ),
        (b'{"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "a\xff"}]}}', "application/json"),
        (b'{"jsonrpc": "2.0", "id": 77, "result": {"content": [{"type": "text", "text": "a\xef\xbf\xbd"}]}}', "application/json"),
    ],
)
def test_answers_are_read_leniently(bench, body, kind):
    """Lone surrogates and bytes that are not UTF-8 are replaced, as one object or as an event; the answer to a request is its answer."""

    async def main(server):
        async with bench.box(entry(f"{server.base_url}/mcp")) as box:
            return await box.call("ex-t", {}, bench.context)

    with BadServer({"tools/call": (200, body, kind)}) as server:
        assert asyncio.run(main(server)) == "a\ufffd"


class ForgetfulServer(HttpServer):
    """Knows one session at a time; forgets them all when told."""

    def __init__(self):
        super().__init__()
        self.sessions = 0
        self.known = ""

    def answer(self, http):
        """One request."""
        message = json.loads(http.body() or b"{}")
        if message.get("method") == "initialize":
            self.sessions += 1
            self.known = f"s{self.sessions}"
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": INFO}
        elif message.get("method") == "tools/call":
            if http.headers.get("mcp-session-id") != self.known:
                return http.respond(404, b"", {"content-type": "text/plain"})
            result = {"content": [{"type": "text", "text": "fine"}]}
        elif message.get("method") == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        else:
            return http.respond(202 if message else 405, b"", {})
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return http.respond(200, body, {"content-type": "application/json", "mcp-session-id": self.known})


INFO = {"name": "forgetful", "version": "1"}


def test_all_calls_of_a_forgotten_session_are_sent_again(bench):
    """Calls that were under way side by side all get their answer in the one new session."""

    async def main(server):
        async with bench.box(entry(f"{server.base_url}/mcp")) as box:
            server.known = "gone"
            return await asyncio.gather(*(box.call("ex-t", {}, bench.context) for _ in range(10)), return_exceptions=True)

    with ForgetfulServer() as server:
        assert asyncio.run(main(server)) == ["fine"] * 10
        assert server.sessions == 2
