"""The canonical form in which source and target rows are compared. In this form, equal values have
the same bytes.

Source values are encoded like loaded values, so details that the type mapping does not preserve do
not appear as differences. Then source values, and target values by the SQL expressions in this
module, are changed as follows:

- numeric: without trailing zeros, which a column's scale adds; ±infinity as PostgreSQL sends it;
- character(n): without trailing blanks, as text;
- jsonb: as PostgreSQL prints it (keys in PostgreSQL's order, no duplicate keys, numbers as
  numeric);
- xml: as text, because xml has no binary form without a declaration;
- a domain: as its base type.

A row's image is the result of ``record_send`` for these values. A row's digest is
``hashtextextended`` of the image in hex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from psycopg import sql

from olr_pg.datatypes.columns import ValueColumn, per_distinct
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.text import strip_blanks
from olr_pg.load.canonical_json import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.applier.target.catalogue import TargetColumn

_NUMERIC_HEAD: Final = 8
"""Bytes of a numeric before its digits: number of digits, weight, sign, scale."""

_SIGN_AT: Final = 4
_SCALE_AT: Final = 7
_INFINITE: Final = 0x90
"""Bits that are set in the sign field only for ±infinity (D000 and F000)."""

_INFINITE_SCALE: Final = 32


def canonical_type(column: TargetColumn) -> int:
    """Return the OID of a column's canonical form."""
    as_text = (PgKind.BPCHAR, PgKind.XML)
    return int(PgKind.TEXT) if column.base_oid in as_text else column.base_oid


def canonical_values(values: ValueColumn, column: TargetColumn) -> ValueColumn:
    """Convert values from PostgreSQL's binary form to the canonical form."""
    if column.base_oid == PgKind.BPCHAR:
        return strip_blanks(ValueColumn(*values))  # read-only, as everywhere
    if column.base_oid == PgKind.JSONB:
        return per_distinct(values, canonical_json)
    return _infinities(values) if column.base_oid == PgKind.NUMERIC else values


def _infinities(values: ValueColumn) -> ValueColumn:
    """Set the scale of ±infinity to the value that PostgreSQL sends.

    For ±infinity PostgreSQL sends bits of the sign field as the scale, because it stores the sign
    in the field that contains the scale of short numbers.
    """
    short = np.flatnonzero(values.length == _NUMERIC_HEAD)
    if not len(short):
        return values
    sign = values.data[values.offset[short] + _SIGN_AT]
    infinite = short[(sign & _INFINITE) == _INFINITE]
    if not len(infinite):
        return values
    data = values.data.copy()
    data[values.offset[infinite] + _SCALE_AT] = _INFINITE_SCALE
    return values._replace(data=data)


def canonical_expression(column: TargetColumn) -> sql.Composable:
    """Return the SQL of the canonical form of a column of the table ``t``."""
    name = sql.SQL("t.{}").format(sql.Identifier(column.name))
    if column.base_oid == PgKind.NUMERIC:
        return sql.SQL("trim_scale({}::numeric)").format(name)
    if column.base_oid in (PgKind.BPCHAR, PgKind.XML):
        return sql.SQL("{}::text").format(name)
    if column.type_oid != column.base_oid:
        return sql.SQL("{}::{}").format(name, sql.SQL(column.base_name))
    return name


def image_expression(columns: Sequence[TargetColumn]) -> sql.Composed:
    """Return the SQL of the image of a row of the table ``t``; the image contains `columns`."""
    parts = sql.SQL(", ").join(map(canonical_expression, columns))
    return sql.SQL("record_send(ROW({}))").format(parts)


def digest_expression(columns: Sequence[TargetColumn]) -> sql.Composed:
    """Return the SQL of the digest of that image (see `image_expression`)."""
    return sql.SQL("hashtextextended(encode({}, 'hex') COLLATE \"C\", 0)").format(
        image_expression(columns)
    )
