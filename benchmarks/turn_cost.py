"""What telemetry costs: CPU time of a turn with OTLP export, all threads counted, over the same turn with telemetry off.

    python benchmarks/turn_cost.py [--turns N] [--protocol http/protobuf|grpc]

A turn is two model requests of 20 chunks and one tool. The collector is a process of its own, so that its time is not counted. Exit code 1
if the difference is over the limit of 1.5 ms.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from holodeck.models.chat import ChatSession, Message, MessageRole, SessionState
from holodeck.models.events import TurnResult
from holodeck.models.exchange import ModelReply
from holodeck.models.observability import OtlpTarget, TelemetrySettings
from holodeck.telemetry import Telemetry, create_telemetry
from support.telemetry import CALL, ENDPOINT, EXECUTION, HISTORY, RESOURCE, SPEC, USAGE, agent_config

LIMIT_MS = 1.5
ROUNDS = 5


def one_turn(telemetry: Telemetry, session: ChatSession, number: int, message: Message) -> None:
    """Two requests of 20 chunks and a tool between them, as the turn loop records them."""
    with telemetry.turn(session, number, message) as turn:
        for part in (1, 2):
            with turn.request(ENDPOINT, lambda: HISTORY, [SPEC]) as request:
                for chunk in range(20):
                    if not chunk:
                        request.first_chunk()
                request.answered(ModelReply(text="Shipped.", finish_reason="stop", response_id="r-1", response_model="gpt-x", usage=USAGE))
            if part == 1:
                with turn.tool(CALL, SPEC) as tool:
                    tool.finished(EXECUTION)
        answer = Message(role=MessageRole.ASSISTANT, content="Shipped.", tool_calls=[EXECUTION], tokens_used=USAGE)
        logging.getLogger("holodeck.benchmark").info("turn %d answered", number)
        turn.finished(TurnResult(number=number, message=answer, tool_calls=[EXECUTION], usage=USAGE, model_requests=2))


def cost_ms(settings: TelemetrySettings, turns: int, state: str) -> float:
    """CPU milliseconds a turn, the delivery of its spans and the other threads included; the median of some rounds."""
    telemetry = create_telemetry(settings, environ={"HOLODECK_STATE_DIR": state})
    session = ChatSession.model_construct(agent_config=agent_config(), state=SessionState.ACTIVE, message_count=0, session_id=uuid4())
    message = Message(role=MessageRole.USER, content="Where is order 1042?")
    for number in range(50):
        one_turn(telemetry, session, number, message)
    telemetry.flush(5)
    rounds = []
    for _ in range(ROUNDS):
        before = process_time()
        for number in range(turns):
            one_turn(telemetry, session, number, message)
        telemetry.flush(5)
        rounds.append((process_time() - before) / turns * 1000)
    telemetry.shutdown()
    return median(rounds)


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--protocol", choices=["http/protobuf", "grpc"], default="http/protobuf")
    options = parser.parse_args()
    command = [sys.executable, "-m", "support.otlp_receiver"]
    with (
        tempfile.TemporaryDirectory() as state,
        subprocess.Popen(command, cwd=Path(__file__).parent.parent / "tests", stdout=subprocess.PIPE, text=True) as receiver,
    ):
        assert receiver.stdout is not None
        http, grpc = (receiver.stdout.readline().strip() for _ in range(2))
        urls = {s: grpc if options.protocol == "grpc" else f"{http}/v1/{s}" for s in ("traces", "metrics", "logs")}
        targets = {signal: OtlpTarget(url=url, protocol=options.protocol) for signal, url in urls.items()}
        on = cost_ms(TelemetrySettings(resource=RESOURCE, otlp=True, **targets), options.turns, state)
        receiver.terminate()
    off = cost_ms(TelemetrySettings(resource=RESOURCE, disabled=True), options.turns, state)
    print(f"on {on:.3f} ms, off {off:.3f} ms, telemetry costs {on - off:.3f} ms of CPU a turn (limit {LIMIT_MS} ms)")
    return int(on - off > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
