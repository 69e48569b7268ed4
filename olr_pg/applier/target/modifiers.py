"""Detects target columns whose type modifiers, such as numeric(10,2), would make PostgreSQL round
values silently.

PostgreSQL refuses a number with too many integer digits, and text that is too long. But PostgreSQL
silently rounds fractional digits of numbers and seconds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.mapping import OracleColumn, PgType

# PostgreSQL's numeric.c, timestamp.c and timestamp.h
_HEADER: Final = 4
_SCALE_BITS: Final = 0x7FF
_SCALE_SIGN: Final = 0x400
_FULL_PRECISION: Final = 0xFFFF
_ALL_FIELDS: Final = 0x7FFF
_FIELDS_AT: Final = 16
_SECOND: Final = 1 << 12
_MONTH: Final = 1 << 1

_DIGITS: Final = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")

_FLOAT_DIGITS: Final[dict[int, int]] = {PgKind.FLOAT4: 6, PgKind.FLOAT8: 15}
"""The number of decimal digits that each type preserves."""

_MICROSECONDS: Final = 6
"""The number of fractional digits of seconds that PostgreSQL stores. A policy decides what happens
to further digits.
"""

_TIMESTAMPS: Final = frozenset(
    {OracleType.TIMESTAMP, OracleType.TIMESTAMP_TZ, OracleType.TIMESTAMP_LTZ}
)


def modifier_of(made: PgType) -> int:
    """Return the type modifier of a column of this type; −1 if the type has no modifier that limits
    values.
    """
    found = _DIGITS.search(made.name)
    if found is None:
        return -1
    first, second = int(found[1]), int(found[2] or 0)
    if made.kind is PgKind.NUMERIC:
        return (first << _FIELDS_AT | (second & _SCALE_BITS)) + _HEADER
    if made.kind in (PgKind.VARCHAR, PgKind.BPCHAR):
        return first + _HEADER
    return first if made.kind in (PgKind.TIMESTAMP, PgKind.TIMESTAMPTZ) else -1


def check_modifiers(source: OracleColumn, target: TargetColumn) -> None:
    """Check that the target does not round values of the source's type.

    Raises:
        OlrPgError: 2057, the target would round values.
    """
    reason = _rounding(source, target)
    if reason is not None:
        raise OlrPgError(
            Code.VALUE_WOULD_LOSE, f"{oracle_type_name(source)}: {reason}", column=source.name
        )


def may_round(source: OracleColumn, target: TargetColumn) -> str | None:
    """If the source's type does not limit fractional digits and the target's type does, return a
    description of the possible rounding, else None.
    """
    if target.base_oid != PgKind.NUMERIC or target.modifier < 0:
        return None
    if source.type_code != OracleType.NUMBER or source.scale is not None:
        return None
    digits = numeric_scale(target.modifier)
    return f"{oracle_type_name(source)} may have more than {digits} digits after the decimal point"


def may_change(source: OracleColumn, made: PgType, target: TargetColumn) -> str | None:
    """Return how the target would silently change values of the source's type, or None.

    Args:
        made: the type that a new target column would get. If the target has this type, nothing is
            reported.
    """
    if made.kind == target.base_oid:
        return None
    kept = _FLOAT_DIGITS.get(target.base_oid)
    if kept is not None and source.type_code == OracleType.NUMBER:
        if source.precision is None or source.precision > kept:
            return (
                f"{oracle_type_name(source)} may have more than the {kept} digits that the"
                " target keeps"
            )
    elif target.base_oid == PgKind.BPCHAR and source.type_code == OracleType.VARCHAR2:
        return (
            f"{oracle_type_name(source)} values may end with spaces, which the target does"
            " not distinguish from its own padding"
        )
    return None


def _rounding(source: OracleColumn, target: TargetColumn) -> str | None:
    if target.modifier < 0:
        return None
    if target.base_oid == PgKind.NUMERIC and source.type_code == OracleType.NUMBER:
        kept, wanted = numeric_scale(target.modifier), source.scale
        return _too_few(kept, wanted, "digits after the decimal point")
    if target.base_oid in (PgKind.TIMESTAMP, PgKind.TIMESTAMPTZ):
        wanted = _second_digits(source) if source.type_code in _TIMESTAMPS else None
        return _too_few(target.modifier, wanted, "digits of fractional seconds")
    if target.base_oid == PgKind.INTERVAL:
        return _interval(source, target.modifier)
    return None


def _interval(source: OracleColumn, modifier: int) -> str | None:
    fields = modifier >> _FIELDS_AT & _ALL_FIELDS
    if source.type_code == OracleType.INTERVAL_YM:
        return None if fields & _MONTH else "the target keeps no months"
    if not fields & _SECOND:
        return "the target keeps no seconds"
    kept = modifier & _FULL_PRECISION
    wanted = None if kept == _FULL_PRECISION else _second_digits(source)
    return _too_few(kept, wanted, "digits of fractional seconds")


def _second_digits(source: OracleColumn) -> int | None:
    return None if source.scale is None else min(source.scale, _MICROSECONDS)


def _too_few(kept: int, wanted: int | None, what: str) -> str | None:
    if wanted is None or wanted <= kept:
        return None
    return f"the target keeps only {kept} {what} of {wanted}"


def numeric_scale(modifier: int) -> int:
    """Return the scale of a numeric with this modifier. It may be negative."""
    return (((modifier - _HEADER) & _SCALE_BITS) ^ _SCALE_SIGN) - _SCALE_SIGN


def integer_digits(modifier: int) -> int:
    """Return the maximum number of integer digits of a numeric with this modifier."""
    return ((modifier - _HEADER) >> _FIELDS_AT & _FULL_PRECISION) - numeric_scale(modifier)


def text_length(modifier: int) -> int:
    """Return the maximum number of characters of a varchar or char with this modifier."""
    return modifier - _HEADER
