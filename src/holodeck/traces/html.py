"""Traces as one HTML page that needs nothing else: no script, no font, no image, no address that is called.

Whatever stands on a span is text here, never markup: all of it is escaped, controls and marks that turn the direction of writing are
taken out, and a content security policy that allows this page's own style sheet and nothing else holds even where that failed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Final

from holodeck.lib.validation import terminal_safe
from holodeck.traces import names
from holodeck.traces.bars import Axis
from holodeck.traces.cells import clean
from holodeck.traces.content import content_of
from holodeck.traces.numbers import format_when
from holodeck.traces.records import SpanRecord
from holodeck.traces.rows import Row, duration_of, rows_of
from holodeck.traces.tree import Node
from holodeck.traces.waterfall import error_of

__all__ = ["html_page"]

_LEVELS: Final = 40
"""Levels of a tree that are indented; deeper ones say how much deeper they are."""
_CELLS: Final = 125  # of eight parts each: a bar is drawn on 1,000
_MOST: Final = 20_000
"""Characters of one value that are shown."""

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --bar: #3b82f6; --bad: #dc2626; --mark: #111; --good: #15803d; }
@media (prefers-color-scheme: dark) { :root { --mark: #fff; --bad: #f87171; --good: #4ade80; } }
body { font: 14px/1.5 ui-monospace, Menlo, Consolas, monospace; margin: 1.5rem; }
h1 { font-size: 1rem; } h2 { font-size: 1rem; margin: 2rem 0 .25rem; overflow-wrap: anywhere; }
h2 small, .t, .dim { opacity: .6; font-weight: normal; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
col.n { width: 34%; } col.d { width: 6rem; } col.k { width: 15rem; }
td { padding: 0 .75rem 0 0; vertical-align: top; overflow: hidden; white-space: pre; text-overflow: ellipsis; }
tr.s:hover { background: var(--line); }
td.d { text-align: right; } td.k { color: var(--good); } .o { opacity: .75; }
svg { display: block; width: 100%; height: 1em; margin-top: .25em; } rect { fill: var(--bar); } rect.m { fill: var(--mark); }
tr.e rect:not(.m) { fill: var(--bad); } .x { color: var(--bad); white-space: pre-wrap; overflow-wrap: anywhere; }
details { white-space: pre-wrap; overflow-wrap: anywhere; } summary { cursor: pointer; opacity: .6; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0 0 .5rem 1rem; } dt { opacity: .6; } dd { margin: 0; }
@media (max-width: 700px) { col.b, td.b { display: none; width: 0; } col.n { width: auto; } dl { grid-template-columns: 1fr; } }
"""
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"


def html_page(roots: Iterable[Node], title: str, *, content: bool = True) -> Iterator[str]:
    """The page in pieces, to be written one after the other.

    Args:
        roots: The trees; each is forgotten once it is written.
        title: What the page is about, for example the file's name.
        content: Shows prompts, answers, arguments and results that were captured.
    """
    shown = _text(title)
    yield (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Traces: {shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{shown}</h1>\n"
    )
    for root in roots:
        yield from _trace(root, content=content)
    yield "</body>\n</html>\n"


def _trace(root: Node, *, content: bool) -> Iterator[str]:
    rows = rows_of(root, _LEVELS, ascii_only=False)
    axis = Axis.over((row.span for row in rows), _CELLS)
    span = root.span
    facts = [duration_of(span, ascii_only=False), format_when(span.start).strip(), f"trace {clean(span.trace_id) or 'unknown'}"]
    facts += ["parent missing"] if root.orphan else []
    yield f"<section>\n<h2>{_text(clean(span.name) or '(unnamed)')} <small>{_text(' · '.join(facts))}</small></h2>\n"
    yield '<table><colgroup><col class="n"><col class="b"><col class="d"><col class="k"></colgroup>\n'
    for row in rows:
        yield _row(row, axis)
        yield from _below(row, content=content)
    yield "</table>\n</section>\n"


def _row(row: Row, axis: Axis) -> str:
    operation = f'<span class="o">{_text(row.operation)}</span>' if row.operation else ""
    name = f'<span class="t">{_text(row.guides)}{_text(row.cut)}</span>{operation}<b>{_text(row.name)}</b>'
    tokens = f"{row.input}→{row.output}{row.cached}" if row.input else ""
    failed = " e" if row.span.failed else ""
    return (
        f'<tr class="s{failed}"><td class="n">{name}</td><td class="b">{_bar(row.span, axis)}</td>'
        f'<td class="d">{_text(row.duration)}</td><td class="k">{_text(tokens)}</td></tr>\n'
    )


def _bar(span: SpanRecord, axis: Axis) -> str:
    if not span.start:
        return ""
    begin, mark = axis.eighths(span.start), axis.mark(span)
    begin = min(begin, _CELLS * 8 - 2)
    width = max(axis.eighths(span.end) - begin, 2)
    first = f'<rect class="m" x="{mark}" y="0" width="3" height="10"/>' if mark is not None else ""
    parts = f'<rect x="{begin}" y="2" width="{width}" height="6"/>{first}'
    return f'<svg viewBox="0 0 {_CELLS * 8} 10" preserveAspectRatio="none" aria-hidden="true">{parts}</svg>'


def _below(row: Row, *, content: bool) -> Iterator[str]:
    guide = f'<span class="t">{_text(row.below)}</span>'
    if row.span.failed:
        yield f'<tr><td colspan="4">{guide}<span class="x">✗ {_text(clean(error_of(row.span)))}</span></td></tr>\n'
    fields = list(content_of(row.span)) if content else []
    if fields:
        yield f'<tr><td colspan="4"><details open><summary>{guide}content</summary>{_fields(fields)}</details></td></tr>\n'
    attributes = [(key, _value(value)) for key, value in row.span.attributes.items() if not names.holds_content(key)]
    if attributes:
        yield f'<tr><td colspan="4"><details><summary>{guide}attributes</summary>{_fields(attributes)}</details></td></tr>\n'


def _fields(fields: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f'<dt>{_text(clean(key))}</dt><dd dir="auto">{_text(value)}</dd>' for key, value in fields) + "</dl>"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda odd: f"<{type(odd).__name__}>")
    except (ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def _text(text: str) -> str:
    """Text that is nothing but text, wherever it stands in the page."""
    cut = text if len(text) <= _MOST else text[:_MOST] + "…"
    return escape(terminal_safe(cut), quote=True)
