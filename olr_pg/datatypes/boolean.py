"""BOOLEAN values of Oracle 23ai (one byte, 01 or 00; values-and-lobs §10), and columns of other
types that become boolean in the target.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.outcomes import Outcome, fail, malformed
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.datatypes.policies import BooleanPairs

_WHOLE: Final = re.compile(r"-?\d{1,18}")


def decode_boolean(raw: bytes) -> bool:
    """Decode a BOOLEAN value.

    Raises:
        OlrPgError: 2050, the value is neither 00 nor 01.
    """
    if raw not in (b"\x00", b"\x01"):
        raise malformed("BOOLEAN", raw)
    return raw == b"\x01"


def boolean_to_bool(values: ValueColumn) -> ValueColumn:
    """Convert BOOLEAN to bool. The values of the two types have the same bytes.

    Raises:
        OlrPgError: 2050, a value is malformed.
    """
    null = nulls(values)
    present = ~null
    items: npt.NDArray[np.uint8] = np.zeros(len(null), np.uint8)
    items[present] = values.data[values.offset[present]]
    bad = np.flatnonzero(present & ((values.length != 1) | (items > 1)))
    if len(bad):
        fail(int(bad[0]), Outcome.MALFORMED, values, "BOOLEAN")
    return fixed_width(items, null)


def flag_texts(pairs: BooleanPairs) -> dict[str, bool]:
    """Return the boolean value of each text in `pairs`."""
    return {
        text: is_true for pair in pairs for text, is_true in zip(pair, (True, False), strict=True)
    }


def flag_numbers(pairs: BooleanPairs) -> dict[int, bool]:
    """Return the boolean value of each number in `pairs`. If `pairs` has no numbers, 1 is true and
    0 is false.
    """
    numbers = [pair for pair in pairs if all(map(_WHOLE.fullmatch, pair))]
    texts = flag_texts(tuple(numbers) or (("1", "0"),))
    return {int(text): is_true for text, is_true in texts.items()}


def no_flag(pairs: BooleanPairs, *, row: int | None = None) -> OlrPgError:
    """Return the error for a value that represents neither true nor false."""
    shown = ", ".join("/".join(pair) for pair in pairs)
    where = {} if row is None else {"row": row}
    return OlrPgError(
        Code.VALUE_OUT_OF_RANGE,
        f"a value for a boolean column means neither true nor false ({shown})",
        action="if the column is not a boolean flag, choose another type in `apply.columns` and"
        " change the target's column to it. Else add the column's values to"
        " `boolean-values`, or correct the row in the source",
        **where,
    )
