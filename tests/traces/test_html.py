"""The HTML page of a trace, read by a parser and by a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from holodeck.traces import EventRecord, html_page
from support.browser import dom_of, needs_chromium
from support.strangers import Page
from traces.spans import chat, record, tree, turn

_ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "small", "section", "table", "colgroup", "col", "tbody", "tr", "td"),
    *("span", "b", "svg", "rect", "details", "summary", "dl", "dt", "dd"),
}
_HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=http://evil.example/x onerror="document.title=\'owned\'">',
    "'><svg onload=document.title='owned'>",
    "</style></title></table></details><script src=http://evil.example/x.js></script>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<link rel=stylesheet href=http://evil.example/x.css><base href=http://evil.example/>",
    "<iframe src=javascript:alert(1)></iframe><a href='javascript:alert(1)'>x</a>",
    "<!-- --><![CDATA[ &lt;script&gt; \x00 \x1b[2J \u202e\u2066 \ud800",
)


class _Seen(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def _hostile():
    everywhere = {f"gen_ai.x{number}": text for number, text in enumerate(_HOSTILE)}
    names = {text: text for text in _HOSTILE}
    content = {"gen_ai.input.messages": _HOSTILE[0], "gen_ai.output.messages": _HOSTILE[1], "gen_ai.tool.call.arguments": _HOSTILE[3]}
    spans = [record(1, None, _HOSTILE[0], 0, 100, trace=_HOSTILE[1], attributes={"gen_ai.operation.name": _HOSTILE[0]})]
    for number, text in enumerate(_HOSTILE, 2):
        event = EventRecord("exception", 0, {"exception.message": text, "exception.type": text})
        options = {"attributes": {**everywhere, **names, **content, "list": list(_HOSTILE)}, "error": (text, text), "events": (event,)}
        spans.append(record(number, 1, text, 0, 50, trace=_HOSTILE[1], **options))
    return tree(*spans)


def _page(*roots, title="spans.jsonl", **options) -> str:
    return "".join(html_page(roots, title, **options))


def test_the_same_waterfall():
    """Names, durations, tokens, errors and first-token marks of each span."""
    seen = _Seen(_page(turn()))
    for text in ("invoke_agent", "support", "2.41 s", "412→38", "(300 cached)", "✗ timeout: the tool did not answer in time", "├─ ", "└─ "):
        assert text in seen.text
    assert seen.tags.count("svg") == 5
    assert seen.attributes.count(("class", "m")) == 2


def test_it_needs_nothing_else():
    """No script, no address, and a policy that allows the page's own style sheet only."""
    page = _page(turn())
    seen = _Seen(page)
    assert set(seen.tags) <= _ALLOWED
    assert not [name for name, _ in seen.attributes if name in ("href", "src", "style", "srcset", "action") or name.startswith("on")]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; base-uri 'none'; form-action 'none'", policy[1])
    assert "url(" not in page


def test_content_is_shown_only_if_asked_for():
    """Captured prompts are on no part of the page without it."""
    root = tree(chat(1, None, 0, 100, input__messages='[{"role":"user","parts":[{"type":"text","content":"the secret plan"}]}]'))
    assert "the secret plan" in _page(root)
    assert "the secret plan" not in _page(root, content=False)


def test_hostile_text_stays_text():
    """No element and no attribute comes of what stands on a span, in a title, or in a name."""
    seen = _Seen(_page(_hostile(), title=_HOSTILE[3]))
    assert set(seen.tags) <= _ALLOWED
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("href", "src", "style")]
    for text in _HOSTILE[:3]:
        assert text in seen.text
    assert not re.search("[\x00\x1b\u202e\u2066]", seen.text)


def test_a_long_value_is_cut():
    """A page of a megabyte for one span would help nobody."""
    assert len(_page(tree(record(1, None, "x", 0, 1, attributes={"a": "y" * 1_000_000})))) < 40_000


@needs_chromium
def test_a_browser_runs_nothing_and_asks_nobody(tmp_path):
    """Chromium shows the hostile texts, runs no script, and sends nothing to where they point."""
    page = tmp_path / "page.html"
    page.write_text(_page(_hostile(), turn()), encoding="utf-8", errors="replace")
    with Page(200, b"document.title='owned'") as proxy:
        dom = dom_of(page, proxy=f"127.0.0.1:{proxy.port}")
        assert not [path for _, path in proxy.requests if "evil" in path]
    seen = _Seen(dom)
    assert "<title>Traces: spans.jsonl</title>" in dom
    assert set(seen.tags) <= _ALLOWED
    assert seen.tags.count("svg") == len(_HOSTILE) + 1 + 5
    assert _HOSTILE[0] in seen.text


@needs_chromium
def test_the_browser_test_can_fail(tmp_path):
    """The same browser runs the same script where nothing keeps it from doing so, and asks the same server."""
    page = tmp_path / "page.html"
    page.write_text(f"<title>x</title>{_HOSTILE[0]}<img src=http://evil.example/x>", encoding="utf-8")
    with Page(200) as proxy:
        dom = dom_of(page, proxy=f"127.0.0.1:{proxy.port}")
        assert [path for _, path in proxy.requests if "evil" in path]
    assert "<title>owned</title>" in dom


@pytest.mark.parametrize("count", [2000])
def test_depth_needs_no_stack(count):
    """A chain of thousands of spans is a page like any other."""
    chain = [record(1, None, "r", 0, 1), *(record(n, n - 1, "s", 0, 1) for n in range(2, count))]
    assert _page(tree(*chain)).count('<tr class="s') == count - 1
