"""BOOLEAN of 23ai: one byte, 01 or 00 (values-and-lobs §10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.outcomes import Outcome, fail, malformed

if TYPE_CHECKING:
    import numpy.typing as npt


def decode_boolean(raw: bytes) -> bool:
    """Decode the value of one byte.

    Raises:
        OlrPgError: 2050, neither 00 nor 01.
    """
    if raw not in (b"\x00", b"\x01"):
        raise malformed("BOOLEAN", raw)
    return raw == b"\x01"


def boolean_to_bool(values: ValueColumn) -> ValueColumn:
    """BOOLEAN → bool; the forms are the same.

    Raises:
        OlrPgError: 2050.
    """
    null = nulls(values)
    present = ~null
    items: npt.NDArray[np.uint8] = np.zeros(len(null), np.uint8)
    items[present] = values.data[values.offset[present]]
    bad = np.flatnonzero(present & ((values.length != 1) | (items > 1)))
    if len(bad):
        fail(int(bad[0]), Outcome.MALFORMED, values, "BOOLEAN")
    return fixed_width(items, null)
