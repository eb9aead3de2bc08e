"""The conversation of the benchmark through the plain openai client, with one of the instrumentations or none.

Runs in a peer's own environment: only that peer, openai and OpenTelemetry can be imported. Telemetry is left to end by itself, as it would
be in a program of the user's.
"""

# ruff: noqa: PLC0415 - each instrumentation can be imported in its own environment only
from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from blocks import run_blocks, say

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup_order",
            "description": "Where an order is.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
        },
    }
]


def lookup_order(order_id: str) -> str:
    """The tool."""
    return json.dumps({"order_id": order_id, "status": "shipped"})


async def request(client: Any, messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """One streamed request; returns the text and the tool calls."""
    stream = await client.chat.completions.create(
        model="gpt-4o-mini", messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
    )
    text, calls = "", {}
    async for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, {"id": part.id, "name": part.function.name, "arguments": ""})
                call["arguments"] += part.function.arguments or ""
    return text, list(calls.values())


async def turn(client: Any) -> None:
    """Two requests, one tool."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You answer questions about orders."},
        {"role": "user", "content": "Where is order 1042?"},
    ]
    _, (call,) = await request(client, messages)
    function = {"name": call["name"], "arguments": call["arguments"]}
    messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": call["id"], "type": "function", "function": function}]})
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": lookup_order(**json.loads(call["arguments"]))})
    text, _ = await request(client, messages)
    assert text.startswith("word0"), text


async def measure(url: str) -> int:
    """Run the blocks; returns the number of turns."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0) as client:
        return await run_blocks(lambda: turn(client))


def providers(otlp: str) -> None:
    """OpenTelemetry's globals with OTLP over HTTP, as its documentation sets them up."""
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{otlp}/v1/traces")))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(f"{otlp}/v1/metrics"))]))


def genai_openai(otlp: str) -> None:
    """OpenTelemetry's own; without content by default."""
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    providers(otlp)
    OpenAIInstrumentor().instrument()


def openllmetry(otlp: str) -> None:
    """OpenLLMetry's; it captures content unless told otherwise."""
    os.environ["TRACELOOP_TRACE_CONTENT"] = "false"
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    providers(otlp)
    OpenAIInstrumentor().instrument()


def openlit(otlp: str) -> None:
    """OpenLIT without spans of HTTP clients; a local price list, or it would fetch one from the internet."""
    os.environ["OPENLIT_PRICING_JSON"] = prices = os.path.join(os.environ["HOME"], "prices.json")  # noqa: PTH118 - plain on purpose
    with open(prices, "w", encoding="utf-8") as file:  # noqa: PTH123 - plain on purpose
        json.dump({"chat": {"gpt-4o-mini": {"promptPrice": 0.0, "completionPrice": 0.0}}}, file)
    import openlit as library

    library.init(
        otlp_endpoint=otlp,
        pricing_json=prices,
        capture_message_content=False,
        disable_batch=False,
        disabled_instrumentors=["httpx", "requests", "urllib", "urllib3", "aiohttp-client"],
    )


def logfire(otlp: str) -> None:
    """Logfire with an OTLP exporter of the user's; it has no switch for content."""
    import logfire as library
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = BatchSpanProcessor(OTLPSpanExporter(f"{otlp}/v1/traces"))
    library.configure(send_to_logfire=False, console=False, additional_span_processors=[exporter])
    library.instrument_openai()


INSTRUMENTATIONS = {"genai-openai": genai_openai, "openllmetry": openllmetry, "openlit": openlit, "logfire": logfire}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("url")
    parser.add_argument("--instrumentation", choices=INSTRUMENTATIONS)
    parser.add_argument("--otlp", default="")
    options = parser.parse_args()
    if options.instrumentation:
        INSTRUMENTATIONS[options.instrumentation](options.otlp)
    say({"turns": asyncio.run(measure(options.url))})


if __name__ == "__main__":
    main()
