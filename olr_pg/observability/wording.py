"""Formats numbers as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED: Final = 3


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: "1 log", "1,200 logs".

    Args:
        one: the singular.
        many: the plural; default: the singular with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: Sequence[str]) -> str:
    """Return the first few of many names: "A, B, C and 279 more"."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def span(seconds: float | None) -> str:
    """Return a time span as short text; "never" for None."""
    if seconds is None:
        return "never"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
