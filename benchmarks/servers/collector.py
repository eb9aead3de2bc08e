"""A collector that counts: takes OTLP over HTTP, answers as told, and says how many spans came.

    python collector.py [--behaviour up|silent|slow|unavailable]

``GET /count`` returns the number of spans that were accepted. ``slow`` answers after a second.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from wire import Request, respond, run


def spans_in(request: Request) -> int:
    """How many spans the request carries."""
    body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
    if request.headers.get("content-type", "").startswith("application/json"):
        scopes = [scope for resource in json.loads(body).get("resourceSpans", []) for scope in resource.get("scopeSpans", [])]
        return sum(len(scope.get("spans", [])) for scope in scopes)
    message = ExportTraceServiceRequest.FromString(body)
    return sum(len(scope.spans) for resource in message.resource_spans for scope in resource.scope_spans)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--behaviour", choices=["up", "silent", "slow", "unavailable"], default="up")
    behaviour = parser.parse_args().behaviour
    count = 0

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        if request.path == "/count":
            respond(writer, 200, str(count).encode(), "text/plain")
            return
        if behaviour == "silent":
            await asyncio.sleep(3600)
        if behaviour == "slow":
            await asyncio.sleep(1)
        if behaviour == "unavailable":
            respond(writer, 503, b"")
            return
        if request.path.endswith("/traces"):
            count += spans_in(request)
        respond(writer, 200, b"", request.headers.get("content-type", "application/x-protobuf"))

    run(answer)


if __name__ == "__main__":
    main()
