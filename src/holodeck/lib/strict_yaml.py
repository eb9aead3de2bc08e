"""Text → :class:`~holodeck.lib.document.Document`, with a YAML that holds no surprises.

Plain scalars follow the core schema of YAML 1.2: ``no``, ``on``, ``12:30``, ``0123`` and dates are text. Tags, merge keys, several
documents, duplicate keys, deep nesting and aliases that multiply are refused. The event stream is looked at first, in a loop, so that
no input can exhaust the stack or the memory.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from holodeck.errors import AgentFileError
from holodeck.lib.document import MAX_FILE_BYTES, Document, read_text
from holodeck.lib.problems import KeyPath, dotted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["MAX_ALIASED_NODES", "MAX_DEPTH", "core_scalar", "parse_yaml", "read_yaml"]

MAX_DEPTH: Final = 50
"""Deepest nesting of mappings and lists."""
MAX_ALIASED_NODES: Final = 1_000
"""Most values that all aliases of a file together may stand for."""

# libyaml is ten times faster and is in the wheels; without it the pure Python parser reads the same language.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL: Final = re.compile(r"null|Null|NULL|~|")
_BOOL: Final = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)|(0o[0-7]+)|(0x[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LINE_BREAKS: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_LONGEST_NUMBER: Final = 400
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"

Event = Any
"""A PyYAML event; the stubs type neither its marks nor its values."""

_OPENS: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSES: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def read_yaml(path: Path, *, limit: int = MAX_FILE_BYTES) -> Document:
    """The one mapping that the file at ``path`` holds, which is at most ``limit`` bytes long.

    Raises:
        AgentFileError: It cannot be read, is too large, is not text, or is not strict YAML; names file, line and key.
    """
    shown = one_line(str(path), 300)
    try:
        text = read_text(path, limit=limit)
    except ValueError as error:
        raise AgentFileError(str(error), file=shown) from error
    return parse_yaml(text, shown)


def parse_yaml(text: str, file: str, *, loader: Any = _LOADER) -> Document:
    """The one mapping that ``text`` holds.

    Args:
        text: YAML.
        file: Path for messages.
        loader: A PyYAML loader class; only its scanner and parser are used.

    Raises:
        AgentFileError: The text is not YAML, or not the strict YAML of agent files; names line and key.
    """
    events = _Reader(text, file).events(loader)
    if not events:
        raise AgentFileError("the file is empty: it must be a mapping of keys to values ('key: value')", file=file)
    if not isinstance(events[0], yaml.MappingStartEvent):
        line = events[0].start_mark.line + 1
        raise AgentFileError("the file must be a mapping of keys to values ('key: value')", file=file, line=line)
    composer = _Composer(events, file)
    data, _ = composer.node(0, (), 1)
    return Document(file, data, composer.lines, composer.written)


def core_scalar(text: str) -> Any:
    """What a plain scalar means in the core schema of YAML 1.2; numbers too long to be one become infinite."""
    if _NULL.fullmatch(text):
        return None
    if found := _BOOL.fullmatch(text):
        return found.group(1) is not None
    if len(text) > _LONGEST_NUMBER:
        return math.inf if _INT.fullmatch(text) or _FLOAT.fullmatch(text) else text
    if found := _INT.fullmatch(text):
        return int(text, 8 if found.group(1) else 16 if found.group(2) else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "", 1)) if _INFINITE.fullmatch(text) else text


class _Reader:
    """Reads the event stream flat and refuses what an agent file never needs."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._depth = self._documents = 0

    def events(self, loader: Any) -> list[Event]:
        try:
            return [event for event in yaml.parse(self._text, Loader=loader) if self._is_content(event)]
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except yaml.YAMLError as error:
            raise AgentFileError("not valid YAML", file=self._file) from error

    def _is_content(self, event: Event) -> bool:
        self._documents += isinstance(event, yaml.DocumentStartEvent)
        self._depth += isinstance(event, _OPENS) - isinstance(event, _CLOSES)
        if self._documents > 1:
            raise self._error(event, "a second document starts here ('---'): one document a file")
        if self._depth > MAX_DEPTH:
            raise self._error(event, _TOO_DEEP)
        if getattr(event, "tag", None) is not None:
            raise self._error(event, f"the tag {one_line(event.tag, 40)} is not supported: remove it, and quote what is text")
        return isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent)

    def _error(self, event: Event, message: str) -> AgentFileError:
        return AgentFileError(message, file=self._file, line=event.start_mark.line + 1)

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> AgentFileError:
        mark, context = error.problem_mark, error.context_mark
        if mark is None:
            return AgentFileError(f"not valid YAML: {error.problem}", file=self._file)
        lines = _LINE_BREAKS.split(self._text)
        line = lines[mark.line] if mark.line < len(lines) else ""
        message = _advice(error.problem or "", line, mark.column)
        if context is not None and context.line != mark.line:
            message += f" (in what starts at line {context.line + 1})"
        return AgentFileError(message, file=self._file, line=min(mark.line + 1, max(len(lines), 1)))


