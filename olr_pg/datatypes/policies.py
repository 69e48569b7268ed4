"""Policies for values that PostgreSQL cannot store unchanged, and counters of these values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, Literal

Undecodable = Literal["error", "replace", "hex"]
Nul = Literal["remove", "replace", "error"]
Infinity = Literal["keep", "null", "error"]
Fraction = Literal["truncate", "error"]
Calendar = Literal["label", "error"]
InvalidDate = Literal["error", "null"]
BooleanPairs = tuple[tuple[str, str], ...]

BOOLEAN_PAIRS: Final[BooleanPairs] = (("Y", "N"), ("T", "F"), ("1", "0"))
"""The default (true, false) pairs for a column that becomes boolean. They are case-sensitive."""


@dataclass(frozen=True, slots=True)
class Policies:
    r"""How to handle values that PostgreSQL cannot hold: one choice for each case of type-mapping
    part 4. The defaults are the recommendations of that part.

    Attributes:
        undecodable: bytes that are not a character: an error, or replaced by U+FFFD or by the text
            ``\xNN``.
        nul: U+0000 in text: removed, replaced by U+FFFD, or an error.
        infinity: an infinite NUMBER: kept (an error if the target type has no infinity), replaced
            by NULL, or an error.
        fraction: nanoseconds: truncated to microseconds, or an error.
        calendar: a 29 February that exists only in the Julian calendar: becomes 1 March, or an
            error.
        invalid_date: a date and time that does not exist or is not within Oracle's years, such as
            0000-00-00: an error, or replaced by NULL.
        char_blanks: whether values of CHAR keep trailing blanks if the target type is not
            character(n).
        local_timezone: the zone (offset or region name) of DATE and TIMESTAMP values, for the
            conversion to timestamptz; None to refuse this conversion.
        boolean_pairs: (true, false) pairs of texts or numbers, if the target type is boolean; any
            other value is an error.
    """

    undecodable: Undecodable = "replace"
    nul: Nul = "remove"
    infinity: Infinity = "keep"
    fraction: Fraction = "truncate"
    calendar: Calendar = "label"
    invalid_date: InvalidDate = "error"
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
    invalid_date: int = 0
    inexact: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


NOTHING = Counters()
