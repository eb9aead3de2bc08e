"""A small MCP server for the tests: `mcp_example_server.py [stdio | http PORT] [FLAG …]`."""

import os
import sys
import time
from pathlib import Path

import anyio
from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError

server = FastMCP("example", log_level="ERROR", host="127.0.0.1", port=int(sys.argv[2]) if sys.argv[1] == "http" else 0)


@server.tool()
def ok(text: str, times: int = 1) -> str:
    """Repeats a text."""
    return text * times


@server.tool()
def fail(reason: str) -> str:
    """Fails on purpose."""
    raise ToolError(reason)


@server.tool()
async def slow(seconds: float, mark: str, begun: str = os.devnull) -> str:
    """Takes its time, and writes to the file MARK how it ended; the file BEGUN tells that it runs."""
    await anyio.Path(begun).write_text("begun")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.Path(mark).write_text("cancelled")
        raise
    await anyio.Path(mark).write_text("finished")
    return "done"


@server.tool()
def die(words: str = "") -> str:
    """Ends the server process in the middle of the call."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool(structured_output=True)
def env() -> dict[str, str]:
    """The server's environment."""
    return dict(os.environ)


@server.tool()
def place() -> str:
    """The server's working directory and process id."""
    return f"{Path.cwd()} {os.getpid()}"


@server.tool()
def meta(context: Context) -> str:
    """The traceparent of the request's meta data."""
    found = context.request_context.meta
    return str(getattr(found, "traceparent", None))


@server.tool()
def header(context: Context) -> str:
    """Headers of the HTTP request."""
    headers = context.request_context.request.headers
    return f"{headers.get('x-token')} {headers.get('traceparent')}"


@server.tool(structured_output=False)
def picture() -> list:
    """A text and an image."""
    return ["look:", Image(data=b"12345", format="png")]


@server.tool(structured_output=True)
def numbers() -> list[int]:
    """Structured content."""
    return [1, 2]


@server.tool(name="dotted.name/with:signs")
def dotted() -> str:
    """A name that model providers do not take."""
    return "dotted"


@server.tool()
def noise(bytes_: int) -> str:
    """Fills the pipe of stderr."""
    for _ in range(bytes_ // 100):
        sys.stderr.write("x" * 99 + "\n")
    return "written"


if "spawn" in sys.argv:  # a grandchild that holds on to the pipes
    import subprocess

    child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"])
    Path(os.environ["PIDS"]).write_text(str(child.pid))
if "banner" in sys.argv:
    sys.stdout.write("Welcome to the example server!\n")
    sys.stdout.flush()
if "stubborn" in sys.argv:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server.run("streamable-http" if sys.argv[1] == "http" else "stdio")
if "stubborn" in sys.argv:
    while True:
        time.sleep(1)
