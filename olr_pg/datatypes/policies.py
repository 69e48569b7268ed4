"""Policies for values that PostgreSQL cannot hold as they are, and counters of such values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

Undecodable = Literal["error", "replace", "hex"]
Nul = Literal["remove", "replace", "error"]
Infinity = Literal["keep", "null", "error"]
Fraction = Literal["truncate", "error"]
Calendar = Literal["label", "error"]
BooleanPairs = tuple[tuple[str, str], ...]

BOOLEAN_PAIRS: Final[BooleanPairs] = (("Y", "N"), ("T", "F"), ("1", "0"))
"""The default pairs for true and false if a column becomes boolean. Upper and lower case differ."""


@dataclass(frozen=True, slots=True)
class Policies:
    r"""What to do with values that PostgreSQL cannot hold: one choice for each case of type-mapping
    part 4. The defaults are the ones recommended there.

    Attributes:
        undecodable: bytes that are no character: an error, U+FFFD, or ``\xNN`` text.
        nul: U+0000 in text: left out, U+FFFD, or an error.
        infinity: ±infinity of NUMBER: kept if the target type has it (otherwise an error), NULL, or
            an error.
        fraction: nanoseconds: cut to microseconds, or an error.
        calendar: 29 February of a Julian leap year only: 1 March, or an error.
        char_blanks: keep the blank padding of CHAR for targets other than character(n).
        local_timezone: zone (offset or region name) in which DATE and TIMESTAMP are interpreted if
            the target is timestamptz; None refuses that conversion.
        boolean_pairs: (true, false) as text or number, if the target is boolean; any other value is
            an error.
    """

    undecodable: Undecodable = "replace"
    nul: Nul = "remove"
    infinity: Infinity = "keep"
    fraction: Fraction = "truncate"
    calendar: Calendar = "label"
    char_blanks: bool = False
    local_timezone: str | None = None
    boolean_pairs: BooleanPairs = BOOLEAN_PAIRS


DEFAULT_POLICIES = Policies()


@dataclass(frozen=True, slots=True)
class Counters:
    """The number of values that each policy changed."""

    undecodable: int = 0
    nul: int = 0
    infinity: int = 0
    truncated: int = 0
    calendar: int = 0
    inexact: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


NOTHING = Counters()
