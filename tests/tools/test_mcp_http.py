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
