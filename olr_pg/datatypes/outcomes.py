"""The outcomes that kernels for values return.

A kernel stops at the first row that it cannot convert and returns ``(row, outcome)``. A kernel that
converts all rows returns ``(-1, Outcome.OK)``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import inlined_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.datatypes.columns import ValueColumn


@inlined_kernel
def byte_at(data: Any, at: int) -> int:
    """Return the byte at `at` as a signed integer, because Numba converts mixed signed and unsigned
    integers to floats.
    """
    return int(np.int64(data[np.uint64(at)]))


class Outcome(IntEnum):
    """Why a kernel stopped at a row."""

    OK = 0
    MALFORMED = 1
    OVERFLOW = 2
    FRACTION = 3
    INFINITY = 4
    CALENDAR = 5
    PRECISION = 6


OK: Final = int(Outcome.OK)
MALFORMED: Final = int(Outcome.MALFORMED)
OVERFLOW: Final = int(Outcome.OVERFLOW)
FRACTION: Final = int(Outcome.FRACTION)
INFINITY: Final = int(Outcome.INFINITY)
CALENDAR: Final = int(Outcome.CALENDAR)
PRECISION: Final = int(Outcome.PRECISION)

OUTCOME_CODES: Final = {
    Outcome.MALFORMED: (Code.VALUE_MALFORMED, "the bytes are not a value of this type"),
    Outcome.OVERFLOW: (Code.VALUE_OUT_OF_RANGE, "the value is out of range"),
    Outcome.FRACTION: (
        Code.VALUE_WOULD_LOSE,
        "the value has a fraction or a time of day that would be lost",
    ),
    Outcome.INFINITY: (Code.VALUE_OUT_OF_RANGE, "the value is infinite"),
    Outcome.CALENDAR: (
        Code.VALUE_WOULD_LOSE,
        "29 February of a year that is no leap year in PostgreSQL's calendar",
    ),
    Outcome.PRECISION: (
        Code.VALUE_WOULD_LOSE,
        "digits of the second beyond the microsecond would be lost",
    ),
}

_HEX_BYTES_MAX: Final = 64


def printed(raw: bytes) -> str:
    """Return the bytes in hex for an error message; many bytes are truncated."""
    cut = raw[:_HEX_BYTES_MAX].hex()
    return cut if len(raw) <= _HEX_BYTES_MAX else f"{cut}… ({len(raw)} bytes)"


def quoted_text(raw: bytes) -> str:
    """Return text in quotes for an error message; much text is truncated."""
    return repr(raw[:_HEX_BYTES_MAX].decode(errors="replace"))


def malformed(oracle_type: str, raw: bytes) -> OlrPgError:
    """Return the error for bytes that are not a valid value of `oracle_type`."""
    return OlrPgError(Code.VALUE_MALFORMED, f"{oracle_type} {printed(raw) or '(no bytes)'}")


def check(
    row: int,
    outcome: int,
    values: ValueColumn,
    conversion: str,
    shown: Callable[[bytes], str] = printed,
) -> None:
    """Raise the error if a kernel could not convert a row.

    Args:
        row, outcome: the kernel's result.
        conversion: text for the error message, such as ``NUMBER to bigint``.
        shown: how the message shows the value: `printed`, or `quoted_text` for text.
    """
    if row >= 0:
        fail(row, Outcome(outcome), values, conversion, shown)


def fail(
    row: int,
    outcome: Outcome,
    values: ValueColumn,
    conversion: str,
    shown: Callable[[bytes], str] = printed,
) -> NoReturn:
    """Raise the error for `row` of `values`."""
    code, reason = OUTCOME_CODES[outcome]
    raw = values.value(row) or b""
    raise OlrPgError(code, f"{conversion}: {reason}: {shown(raw)}", row=row)
