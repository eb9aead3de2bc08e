"""Names and contents of MCP servers."""

from __future__ import annotations

import re

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from holodeck.errors import ToolError
from holodeck.tools.mcp_content import offered_name, result_text


def text(words: str) -> TextContent:
    """A text part."""
    return TextContent(type="text", text=words)


@pytest.mark.parametrize("tool", ["read", "a.b/c d", "ä", "x" * 100, "", "\ud83e"])
def test_names_are_what_providers_take(tool):
    """Whatever a server calls its tool, the offered name has 1 to 64 plain characters and starts with the server's."""
    assert re.fullmatch(r"files-[A-Za-z0-9_-]{0,58}", offered_name("files", tool, ()))


def test_names_stay_apart():
    """Names that differ only in what is replaced or cut off stay different, and are the same every time."""
    first = offered_name("s", "a.b", ())
    second = offered_name("s", "a_b", {first})
    assert first == "s-a_b"
    assert re.fullmatch(r"s-a_b-[0-9a-f]{6}", second)
    assert second == offered_name("s", "a_b", {first})
    assert offered_name("s", "x" * 80 + "1", ()) != offered_name("s", "x" * 80 + "2", ())


def test_texts_are_joined_and_other_parts_described():
    """Text parts and text resources are given whole, everything else in a few words."""
    parts = [
        text("one"),
        ImageContent(type="image", data="MTIzNDU=", mimeType="image/png"),
        AudioContent(type="audio", data="MTIz", mimeType="audio/wav"),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="file:///a.txt", text="inside")),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri="file:///b.bin", blob="MQ==")),
        ResourceLink(type="resource_link", uri="file:///c", name="c"),
        text("two\ud83e"),
    ]
    assert result_text(CallToolResult(content=parts, structuredContent={"not": "shown"})).split("\n") == [
        "one",
        "[image image/png, 5 bytes]",
        "[audio audio/wav, 3 bytes]",
        "[resource file:///a.txt]",
        "inside",
        "[resource file:///b.bin of unknown type, 1 bytes]",
        "[resource file:///c]",
        "two\ufffd",
    ]


def test_structured_content_stands_in_for_text():
    """A result without text gives its structured content as JSON; one with nothing at all is empty."""
    assert result_text(CallToolResult(content=[], structuredContent={"a": 1})) == '{"a":1}'
    assert result_text(CallToolResult(content=[])) == ""


@pytest.mark.parametrize(
    ("parts", "message"), [([text("no such file")], "no such file"), ([], "the tool reported an error without a message")]
)
def test_is_error_is_an_error(parts, message):
    """A result that the server marks as an error is a failed call."""
    with pytest.raises(ToolError) as caught:
        result_text(CallToolResult(content=parts, isError=True))
    assert (caught.value.message, caught.value.error_type) == (message, "tool_error")
