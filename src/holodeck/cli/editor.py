"""The line editor: keys, history, suggestions, completion."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Final, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ConditionalCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, TabsProcessor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from holodeck.cli.slash import is_command

__all__ = ["Interrupt", "SteadyOutput", "editing_keys", "editing_mode", "input_rows", "make_editor"]

_BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_STYLE: Final = Style.from_dict({"completion-menu.meta.completion": "noinherit", "auto-suggestion": "ansibrightblack"})
_INPUTRC: Final = re.compile(r"^\s*set\s+editing-mode\s+(\w+)", re.MULTILINE)


_TAB: Final = 8
"""Cells between the stops of a tab that was pasted."""
_EARLY: Final = 0.5
"""Seconds in which what was typed before there was a prompt comes in: the terminal had made a line feed of Enter then."""


class Interrupt(Exception):
    """Ctrl-C at a prompt that is asked once; a ``KeyboardInterrupt`` would not stop at the task that it is raised in."""


class SteadyOutput(Vt100_Output):
    """A terminal that is drawn to in one go while ``held``, and that is asked nothing: an answer could come when nobody reads it."""

    held = False

    @property
    def responds_to_cpr(self) -> bool:
        """The cursor's place is not asked for."""
        return False

    def flush(self) -> None:
        """Write what has been drawn, save while the rest is to come."""
        if not self.held:
            super().flush()

    def disable_bracketed_paste(self) -> None:
        """Leave it on while the prompt is only taken away and drawn again: a paste in between would be taken for keys."""
        if not self.held:
            super().disable_bracketed_paste()

    @classmethod
    def of(cls, stdout: TextIO) -> SteadyOutput:
        """The terminal behind ``stdout``."""

        def size() -> Size:
            try:
                columns, rows = os.get_terminal_size(stdout.fileno())
            except (OSError, ValueError):
                columns, rows = 80, 24
            return Size(rows=rows or 24, columns=columns or 80)

        return cls(stdout, size, term=os.environ.get("TERM"), enable_cpr=False)


class _Harmless(Processor):
    """Shows what would turn the direction of the text around as a character of its own."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One character for one, so that the cursor keeps its place."""
        fragments = transformation_input.fragments
        if not any(_BIDI.search(fragment[1]) for fragment in fragments):
            return Transformation(fragments)
        shown: StyleAndTextTuples = [(f[0], _BIDI.sub("\ufffd", f[1])) for f in explode_text_fragments(fragments)]
        return Transformation(shown)


def editing_mode(environ: Mapping[str, str]) -> EditingMode:
    """``HOLODECK_EDITING_MODE=vi|emacs``, else what readline's ``inputrc`` says, else Emacs keys."""
    chosen = environ.get("HOLODECK_EDITING_MODE", "").strip().lower()
    if not chosen:
        try:
            inputrc = Path(environ.get("INPUTRC") or Path.home() / ".inputrc").read_text(encoding="utf-8", errors="replace")
        except (OSError, RuntimeError):
            inputrc = ""
        chosen = next(reversed(_INPUTRC.findall(inputrc)), "").lower()
    return EditingMode.VI if chosen == "vi" else EditingMode.EMACS


def make_editor(
    message: Callable[[], StyleAndTextTuples],
    output: SteadyOutput,
    *,
    history: History,
    completer: Completer,
    keys: KeyBindings,
    asking: Callable[[], bool],
) -> PromptSession[str]:
    """A prompt with everything that belongs to editing.

    Args:
        message: What stands before the input; lines above it included.
        output: The terminal.
        history: What was typed before.
        completer: What Tab offers.
        keys: Keys on top of the usual ones.
        asking: A question is open: nothing is suggested or completed.
    """
    session: PromptSession[str] = PromptSession(
        message,
        output=output,
        history=history,
        completer=ConditionalCompleter(completer, Condition(lambda: not asking())),
        auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), Condition(lambda: not asking())),
        complete_while_typing=Condition(lambda: not asking() and _completes(session.default_buffer.document)),
        complete_in_thread=False,
        key_bindings=keys,
        editing_mode=editing_mode(os.environ),
        input_processors=[_Harmless(), TabsProcessor(tabstop=_TAB, char1=" ", char2=" ")],
        prompt_continuation="  ",
        interrupt_exception=Interrupt,
        erase_when_done=True,
        enable_suspend=True,
        style=_STYLE,
        reserve_space_for_menu=6,
    )
    return session


def _completes(document: Document) -> bool:
    return is_command(document.text) and document.line_count == 1 and document.is_cursor_at_the_end


def editing_keys() -> KeyBindings:
    """Alt-Enter and Ctrl-J add a line; Tab takes what is offered alone, and asks what may follow it."""
    keys = KeyBindings()
    begun = monotonic()

    @keys.add("tab", filter=Condition(lambda: len(_offered(get_app().current_buffer)) == 1))
    def take(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.apply_completion(_offered(buffer)[0])
        buffer.start_completion()

    @keys.add("escape", "enter")
    def add_line(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-j")
    def line_feed(event: KeyPressEvent) -> None:
        if monotonic() < begun + _EARLY:
            event.current_buffer.validate_and_handle()
        else:
            add_line(event)

    return keys


def _offered(buffer: Buffer) -> list[Completion]:
    """The first two of what can stand at the cursor; asked now, since Tab may come before a menu does. Nothing while one goes round."""
    if buffer.complete_state is not None and buffer.complete_state.complete_index is not None:
        return []
    return list(islice(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)), 2))


def input_rows(session: PromptSession[Any], columns: int) -> int:
    """Rows that the input and its menu take."""
    buffer = session.default_buffer
    rows = sum(1 + (get_cwidth(line.expandtabs(_TAB)) + 2) // max(columns, 1) for line in buffer.document.lines)
    menu = buffer.complete_state is not None or buffer.complete_while_typing()
    return max(rows, int(session.reserve_space_for_menu) if menu else 0)