def _advice(problem: str, line: str, column: int) -> str:
    """What is wrong at ``column`` of ``line``, and what to write instead."""
    if "nesting depth" in problem:  # libyaml's own limit, which it reaches first where it looks ahead
        return _TOO_DEEP
    if line[column : column + 1] == "\t":
        return "a tab cannot indent or separate in YAML: use spaces"
    if line[max(column - 1, 0) : column + 1] == "${":
        return 'inside {…} and […] a ${VAR} has to be quoted: write "${VAR}"'
    if "mapping values are not allowed" in problem:
        return "not valid YAML: quote a value that has ': ' in it, or check the indentation"
    if "cannot start any token" in problem:
        return "not valid YAML: a value cannot start with this character: quote it"
    return f"not valid YAML: {one_line(problem)}"


class _Composer:
    """Turns events into values; recursion is bounded by MAX_DEPTH, replays of anchors by MAX_ALIASED_NODES."""

    def __init__(self, events: list[Event], file: str) -> None:
        self._events, self._file = events, file
        self._anchors: dict[str, int] = {}
        self._aliased = self._replays = 0
        self.lines: dict[KeyPath, int] = {}
        self.written: dict[KeyPath, str] = {}

    def node(self, index: int, path: KeyPath, depth: int) -> tuple[Any, int]:
        """The value whose first event is at ``index``, and the index after its last event."""
        event = self._events[index]
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, depth), index + 1
        self._count(event, path, depth)
        anchor = event.anchor
        self._anchors.pop(anchor, None)
        result = self._kind(event)(index, path, depth)
        if anchor is not None:
            self._anchors[anchor] = index
        return result

    def _kind(self, event: Event) -> Callable[[int, KeyPath, int], tuple[Any, int]]:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping
        return self._sequence if isinstance(event, yaml.SequenceStartEvent) else self._scalar

    def _count(self, event: Event, path: KeyPath, depth: int) -> None:
        self._aliased += self._replays > 0
        if self._aliased > MAX_ALIASED_NODES:
            raise self._error(event, path, f"aliases stand for more than {MAX_ALIASED_NODES:,} values: write them out")
        if depth > MAX_DEPTH + 1:
            raise self._error(event, path, _TOO_DEEP)

    def _alias(self, event: Event, path: KeyPath, depth: int) -> Any:
        if event.anchor not in self._anchors:
            name = one_line(str(event.anchor), 40)
            raise self._error(event, path, f"the alias *{name} stands for nothing defined before it (or for itself): write the value out")
        self._replays += 1
        value, _ = self.node(self._anchors[event.anchor], path, depth)
        self._replays -= 1
        return value

    def _mapping(self, index: int, path: KeyPath, depth: int) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        index += 1
        while not isinstance(event := self._events[index], yaml.MappingEndEvent):
            key = self._key(event, path)
            here = (*path, key)
            line = event.start_mark.line + 1
            if key in result:
                raise self._error(event, here, f"the key stands here twice, in lines {self.lines[here]} and {line}: remove one")
            self.lines[here] = line
            result[key], index = self.node(index + 1, here, depth + 1)
        return result, index + 1

    def _key(self, event: Event, path: KeyPath) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._error(event, path, "a key must be plain text (a value with {…} or […] has to be quoted)")
        if event.value == "<<" and event.implicit[0]:
            raise self._error(event, path, "merge keys ('<<') are not supported: write the keys out")
        return str(event.value)

    def _sequence(self, index: int, path: KeyPath, depth: int) -> tuple[list[Any], int]:
        result: list[Any] = []
        index += 1
        while not isinstance(event := self._events[index], yaml.SequenceEndEvent):
            here = (*path, len(result))
            self.lines[here] = event.start_mark.line + 1
            value, index = self.node(index, here, depth + 1)
            result.append(value)
        return result, index + 1

    def _scalar(self, index: int, path: KeyPath, _depth: int) -> tuple[Any, int]:
        event = self._events[index]
        value = core_scalar(event.value) if event.implicit[0] else event.value
        if not isinstance(value, str):
            self.written[path] = event.value
        return value, index + 1

    def _error(self, event: Event, path: KeyPath, message: str) -> AgentFileError:
        return AgentFileError(message, file=self._file, line=event.start_mark.line + 1, key=dotted(path))
