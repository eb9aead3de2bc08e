"""The keyboard between prompts."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["held_keys"]

_LFLAG, _IFLAG, _CC = 3, 0, 6


@contextmanager
def held_keys() -> Iterator[None]:
    """Keep what is typed while the agent answers for the next prompt, unseen and as it was typed; Ctrl-C still interrupts.

    A prompt sets the terminal up for itself and puts it back to this.
    """
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        quiet = termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError):  # no terminal: nothing echoes
        yield
        return
    quiet[_LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    quiet[_IFLAG] &= ~termios.ICRNL
    quiet[_CC][termios.VMIN], quiet[_CC][termios.VTIME] = 1, 0
    with suppress(termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
