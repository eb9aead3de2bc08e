"""The installed command through pipes, with a real model endpoint."""

from __future__ import annotations

import json
import re
import time

import pytest

from support.agents import write_agent
from support.command import Process, run
from support.model_server import Call, Fault, ModelServer, Reply

_TOOL_TURN = (
    Reply("Let me look.", tool_calls=[Call("lookup_order", {"order_id": "1042"})], usage=(100, 10)),
    Reply("It has been shipped.", usage=(120, 8)),
)


@pytest.fixture
def server():
    """A model endpoint that says what the test queued, else what the user said."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent(server, tmp_path):
    """An agent file with all test tools that asks the endpoint."""
    return write_agent(tmp_path / "agent", server)


def test_one_turn_a_line(server, agent):
    """Answers alone are on stdout, one after the other; the conversation is one."""
    server.reply(Reply("First answer."), Reply("Second\nanswer.  \n"))
    result = run(["chat", agent], "one\r\ntwo\r\n")
    assert (result.code, result.out) == (0, "First answer.\nSecond\nanswer.\n")
    assert [message["content"] for message in server.requests[1].body["messages"][1:]] == ["one", "First answer.", "two"]


def test_a_turn_with_a_tool(server, agent):
    """The answer goes to stdout exactly as it was said; tool and footer go to stderr."""
    server.reply(*_TOOL_TURN)
    result = run(["chat", agent], "Where is order 1042?\n")
    assert (result.code, result.out) == (0, "Let me look.\n\nIt has been shipped.\n")
    tool, footer = result.err.splitlines()
    assert re.fullmatch(r"⚙ lookup_order\(order_id=1042\) ✓ [\d.]+ (µs|ms|s) → .*shipped.*", tool)
    assert re.fullmatch(r"[\d.]+ m?s · first token [\d.]+ [mµ]?s · 220 \+ 18 tokens · 1 tool · trace [0-9a-f]{32}", footer)


def test_verbose_shows_the_tool_in_full_and_the_tree(server, agent):
    """With -v stderr reads like a protocol: the message, the tool with its result, the spans."""
    server.reply(*_TOOL_TURN)
    result = run(["chat", agent, "-v"], "Where is order 1042?\n")
    assert result.out == "Let me look.\n\nIt has been shipped.\n"
    assert result.err.startswith("> Where is order 1042?\n")
    assert '  order_id: 1042\n  result: {"order_id":"1042","status":"shipped"}\n' in result.err
    tree = result.err.splitlines()[-5:]
    assert [re.sub(r" {2,}.*| · .*", "", line) for line in tree] == [
        *("invoke_agent support", "invoke_agent support", "├─ chat test-model", "├─ execute_tool lookup_order", "└─ chat test-model"),
    ]


def test_unknown_tokens_are_said_to_be(server, agent):
    """A provider that does not report usage never costs 0."""
    server.reply(Fault.no_usage())
    assert "tokens unknown" in run(["chat", agent, "-m", "hi"]).err


@pytest.mark.parametrize("stdin", [b"", None])
def test_no_input_is_a_normal_end(agent, stdin):
    """End of file at once: nothing is said, and all is well."""
    result = run(["chat", agent], stdin)
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("word", ["exit", "QUIT", " exit ", "/exit"])
def test_leaving_by_word(server, agent, word):
    """What follows is not sent; a carriage return does not hide the word."""
    result = run(["chat", agent], f"one\r\n{word}\r\ntwo\r\n")
    assert result.code == 0
    assert len(server.requests) == 1


def test_several_messages_make_one_conversation(server, agent):
    """-m may be given several times; standard input is left alone then."""
    result = run(["chat", agent, "-m", "one", "--message", "two\nlines"], "three\n")
    assert result.code == 0
    assert [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "user"] == ["one", "two\nlines"]


def test_refused_messages_do_not_end_the_session(server, agent):
    """Too long, control characters, bytes that are no text: each has its line, the rest goes on, and the exit code tells."""
    lines = [b"x" * 10_001, b"a\x07b", b"a\xffb", b"y" * 2_000_000, b"good"]
    result = run(["chat", agent, "--no-observability"], b"\n".join(lines))
    assert (result.code, result.out) == (1, "good\n")
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert [re.search(r"10,001|U\+0007|UTF-8|far too long", error)[0] for error in errors] == ["10,001", "U+0007", "UTF-8", "far too long"]
    assert len(server.requests) == 1


def test_an_empty_line_is_passed_over(server, agent):
    """It is said, and no failure; an empty -m is one."""
    result = run(["chat", agent], "\n  \nhi\n")
    assert (result.code, result.out, result.err.count("an empty line")) == (0, "hi\n", 2)
    result = run(["chat", agent, "-m", ""])
    assert (result.code, result.out) == (1, "")
    assert "error: The message is empty" in result.err


def test_bytes_on_the_command_line_that_are_no_text(agent):
    """They are refused like those on standard input."""
    result = run(["chat", agent, "-m", "a\udcffb"])
    assert result.code == 1
    assert "error: The message is not valid UTF-8" in result.err


def test_a_failed_turn_is_exit_1_and_the_next_goes_on(server, agent):
    """The reason is one line that says what to do; nothing of the failed turn is left in the history."""
    server.reply(Fault(status=401), Reply("Hello."))
    result = run(["chat", agent], "one\ntwo\n")
    assert (result.code, result.out) == (1, "Hello.\n")
    assert result.err.count("error: ") == 1
    assert "Traceback" not in result.err
    assert [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "user"] == ["two"]


def test_the_limit_of_messages(server, agent):
    """The answer is complete, one line says why it ends, and that is no failure."""
    result = run(["chat", agent, "--max-messages", "2"], "one\ntwo\n")
    assert (result.code, result.out) == (0, "one\n")
    assert result.err.splitlines()[-1] == "This session has reached its limit of 2 messages and ends here (--max-messages sets it)."


def test_slash_commands_work_in_a_pipe(server, agent):
    """What they show goes to stderr; two slashes send one; one that cannot be done is a failure, and the rest goes on."""
    result = run(["chat", agent], "/help\none\n/trace 1\n//etc\n")
    assert (result.code, result.out) == (0, "one\n/etc\n")
    result = run(["chat", agent], "/help\none\n/trace 1\n/nope\n//etc\n")
    assert (result.code, result.out) == (1, "one\n/etc\n")
    assert "list what can be typed" in result.err
    assert "└─ chat test-model" in result.err
    assert "there is no /nope" in result.err


_WRONG_COMMANDS = {
    "/nope": "there is no /nope",
    "/trace": "there is no turn yet",
    "/save": "takes the name of a file",
    "/save no/such/directory/x.md": "nothing has been said yet",
    "/call": "/call takes a tool",
    "/call lokup_order": "there is no tool lokup_order: did you mean lookup_order? (tools: lookup_order, ",
    "/call \x1b[2Jwipe": "there is no tool wipe (tools: ",
    "/call lookup_order " + '{"order_id": ' + "[" * 20_000: "nested too deeply",
    "/call weather days=" + "[" * 20_000: "nested too deeply",
    "/call lookup_order x": "'x' is no argument",
    "/call lookup_order {x": "not JSON",
    "/retry": "there is no message yet",
    "/retry this": "takes nothing that follows it",
}


@pytest.mark.parametrize("command", _WRONG_COMMANDS, ids=lambda command: ascii(command[:30]))
def test_a_command_that_cannot_be_done_is_exit_1(agent, command):
    """One line, and with --json one object with the keys of every other."""
    result = run(["chat", agent, "-m", command])
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert _WRONG_COMMANDS[command] in result.err
    (line,) = run(["chat", agent, "--json", "-m", command]).out.splitlines()
    refused = json.loads(line)
    assert _WRONG_COMMANDS[command] in refused["error"]["message"]
    assert refused["error"]["error_type"] == ("session_state" if command == "/retry" else "invalid_command")
    assert (refused["turn"], refused["message"], refused["tool_calls"]) == (None, None, [])
    assert re.fullmatch(r"[0-9a-f-]{36}", refused["session_id"])
    assert set(refused) == set(json.loads(run(["chat", agent, "--json", "-m", "hi"]).out))


@pytest.mark.parametrize("path", ["no/such/directory/x.md", "/dev/full/x.json", "{agent}", "x" * 300])
def test_a_transcript_that_cannot_be_written_is_exit_1(agent, path):
    """The turn before it was good; the path and the reason are said."""
    path = path.replace("{agent}", str(agent))
    result = run(["chat", agent, "-m", "hi", "-m", f"/save {path}"])
    assert (result.code, result.out) == (1, "hi\n")
    assert re.search(rf"^error: {re.escape(path)} (cannot be written \(\w.*\)|is there already: .*)$", result.err, re.MULTILINE)


def test_a_call_that_fails_is_exit_1(agent, server):
    """Nothing else was asked for; a model that calls a tool that fails may still answer."""
    assert run(["chat", agent, "-m", "/call lookup_order order_id=7"]).code == 0
    for command in ("/call fails", "/call lookup_order", "/call lookup_order nothing=1"):
        assert run(["chat", agent, "-m", command]).code == 1
    server.reply(Reply(tool_calls=[Call("fails")]), Reply("Sorry."))
    assert run(["chat", agent, "-m", "hi"]).code == 0


def test_a_call_with_more_than_a_message_can_hold(agent):
    """Whatever comes of it, it is no traceback, and the next message is answered."""
    result = run(["chat", agent], f"/call lookup_order order_id={'x' * 20_000}\nhi\n")
    assert result.out == "hi\n"
    assert "Traceback" not in result.err
    assert "ValidationError" not in result.err


def test_commands_with_json_that_are_done_write_nothing_on_stdout(agent):
    """What they show goes to stderr; only a /call is a turn."""
    result = run(["chat", agent, "--json"], "/help\n/usage\n/tools\n/call lookup_order order_id=7\n/exit\n")
    assert result.code == 0
    (turn,) = map(json.loads, result.out.splitlines())
    assert (turn["turn"], turn["tool_calls"][0]["tool_name"]) == (1, "lookup_order")


def test_json_is_one_object_a_turn(server, agent):
    """Turns, failures and refused messages alike, and nothing else on stdout."""
    server.reply(*_TOOL_TURN, Fault(status=500))
    result = run(["chat", agent, "--json"], "Where?\nagain\na\x01b\n\n")
    turns = [json.loads(line) for line in result.out.splitlines()]
    assert [(turn["turn"], turn["error"] and turn["error"]["error_type"]) for turn in turns] == [
        (1, None),
        (2, "500"),
        (None, "invalid_input"),
    ]
    first = turns[0]
    assert first["message"]["content"] == "Let me look.\n\nIt has been shipped."
    assert first["message"]["tokens_used"]["total_tokens"] == 238
    assert first["tool_calls"][0]["result"] == '{"order_id":"1042","status":"shipped"}'
    assert re.fullmatch(r"[0-9a-f]{32}", first["trace_id"])
    assert first["model_requests"] == 2
    assert 0 < first["time_to_first_token"] <= first["duration"]
    assert len({turn["session_id"] for turn in turns}) == 1
    assert result.code == 1


def test_a_reader_that_goes_away_ends_it_quietly(agent):
    """`| head -1` has what it wanted."""
    command = f"'{agent}' -m one -m two -m three"
    result = run(["-c", f'set -o pipefail; "$HOLODECK" chat {command} | head -1'], program=["bash"], env={"HOLODECK": str(_holodeck())})
    assert (result.code, result.out) == (0, "one\n")
    assert "Error" not in result.err
    assert "error" not in result.err


def _holodeck():
    from support.command import HOLODECK

    return HOLODECK


def test_answers_stream(server, agent):
    """The beginning of an answer is there before its end."""
    server.reply(Reply("one two three four", chunk_delay=0.4))
    with Process(["chat", agent]) as process:
        process.send("hi\n")
        first = process._process.stdout.read1(100)
        started = time.monotonic()
        rest = process.wait("")
    assert first == b"one"
    assert time.monotonic() - started > 0.5
    assert rest.out == " two three four\n"


def test_lines_are_answered_while_the_pipe_is_open(server, agent):
    """A program can talk with it: each line is answered before the next is written."""
    with Process(["chat", agent]) as process:
        for word in ("one", "two"):
            process.send(f"{word}\n")
            assert process._process.stdout.readline() == f"{word}\n".encode()
        assert process.wait("").code == 0


_GREEDY = '''
def shout() -> str:
    """Prints, and reads what is there to be read."""
    import os, sys, subprocess
    print("from the tool")
    os.write(1, b"from its file descriptor\\n")
    subprocess.run(["echo", "from its child"], check=True)
    return f"read {sys.stdin.read()!r} and {subprocess.run(['cat'], capture_output=True).stdout!r}"
'''


def test_tools_neither_write_answers_nor_read_messages(server, tmp_path):
    """What a tool prints goes to stderr; standard input is empty for it."""
    tool = {"name": "shout", "type": "function", "file": "greedy.py", "function": "shout"}
    agent = write_agent(tmp_path, server, tools=[tool])
    (tmp_path / "greedy.py").write_text(_GREEDY, encoding="utf-8")
    server.reply(Reply(tool_calls=[Call("shout")]), Reply("done"))
    result = run(["chat", agent], "one\ntwo\n")
    assert (result.code, result.out) == (0, "done\ntwo\n")
    assert all(line in result.err for line in ("from the tool", "from its file descriptor", "from its child"))
    assert next(m for m in server.requests[1].body["messages"] if m["role"] == "tool")["content"] == "read '' and b''"


def test_nothing_acts_on_the_terminal(server, agent):
    """Escape sequences, split over chunks, in answers, arguments and results: none comes out, nor their payload."""
    hostile = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\u202ed"
    server.reply(Reply(hostile, chunks=20, tool_calls=[Call("fails", {"reason": hostile})]), Reply(hostile, chunks=30))
    for flags in ([], ["-v"]):
        result = run(["chat", agent, "-m", "hi", *flags])
        assert not {"\x1b", "\x07", "\u202e"} & set(result.out + result.err)
        assert "ZXZpbA" not in result.out + result.err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_console_without_unicode(server, agent, encoding):
    """Answers have question marks for what is missing, and everything of ours is ASCII."""
    server.reply(Reply(tool_calls=[Call("weather", {"city": "Ōsaka"})]), Reply("sunny ☀ in Ōsaka"))
    result = run(["chat", agent, "-v", "-m", "hi"], env={"PYTHONIOENCODING": encoding, "LANG": "C"})
    assert (result.code, result.out) == (0, "sunny ? in ?saka\n")
    assert "* weather ok" in result.err
    assert "|- chat test-model" in result.err


@pytest.mark.parametrize(
    ("locale", "ascii_only"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_ALL": "de_DE.ISO-8859-1", "LANG": "C.UTF-8"}, True),
        ({"LANG": ""}, False),
    ],
)
def test_the_locale_says_what_the_terminal_understands(server, agent, locale, ascii_only):
    """Python writes UTF-8 in the C locale, too; what we draw is ASCII there, and the answer is what was said."""
    server.reply(Reply(tool_calls=[Call("weather", {"city": "Rome"})]), Reply("grüße"))
    result = run(["chat", agent, "-v", "-m", "hi"], env={"LANG": "C.UTF-8"} | locale)
    assert (result.code, result.out) == (0, "grüße\n")
    assert ("* weather ok" in result.err, "⚙ weather ✓" in result.err) == (ascii_only, not ascii_only)
    assert ("|- chat test-model" in result.err) is ascii_only


def test_closed_streams(server, agent):
    """Input and stderr are not needed; where answers cannot be written nothing is asked at all."""
    command = ["-c", f"exec \"$HOLODECK\" chat '{agent}' -m hi $CLOSED"]
    for closed, code, out in (("<&-", 0, "hi\n"), ("2>&-", 0, "hi\n"), (">&-", 1, ""), ("1</dev/null", 1, ""), (">&- 2>&-", 1, "")):
        script = [command[0], command[1].replace("$CLOSED", closed)]
        result = run(script, program=["bash"], env={"HOLODECK": str(_holodeck())})
        assert (result.code, result.out) == (code, out)
        assert "Error" not in result.err
        if code and "2>" not in closed:
            assert result.err == "error: standard output is not open for writing: '> /dev/null' throws away what is not wanted\n"
    assert len(server.requests) == 2


def test_a_stderr_that_nobody_reads(agent):
    """Notes are lost, the answers are not."""
    for to in ("2> >(true)", "2>/dev/full"):
        result = run(["-c", f"\"$HOLODECK\" chat '{agent}' -m one -m two {to}"], program=["bash"], env={"HOLODECK": str(_holodeck())})
        assert (result.code, result.out) == (0, "one\ntwo\n")
        assert run(["-c", f"\"$HOLODECK\" chat '{agent}' -m '' {to}"], program=["bash"], env={"HOLODECK": str(_holodeck())}).code == 1


def test_answers_go_into_a_file(agent, tmp_path):
    """A regular file, appended to, gets answers and nothing else."""
    out = tmp_path / "out.txt"
    script = f"\"$HOLODECK\" chat '{agent}' -m hi >> '{out}'; \"$HOLODECK\" chat '{agent}' -m grüße >> '{out}'"
    result = run(["-c", script], program=["bash"], env={"HOLODECK": str(_holodeck())})
    assert (result.code, result.out) == (0, "")
    assert out.read_text(encoding="utf-8") == "hi\ngrüße\n"
    assert result.err.count("first token") == 2


def test_a_full_disk_is_one_line(agent):
    """An answer that cannot be written is a failure with its reason."""
    result = run(["-c", f"exec \"$HOLODECK\" chat '{agent}' -m hi > /dev/full"], program=["bash"], env={"HOLODECK": str(_holodeck())})
    assert result.code == 1
    assert "error: No space left on device\n" in result.err


def test_the_console_exporter_can_be_switched_off(server, agent, tmp_path):
    """Without the reader for people there is no footer and no tree; the answer and the tools are still there."""
    quiet = write_agent(tmp_path / "quiet", server, observability={"exporters": {"console": {"enabled": False}}})
    server.reply(*_TOOL_TURN)
    result = run(["chat", quiet, "-v"], "hi\n")
    assert result.out == "Let me look.\n\nIt has been shipped.\n"
    assert "lookup_order ✓" in result.err
    assert "trace" not in result.err


def test_console_lines_for_programs(server, tmp_path):
    """With pretty_print: false stderr has OTLP/JSON in place of footer and tree."""
    agent = write_agent(tmp_path, server, observability={"exporters": {"console": {"pretty_print": False}}})
    result = run(["chat", agent, "-v", "-m", "hi"])
    spans = [json.loads(line) for line in result.err.splitlines() if line.startswith("{")]
    names = [s["name"] for line in spans for r in line["resourceSpans"] for sc in r["scopeSpans"] for s in sc["spans"]]
    assert names == ["chat test-model", "invoke_agent support"]
    assert "first token" not in result.err


def test_times_in_the_tree(server, tmp_path):
    """include_timestamps puts wall-clock times before the tree."""
    agent = write_agent(tmp_path, server, observability={"exporters": {"console": {"include_timestamps": True}}})
    assert re.search(r"^\d\d:\d\d:\d\d\.\d{3}Z .*chat test-model", run(["chat", agent, "-v", "-m", "hi"]).err, re.MULTILINE)
