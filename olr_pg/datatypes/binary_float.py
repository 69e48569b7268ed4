"""BINARY_FLOAT and BINARY_DOUBLE values. Oracle stores IEEE 754 numbers with some bits inverted, so
that the order of the bytes is the order of the numbers.

Facts: values-and-lobs §8.

The module also decodes BOOLEAN values of Oracle 23ai (one byte, 01 or 00; values-and-lobs §10), and
converts columns of other types that become boolean in the target.
"""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from olr_pg.datatypes.columns import ValueColumn, fixed_width, nulls
from olr_pg.datatypes.outcomes import MALFORMED, OK, Outcome, check, fail, malformed
from olr_pg.datatypes.policies import Counters
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.compile import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from olr_pg.datatypes.policies import BooleanPairs

    Bytes = npt.NDArray[np.uint8]
    Longs = npt.NDArray[np.int64]


_FORMATS: Final = {4: ">f", 8: ">d"}
_NAMES: Final = {4: "BINARY_FLOAT", 8: "BINARY_DOUBLE"}
_NANS: Final = {4: bytes.fromhex("7fc00000"), 8: bytes.fromhex("7ff8000000000000")}


def decode_binary_float(raw: bytes, width: int) -> float:
    """Decode the 4 or 8 bytes of a number. A BINARY_FLOAT is returned as the double of the same
    value.

    Raises:
        OlrPgError: 2050, `raw` does not have `width` bytes.
    """
    if len(raw) != width:
        raise malformed(_NAMES[width], raw)
    value: float = struct.unpack(_FORMATS[width], _flipped(raw, to_oracle=False))[0]
    return value


def encode_binary_float(value: float, width: int) -> bytes:
    """Encode a number as Oracle's 4 or 8 bytes. Oracle has only one form of zero and one of NaN.

    Raises:
        OlrPgError: 2058, the number is beyond the range of BINARY_FLOAT.
    """
    if math.isnan(value):
        return _flipped(_NANS[width], to_oracle=True)
    try:
        plain = struct.pack(_FORMATS[width], value + 0.0 if value else 0.0)
    except OverflowError as error:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"beyond {_NAMES[width]}: {value!r}"
        ) from error
    return _flipped(plain, to_oracle=True)


def shortest(value: float, width: int) -> str:
    """Return the shortest decimal text that is parsed to the same float of `width` bytes."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if width == 4:
        with np.errstate(over="ignore"):
            return str(np.float32(value))
    return repr(value)


def _flipped(raw: bytes, *, to_oracle: bool) -> bytes:
    positive = (raw[0] < 0x80) == to_oracle
    if positive:
        return bytes([raw[0] ^ 0x80]) + raw[1:]
    return bytes(byte ^ 0xFF for byte in raw)


def binary_float_to_float(
    values: ValueColumn, width: int, target_width: int
) -> tuple[ValueColumn, Counters]:
    """Convert BINARY_FLOAT or BINARY_DOUBLE to float4 or float8. Every NaN becomes the same
    (canonical) NaN.

    Args:
        values: values of `width` bytes.
        width, target_width: 4 or 8; narrowing rounds and counts as `inexact`.

    Raises:
        OlrPgError: 2050 malformed; 2053 beyond float4.
    """
    bits = np.zeros(len(values.length), np.uint64)
    conversion = f"{_NAMES[width]} to float{target_width}"
    row, outcome = bits_kernel(*values, width, bits)
    check(row, outcome, values, conversion)
    numbers: npt.NDArray[Any] = (
        bits.view(np.float64) if width == 8 else bits.astype(np.uint32).view(np.float32)
    )
    numbers[np.isnan(numbers)] = np.nan
    with np.errstate(over="ignore"):
        items = numbers.astype(f">f{target_width}")
    over = np.flatnonzero(np.isinf(items) & ~np.isinf(numbers))
    if len(over):
        fail(int(over[0]), Outcome.OVERFLOW, values, conversion)
    inexact = int(((items != numbers) & ~np.isnan(numbers)).sum())
    return fixed_width(items, nulls(values)), Counters(inexact=inexact)


@kernel
def bits_kernel(
    data: Bytes, offset: Longs, length: Longs, width: int, out: npt.NDArray[np.uint64]
) -> tuple[int, int]:
    """Convert Oracle's bytes to IEEE bits in the low `width` bytes. Returns (failed row or −1,
    outcome).
    """
    top = np.uint64(1) << np.uint64(8 * width - 1)
    every = top | (top - np.uint64(1))
    for row in range(len(length)):
        if length[row] <= 0:
            continue
        if length[row] != width:
            return row, MALFORMED
        start = offset[row]
        bits = np.uint64(0)
        for i in range(start, start + width):
            bits = bits << np.uint64(8) | np.uint64(data[i])
        out[row] = bits ^ top if bits & top else bits ^ every
    return -1, OK


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
