"""Formats numbers and names as text for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED: Final = 3

# A quoted name in Oracle can contain any character except " and U+0000. A terminal executes the
# control characters 0 to 1F and 7F to 9F (ECMA-48). U+202A to U+202E and U+2066 to U+2069 change
# the order in which it shows the others (Unicode UAX #9).
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: "1 log", "1,200 logs".

    Args:
        one: the singular.
        many: the plural; default: the singular with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def visible(text: str) -> str:
    r"""Return a text for a terminal, with escapes such as ``\x1b`` in place of control characters.
    Ends of lines and tabs stay.
    """
    return _CONTROLS.sub(_escape, text)


def one_line(text: str) -> str:
    """Return a text as `visible` does, with escapes also in place of ends of lines."""
    return visible(text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


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
