"""The entry point: which command runs, and what the exit code says.

* 0: all went well.
* 1: a turn failed (with ``-m`` or piped input), standard output cannot be written, or something that should not happen did.
* 2: the configuration or the command line is not usable.
* 128 + n: signal n ended it: 130 SIGINT, 143 SIGTERM, 129 SIGHUP.

A reader that goes away (``holodeck … | head -1``) has what it wanted: that is 0.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

import click

from holodeck.cli.lazy import LazyCommand, LazyGroup, ReaderGone
from holodeck.errors import ConfigError, HoloDeckError, Interrupted, Terminated
from holodeck.version import __version__

__all__ = ["COMMANDS", "cli", "main", "run"]

COMMANDS = {
    "chat": LazyCommand("holodeck.cli.chat_command:chat", "Talk to an agent."),
    "test": LazyCommand("holodeck.cli.test_command:test", "Run an agent's test cases."),
    "trace": LazyCommand("holodeck.cli.trace_command:trace", "Show, list and compare traces; send what waits."),
    "doctor": LazyCommand("holodeck.cli.doctor_command:doctor", "Check an agent, its model, and the way to the collector."),
    "init": LazyCommand("holodeck.cli.init_command:init", "Write a small agent that runs at once."),
    "schema": LazyCommand(
        "holodeck.cli.schema_command:schema", "Print the JSON Schema of agent files, of files of test cases, or of scripts."
    ),
    "models": LazyCommand("holodeck.cli.models_command:models", "List and fetch models that run on this machine."),
}
"""Every command; what is listed here costs nothing until it is used."""

_CLOSED = "standard output is not open for writing: '> /dev/null' throws away what is not wanted"
_SIGNALLED = 128
"""Codes above it say which signal ended the command."""
_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.command(cls=LazyGroup, table=COMMANDS, context_settings=_CONTEXT, no_args_is_help=True)
@click.version_option(__version__, prog_name="holodeck")
def cli() -> None:
    """Talk to agents that are YAML files, and see what they did: every turn is an OpenTelemetry trace."""


def main() -> NoReturn:
    """Run the command that the command line asks for, and end the process."""
    writable = _can_be_written(1)
    _fill_closed_streams()
    _end_on_signals()
    _leave(run(sys.argv[1:]) if writable else _say(_CLOSED, 1))


def run(arguments: Sequence[str]) -> int:
    """Run a command and say its exit code; whatever goes wrong is one line on stderr."""
    state = {"verbose": False}
    try:
        code = cli.main(list(arguments), prog_name="holodeck", standalone_mode=False, obj=state)
        if isinstance(code, int) and code > _SIGNALLED:
            return code  # whatever became of the output: with a closed terminal nothing can be written any more
        if sys.stdout not in (None, sys.stderr):  # notes that nobody reads are no failure
            sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        _forget(1)
        return 0
    except Exception as error:  # noqa: BLE001 - the last place where an error can become a line
        return _explain(error, verbose=state["verbose"])
    except (KeyboardInterrupt, SystemExit) as stop:
        return _code_of(stop)
    return code if isinstance(code, int) else 0


def _code_of(stop: BaseException) -> int:
    if isinstance(stop, KeyboardInterrupt):
        return _SIGNALLED + signal.SIGINT
    code = getattr(stop, "code", None)
    return code if isinstance(code, int) else int(code is not None)


def _explain(error: Exception, *, verbose: bool) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return 2
    if isinstance(error, click.Abort):
        return _SIGNALLED + signal.SIGINT
    if isinstance(error, click.ClickException):
        return _say(_with_hint(error), 2 if isinstance(error, click.UsageError) else 1)
    if isinstance(error, HoloDeckError):
        return _say(error.message if hasattr(error, "message") else str(error), 2 if isinstance(error, ConfigError) else 1)
    return _unexpected(error, verbose=verbose)


def _with_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return error.format_message() + (f" (see: {context.command_path} --help)" if context else "")


def _unexpected(error: Exception, *, verbose: bool) -> int:
    if verbose:
        import traceback  # noqa: PLC0415 - only a failure needs it

        _write("".join(traceback.format_exception(error)))
        return 1
    if isinstance(error, OSError) and error.strerror:  # a full disk is no fault of ours
        return _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"{what} (run 'holodeck chat' with -v for the traceback, and please report it)", 1)


def _say(message: str, code: int) -> int:
    _write("error: " + " ".join(message.split()) + "\n")
    return code


def _write(text: str) -> None:
    from holodeck.lib.validation import terminal_safe  # noqa: PLC0415 - only a failure needs it

    if sys.stderr is None:
        return
    with suppress(OSError, ValueError):
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(terminal_safe(text).encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


def _can_be_written(descriptor: int) -> bool:
    """Whether it is open, and for writing: a run whose answers go nowhere must not claim that all went well."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


def _fill_closed_streams() -> None:
    """A standard stream that was closed by whoever started us leads nowhere: else the next file that is opened would take its place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _end_on_signals() -> None:
    """Let signals unwind the stack, so that what was started is stopped; one that is ignored stays so (``nohup``).

    SIGINT, too: with Python's own handler an event loop would wait for the step that it is in, and that may be a tool file's import.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise Interrupted if number == signal.SIGINT else Terminated(_SIGNALLED + number)


def _forget(descriptor: int) -> None:
    """Nobody reads any more, or the disk is full: what is still buffered goes nowhere, without a complaint."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def _leave(code: int) -> NoReturn:
    streams: list[tuple[int, Any]] = [(number, stream) for number, stream in ((1, sys.stdout), (2, sys.stderr)) if stream is not None]
    for descriptor, stream in streams:
        try:
            stream.flush()
        except (OSError, ValueError):  # said by now; the interpreter would try again, and end with a code of its own
            _forget(descriptor)
    if not {"holodeck.cli.run", "holodeck.cli.testing"} & sys.modules.keys():
        sys.exit(code)
    # A chat or a test run has Semantic Kernel loaded, which takes half a second to be taken apart, or is still loading it, in a worker
    # thread that the interpreter would wait for. Everything of ours is closed by now.
    import atexit  # noqa: PLC0415 - only the way out of a chat needs it

    with suppress(Exception):
        atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what os._exit leaves out
    os._exit(code)
