from __future__ import annotations

import pytest

from holodeck.config.headers import clean_headers
from holodeck.errors import SettingError


def test_values_are_trimmed_and_kept() -> None:
    """Spaces, quotes, ``=`` and a newline at the end are fine; names keep their case for HTTP."""
    pairs = [(" Authorization ", "Bearer a=b \n"), ("x-q", '"quoted"'), ("x-empty", "")]
    assert clean_headers(pairs, "http/protobuf", SettingError) == {"Authorization": "Bearer a=b", "x-q": '"quoted"', "x-empty": ""}


def test_grpc_names_are_in_lower_case() -> None:
    """Metadata of gRPC has lower-case keys."""
    assert clean_headers([("X-Key", "v")], "grpc", SettingError) == {"x-key": "v"}


@pytest.mark.parametrize("value", ["s3cret\nx: y", "s3cret\rx", "a\x00s3cret", "s3crét", "s3cret\x7fx"])
def test_values_that_no_header_can_carry_are_refused_unseen(value: str) -> None:
    """Line ends and controls inside are refused, and the value is not repeated."""
    with pytest.raises(SettingError, match="header 2 has a line end") as caught:
        clean_headers([("a", "b"), ("k", value)], "http/protobuf", SettingError)
    assert "s3cr" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "k:", "é", "k\nx", "(k)"])
def test_names_that_are_none_are_refused(name: str) -> None:
    """A header name is a token of RFC 7230; what is not is counted, not shown."""
    with pytest.raises(SettingError, match="name of header 1 is not a header name"):
        clean_headers([(name, "v")], "http/protobuf", SettingError)


@pytest.mark.parametrize("name", ["k!", "grpc-timeout", "x-bin"])
def test_names_that_grpc_cannot_send_are_refused(name: str) -> None:
    """For gRPC there are fewer characters, and reserved names."""
    assert clean_headers([(name, "v")], "http/protobuf", SettingError) == {name: "v"}
    with pytest.raises(SettingError, match="cannot be sent with gRPC"):
        clean_headers([(name, "v")], "grpc", SettingError)
