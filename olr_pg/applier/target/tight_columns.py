"""Finds target columns that may refuse values of the source, so that an operator can change the
columns in advance.

PostgreSQL refuses a value that is too long or too large, and NULL in a NOT NULL column. The
source's type allows such values, but it is not known whether they exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.applier.target.modifiers import integer_digits, modifier_of, text_length
from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
    from olr_pg.datatypes.mapping import OracleColumn, PgType

# A domain can add a default and NOT NULL to a column.
_NOT_NULL: Final = """
SELECT a.attname, a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND (a.attnotnull OR t.typnotnull)
ORDER BY a.attnum
"""
_TEXTS: Final = (PgKind.VARCHAR, PgKind.BPCHAR)
_FORMATS: Final[dict[int, str]] = {
    PgKind.JSON: "JSON",
    PgKind.JSONB: "JSON",
    PgKind.UUID: "a UUID",
    PgKind.XML: "XML",
}
"""Types that accept only text of a certain format."""

_INTEGERS: Final[dict[int, int]] = {PgKind.INT2: 4, PgKind.INT4: 9, PgKind.INT8: 18}
"""The number of decimal digits that a value of each type can always have."""


def read_not_null(connection: Connection[Any], target: TargetTable) -> dict[str, bool]:
    """Return the NOT NULL columns. The value is true if an INSERT that does not set the column
    gives it a value.
    """
    return dict(connection.execute(_NOT_NULL, (target.oid,)).fetchall())


def may_refuse(source: OracleColumn, made: PgType, target: TargetColumn) -> str | None:
    """Return a description of values of the source's type that the target may refuse, or None.

    Args:
        made: the type that a new target column would get. If the target has this type, nothing is
            reported.
    """
    found = None
    if target.base_oid in _TEXTS and target.modifier >= 0:
        found = _too_long(made, text_length(target.modifier))
    elif source.type_code == OracleType.NUMBER and not _is_made_so(made, target):
        found = _too_large(source, target)
    elif made.kind in (*_TEXTS, PgKind.TEXT) and target.base_oid in _FORMATS:
        found = f"may have text that is not {_FORMATS[target.base_oid]}"
    return None if found is None else f"{oracle_type_name(source)} {found}"


def _is_made_so(made: PgType, target: TargetColumn) -> bool:
    if target.base_oid != made.kind:
        return False
    return made.kind != PgKind.NUMERIC or target.modifier == modifier_of(made)


def _too_long(made: PgType, kept: int) -> str | None:
    if made.kind == PgKind.TEXT:
        return f"may be longer than {kept} characters"
    wanted = modifier_of(made)
    if made.kind not in _TEXTS or wanted < 0 or text_length(wanted) <= kept:
        return None
    return f"may have {text_length(wanted)} characters, but the target accepts only {kept}"


def _too_large(source: OracleColumn, target: TargetColumn) -> str | None:
    kept: int | None
    if target.base_oid == PgKind.NUMERIC:
        kept = None if target.modifier < 0 else integer_digits(target.modifier)
    else:
        kept = _INTEGERS.get(target.base_oid)
        if kept is not None and (source.scale is None or source.scale > 0):
            return "may have a fraction, which an integer column cannot store"
    if kept is None or source.precision is None or source.scale is None:
        return None
    wanted = source.precision - source.scale
    return (
        None
        if wanted <= kept
        else (
            f"may have {wanted} digits before the decimal point, but the target accepts only {kept}"
        )
    )
