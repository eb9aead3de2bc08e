"""Messages of MCP servers."""

from __future__ import annotations

import pytest

from holodeck.tools.mcp_message import DIED, FAULT, NOT_MCP, fault, fault_type, read_message


def test_messages_are_read_as_they_are():
    """A valid message is what the library makes of it."""
    assert read_message(b'{"jsonrpc": "2.0", "id": 3, "result": {"a": 1}}').root.result == {"a": 1}
    assert read_message(b'{"jsonrpc": "2.0", "method": "ping", "id": 3}').root.method == "ping"


def test_what_utf8_cannot_carry_is_replaced():
    """Lone surrogates, which the library refuses, and bytes that are not UTF-8 become U+FFFD."""
    message = read_message(rb'{"jsonrpc": "2.0", "id": 3, "result": {"a\ud83e": "\ud83e\udd16 \ud83e"}}')
    assert message.root.result == {"a\ufffd": "\U0001f916 \ufffd"}
    assert read_message(b'{"jsonrpc": "2.0", "id": 3, "result": {"a": "caf\xe9"}}').root.result == {"a": "caf\ufffd"}


@pytest.mark.parametrize("rest", ['"result": null', '"result": "x"', '"error": {"code": "x", "message": 5}', '"nothing": 1'])
def test_an_answer_that_is_not_mcp_is_an_error_answer(rest):
    """Whoever waits for it is told at once."""
    error = read_message(f'{{"jsonrpc": "2.0", "id": 3, {rest}}}'.encode()).root
    assert (error.id, error.error.code, fault_type(error.error.data)) == (3, FAULT, NOT_MCP)


def test_an_answer_belongs_to_the_request_it_came_for():
    """Where the transport knows the request, an answer with another id, or none, is its answer."""
    assert read_message(b'{"jsonrpc": "2.0", "id": 9, "result": {}}', 3).root.id == 3
    error = read_message(b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "why"}}', 3).root
    assert (error.id, error.error.message) == (3, "why")


@pytest.mark.parametrize("line", [b"", b"hello", b"[]", b"null", b"{}", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_message_is_refused(line):
    """Banners and the like answer nothing."""
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's and json's own
        read_message(line)


@pytest.mark.parametrize("data", [None, "x", {}, {"error_type": 5}, {"error_type": "anything"}, {"status": 404}])
def test_a_server_cannot_forge_a_fault(data):
    """Only what we write ourselves counts as a fault of the way to the server."""
    assert fault_type(data) is None
    assert [fault_type(fault("x", kind)["data"]) for kind in ("404", DIED, NOT_MCP)] == ["404", DIED, NOT_MCP]
