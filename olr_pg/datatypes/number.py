"""Conversion of single NUMBER and FLOAT values. Oracle stores a NUMBER as an exponent byte and
base-100 digits (values-and-lobs §3).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from olr_pg.datatypes.outcomes import malformed
from olr_pg.errors import Code, OlrPgError

ZERO: Final = 0x80
POSITIVE_BIAS: Final = 193
NEGATIVE_BIAS: Final = 62
TERMINATOR: Final = 0x66
LENGTH_MAX: Final = 22
_DIGITS_MAX: Final = 20
_EXPONENT_MIN: Final = -65
_EXPONENT_MAX: Final = 62


def decode_number(raw: bytes) -> str:
    """Decode a NUMBER to exact decimal text, without an exponent and without redundant zeros.
    Infinities are ``Infinity`` and ``-Infinity``.

    Raises:
        OlrPgError: 2050, the bytes are not a NUMBER.
    """
    if raw == b"\x00":
        return "-Infinity"
    if raw == b"\xff\x65":
        return "Infinity"
    if raw == b"\x80":
        return "0"
    negative, exponent, digits = _read_digits(raw)
    text = "".join(f"{digit:02d}" for digit in digits)
    point = 2 * (exponent + 1)
    if point <= 0:
        whole, part = "", "0" * -point + text
    else:
        whole, part = text[:point].ljust(point, "0"), text[point:]
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    number = f"{whole}.{part}" if part else whole
    return f"-{number}" if negative and number != "0" else number


def _read_digits(raw: bytes) -> tuple[bool, int, list[int]]:
    if not 0 < len(raw) <= LENGTH_MAX:
        raise malformed("NUMBER", raw)
    negative = raw[0] < ZERO
    if negative:
        mantissa = raw[1:-1] if raw[-1] == TERMINATOR else raw[1:]
        digits = [101 - byte for byte in mantissa]
    else:
        digits = [byte - 1 for byte in raw[1:]]
    if not digits or min(digits) < 0 or max(digits) > 99:
        raise malformed("NUMBER", raw)
    return negative, NEGATIVE_BIAS - raw[0] if negative else raw[0] - POSITIVE_BIAS, digits


def encode_number(value: Decimal | int | str) -> bytes:
    """Encode a decimal value as Oracle's bytes. The value is rounded half up to 20 base-100 digits,
    as in Oracle.

    Raises:
        OlrPgError: 2058, the value is not a number, or it is out of range (values-and-lobs §3.4).
    """
    try:
        number = Decimal(value)
    except InvalidOperation as error:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"not a number: {value!r}"
        ) from error
    if number.is_infinite():
        return b"\xff\x65" if number > 0 else b"\x00"
    if number.is_nan():
        raise OlrPgError(Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, "NUMBER has no NaN")
    digits, exponent = _base_100(number)
    if not digits or exponent < _EXPONENT_MIN:
        return b"\x80"
    if exponent > _EXPONENT_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE, f"out of the range of NUMBER: {value}"
        )
    if number > 0:
        return bytes([POSITIVE_BIAS + exponent, *(digit + 1 for digit in digits)])
    terminator = [TERMINATOR] if len(digits) < _DIGITS_MAX else []
    return bytes([NEGATIVE_BIAS - exponent, *(101 - digit for digit in digits), *terminator])


def _base_100(number: Decimal) -> tuple[list[int], int]:
    """Return (base-100 digits without zeros at either end, exponent of the first digit) of a finite
    number.
    """
    _, decimal_digits, scale = number.as_tuple()
    text, power = "".join(map(str, decimal_digits)), int(scale)
    if power % 2:
        text, power = text + "0", power - 1
    text = text.zfill(len(text) + len(text) % 2)
    digits = [int(text[i : i + 2]) for i in range(0, len(text), 2)]
    exponent = power // 2 + len(digits) - 1
    while digits and digits[0] == 0:
        del digits[0]
        exponent -= 1
    if len(digits) > _DIGITS_MAX:
        digits, exponent = _rounded(digits, exponent)
    while digits and digits[-1] == 0:
        del digits[-1]
    return digits, exponent


def _rounded(digits: list[int], exponent: int) -> tuple[list[int], int]:
    kept = int("".join(f"{digit:02d}" for digit in digits[:_DIGITS_MAX]))
    kept += digits[_DIGITS_MAX] >= 50
    text = str(kept)
    text = text.zfill(len(text) + len(text) % 2)
    exponent += len(text) // 2 - _DIGITS_MAX
    return [int(text[i : i + 2]) for i in range(0, len(text), 2)], exponent
