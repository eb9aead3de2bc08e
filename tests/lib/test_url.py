"""What is a URL of a server, and what is none."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holodeck.lib.url import has_scheme, split_url


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1", 8000),
        ("https://api.example.com/v1/", "api.example.com", None),
        ("HTTP://Host:80", "host", 80),
        ("http://[::1]:4318/v1/traces", "::1", 4318),
        ("http://[fe80::1%25eth0]/", "fe80::1%25eth0", None),
        ("http://my_service:11434", "my_service", 11434),
        ("http://user:p%40ss@host:1/x?y=z#w", "host", 1),
        ("http://host.", "host.", None),
        ("http://host:/v1", "host", None),
        ("http://10.1/", "10.1", None),
        ("https://j\u00e4ger.example/v1", "j\u00e4ger.example", None),
        ("http://xn--jger-loa.example", "xn--jger-loa.example", None),
    ],
)
def test_what_a_client_can_use_is_taken_apart(text: str, host: str, port: int | None) -> None:
    """Names, addresses, ports, credentials and letters beyond ASCII."""
    parts = split_url(text)
    assert (parts.hostname, parts.port) == (host, port)


BAD = {
    "": "needs a scheme",
    "hunter2@host:80": "needs a scheme",
    " http://hunter2@host": "needs a scheme",
    "ftp://hunter2@host": "the scheme ftp:// is not supported: use http:// or https://",
    "http://": "has no host",
    "http:///hunter2": "has no host",
    "http://:80/hunter2": "has no host",
    "http://hunter2@/": "has no host",
    "http://hunter2@host:0": "the port 0",
    "http://127.0.0.1:99999/hunter2": "port is not a number from 1 to 65535",
    "http://host:abc/hunter2": "port is not a number",
    "http://host:-1/hunter2": "port is not a number",
    "http://u:hunter2@host:80:90/": "port is not a number",
    "http://::1/hunter2": "port is not a number",
    "http://[::1/hunter2": "is not a URL",
    "http://[::1]hunter2/": "cannot be looked up",
    "http://[hunter2]/": "host",  # which sentence depends on the Python
    "http://1.2.3.999/hunter2": "cannot be looked up",
    "http://01.2.3.4/hunter2": "cannot be looked up",
    "http://a..b/hunter2": "cannot be looked up",
    f"http://{'a' * 64}/hunter2": "cannot be looked up",
    f"http://{'a.' * 127}b/hunter2": "cannot be looked up",
    "http://a,b/hunter2": "cannot be looked up",
    "http://h%41/hunter2": "cannot be looked up",
    "http://\u2603.com/hunter2": "cannot be looked up",
    f"http://{chr(0xE4) * 63}/hunter2": "cannot be looked up",
    "http://host/hunter2 x": "white space or controls",
    "http://host/hunter2\n": "white space or controls",
    "http://ho\tst/hunter2": "white space or controls",
    "http://host\x00/hunter2": "white space or controls",
    "http://host/hunter2\u3000": "white space or controls",
    "http:\\\\host\\hunter2": "needs a scheme",
    "http://host\\hunter2": "white space or controls",
}


@pytest.mark.parametrize("text", BAD)
def test_what_no_client_can_use_is_refused_with_the_fix(text: str) -> None:
    """Each fault has a sentence that says what to do, and leaves the text out: it may hold a password."""
    with pytest.raises(ValueError, match=r"write|use|remove") as caught:
        split_url(text)
    assert BAD[text] in str(caught.value)
    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r}"


@given(st.text(alphabet=st.one_of(st.sampled_from("ab1.:[]@/%#?-_ \\\u00e4\u00aa\u2603\u0661"), st.characters()), max_size=20))
@example("[::1]")
@example("x\u00aa.com")
def test_what_is_taken_is_a_url_for_the_clients_too(rest: str) -> None:
    """Nothing that is taken here fails later where a client reads it, or where a host is looked up."""
    try:
        split_url(f"http://{rest}")
    except ValueError:
        return
    url = httpx.URL(f"http://{rest}")
    assert url.host
    url.raw_host.decode("ascii").encode("idna")


@pytest.mark.parametrize(("text", "has"), [("http://x", True), ("unix:///x", True), ("host:80", False), ("://x", False), ("1a://x", False)])
def test_any_scheme_is_one(text: str, has: bool) -> None:
    """Whether there is a scheme is asked apart from which: the advice differs."""
    assert has_scheme(text) is has
