"""Splits composite images into values, for rows that are displayed or repaired."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import orjson
import psycopg
from psycopg import sql

from olr_pg.applier.target.connection import Binary
from olr_pg.applier.target.percent_signs import escape_percent_signs
from olr_pg.datatypes.mapping import PgKind
from olr_pg.load.canonical import canonical_type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetColumn


class ImageField(NamedTuple):
    """One column's value in a row; None for NULL."""

    column: TargetColumn
    value: bytes | None

    @property
    def parameter(self) -> Binary | None:
        """The value for the ``%b`` placeholder of `placeholder`."""
        return None if self.value is None else Binary(self.value)


def fields_of(image: bytes, columns: Sequence[TargetColumn]) -> list[ImageField]:
    """Split a composite image (from `load.row_images.composites` or ``record_send``) into its
    values.
    """
    fields, at = [], 4
    for column in columns:
        size = int.from_bytes(image[at + 4 : at + 8], "big", signed=True)
        at += 8
        fields.append(ImageField(column, None if size < 0 else image[at : at + size]))
        at += max(size, 0)
    assert at == len(image)
    return fields


def placeholder(column: TargetColumn) -> sql.Composable:
    """Return the SQL that converts a value from the canonical form to the column's type."""
    own = escape_percent_signs(sql.SQL(column.base_name))
    if canonical_type(column) == column.base_oid:
        return sql.SQL("%b::{}").format(own)
    return sql.SQL("%b::text::{}").format(own)


def shown(connection: Connection[Any], fields: Sequence[ImageField]) -> dict[str, Any]:
    """Return values for JSON output: exact numbers, dates in ISO 8601, and bytes as hex.

    A JSON document that readers may reject, because of its depth or its numbers, is returned as a
    string.
    """
    if not fields:
        return {}
    parts = sql.SQL(", ").join(
        sql.SQL("to_jsonb({})::text").format(_as_shown(field.column)) for field in fields
    )
    try:
        with connection.transaction(), connection.cursor(binary=False) as cursor:
            row = cursor.execute(
                sql.SQL("SELECT {}").format(parts), [field.parameter for field in fields]
            ).fetchone()
    except psycopg.errors.UntranslatableCharacter:
        if len(fields) > 1:
            single = [shown(connection, [field]) for field in fields]
            return {name: value for one in single for name, value in one.items()}
        # The target's encoding lacks a character of this text, so the target cannot convert it.
        value = fields[0].value
        return {fields[0].column.name: None if value is None else bytes(value).decode()}
    assert row is not None
    return {field.column.name: _read(text) for field, text in zip(fields, row, strict=True)}


def _read(text: str | None) -> Any:
    if text is None:
        return None
    try:
        value = json.loads(text)
        orjson.dumps([[value]])  # try the depth that the document will have in a line of the file
    except (RecursionError, TypeError):
        return text
    return value


def _as_shown(column: TargetColumn) -> sql.Composable:
    if column.base_oid == PgKind.NUMERIC:
        # Return numbers as text, because JSON readers would convert them to floats.
        return sql.SQL("({})::text").format(placeholder(column))
    return placeholder(column)
