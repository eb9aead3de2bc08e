"""Durations and token counts as short text."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

__all__ = ["format_clock", "format_count", "format_date", "format_duration", "format_tokens", "format_when"]

_SECOND: Final = 1_000_000_000
_UNKNOWN: Final = "?"


def format_duration(seconds: float, *, ascii_only: bool = False) -> str:
    """A duration to three significant digits or so: ``240 µs``, ``86 ms``, ``1.24 s``, ``2 m 05 s``, ``1 h 02 m``, ``3 d 04 h``.

    Args:
        seconds: Negative ones count as 0; what is no number becomes ``?``.
        ascii_only: Writes ``us`` for ``µs``.
    """
    if not math.isfinite(seconds * _SECOND):
        return _UNKNOWN
    nanos = max(round(seconds * _SECOND), 0)
    if nanos < 999_500_000:
        return _below_a_second(nanos, "us" if ascii_only else "µs")
    if nanos < 9_995_000_000:
        return f"{nanos / _SECOND:.2f} s"
    if nanos < 59_950_000_000:
        return f"{nanos / _SECOND:.1f} s"
    return _from_a_minute((nanos + _SECOND // 2) // _SECOND)


def _below_a_second(nanos: int, micro: str) -> str:
    if nanos < 999_500:
        return f"{(nanos + 500) // 1000} {micro}"
    return f"{nanos / 1e6:.1f} ms" if nanos < 9_950_000 else f"{(nanos + 500_000) // 1_000_000} ms"


def _from_a_minute(seconds: int) -> str:
    minutes, hours = seconds // 60, seconds // 3600
    if hours >= 24:
        return f"{hours // 24} d {hours % 24:02} h"
    return f"{hours} h {minutes % 60:02} m" if hours else f"{minutes} m {seconds % 60:02} s"


def format_count(count: int | None) -> str:
    """A number of tokens: exact below a million (``1,412``), three digits above (``2.35M``), ``?`` for None."""
    if count is None:
        return _UNKNOWN
    if count < 1_000_000:
        return f"{count:,}"
    for limit, unit in ((999_500_000, "M"), (999_500_000_000, "G")):
        if count < limit:
            return f"{float(f'{count:.3g}') / (1e6 if unit == 'M' else 1e9):.3g}{unit}"
    return f"{count:.2g}"


def format_tokens(input_tokens: int | None, output_tokens: int | None, *, cached: int | None = None, ascii_only: bool = False) -> str:
    """Tokens in and out: ``412→38``, ``?→?`` where nothing was reported, ``412→38 (300 cached)``.

    Args:
        input_tokens: Input tokens, cached ones included; None if unknown.
        output_tokens: Output tokens; None if unknown.
        cached: The part of the input that was read from a cache; None or 0 is not shown.
        ascii_only: Writes ``->`` for the arrow.
    """
    text = f"{format_count(input_tokens)}{'->' if ascii_only else '→'}{format_count(output_tokens)}"
    return f"{text} ({format_count(cached)} cached)" if cached else text


def format_clock(nanos: int) -> str:
    """A Unix time in nanoseconds as wall-clock time in UTC, ``14:03:22.125Z``: always 13 characters, blank where there is none."""
    time = _time(nanos)
    return f"{time:%H:%M:%S}.{nanos // 1_000_000 % 1000:03}Z" if time else " " * 13


def format_date(nanos: int) -> str:
    """The day of a Unix time in nanoseconds in UTC, ``2026-08-03``, or ``no date``."""
    time = _time(nanos)
    return f"{time:%Y-%m-%d}" if time else "no date"


def format_when(nanos: int) -> str:
    """A Unix time in nanoseconds as date and time in UTC, ``2026-08-03 14:03:22``: always 19 characters."""
    return f"{format_date(nanos)} {format_clock(nanos)[:8]}".rstrip().ljust(19)


def _time(nanos: int) -> datetime | None:
    return datetime.fromtimestamp(nanos // _SECOND, UTC) if nanos else None  # 64 bits of nanoseconds end in the year 2554
